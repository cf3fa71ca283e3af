"""Do one run of a suite on a flow: select cases, skip those with a result, and write the reports."""

from __future__ import annotations

import re  # noqa: TID251  # patterns of the person who runs the suite, over names of cases
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nightjar_lab.suite import texts
from nightjar_lab.suite.csv_report import csv_text
from nightjar_lab.suite.result import SuiteResult
from nightjar_lab.suite.result_file import SuiteResultFile, append_report, check_writable, write_report
from nightjar_lab.suite.runner import CannotRun, SuiteInfo, SuiteLimits, SuiteRunner
from nightjar_lab.suite.summary import summary_text


class NoCases(CannotRun):
    """No case of the suite is selected."""


@dataclass(frozen=True)
class CaseSelection:
    """A selection of cases: those in whose name a pattern is found, at most `limit` of them, and of those one shard."""

    patterns: tuple[re.Pattern[str], ...] = ()
    limit: int | None = None
    shard: tuple[int, int] = (1, 1)

    def of(self, names: Sequence[str]) -> list[str]:
        """Return the selected names in their order; a limit picks them evenly from the whole list."""
        selected = [
            name for name in names if not self.patterns or any(pattern.search(name) for pattern in self.patterns)
        ]
        if self.limit is not None and self.limit < len(selected):
            selected = [selected[place * len(selected) // self.limit] for place in range(self.limit)]
        index, total = self.shard
        return selected[index - 1 :: total]


@dataclass(frozen=True)
class SuiteReports:
    """The paths of the reports; None for a report that is not wanted. `job_summary` is appended to, for a CI's job."""

    csv: Path | None = None
    summary: Path | None = None
    job_summary: Path | None = None

    def check(self) -> None:
        """Raise FileUnusable if a report cannot be written."""
        for path in (self.csv, self.summary):
            if path is not None:
                check_writable(path)
        if self.job_summary is not None:
            append_report(self.job_summary, "")

    def write(
        self, results: Sequence[SuiteResult], *, flow: str, suite: str, missing: int = 0, notices: Iterable[str] = ()
    ) -> None:
        """Write the reports. Raises FileUnusable."""
        if self.csv is not None:
            write_report(self.csv, csv_text(results))
        if self.summary is not None or self.job_summary is not None:
            self.write_summary(summary_text(results, flow=flow, suite=suite, missing=missing, notices=notices))

    def write_summary(self, text: str) -> None:
        """Write a summary where it is wanted. Raises FileUnusable."""
        if self.summary is not None:
            write_report(self.summary, text)
        if self.job_summary is not None:
            append_report(self.job_summary, text)


@dataclass(frozen=True)
class SuiteRequest:
    """A request for a run. `jsonl` is its state, so the same request continues a run that was stopped.

    `sha` is the commit that is tested, empty if unknown: a file with results of another one is refused.
    """

    flow: str
    suite: str
    jsonl: Path
    selection: CaseSelection = field(default_factory=CaseSelection)
    limits: SuiteLimits = field(default_factory=SuiteLimits)
    reports: SuiteReports = field(default_factory=SuiteReports)
    jobs: int = 1
    fresh: bool = False
    sha: str = ""


@dataclass(frozen=True)
class SuiteProgress:
    """The progress of a run. `ran` counts the cases of this command, without those of earlier commands."""

    total: int
    done: int = 0
    failed: int = 0
    ran: int = 0
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """Return one line with the cases done, the failures, the rate and the estimated end."""
        rate = self.ran / self.seconds if self.seconds else 0.0
        seconds_left = (self.total - self.done) / rate if rate else 0.0
        return texts.PROGRESS.format(
            done=self.done,
            total=self.total,
            failed=self.failed,
            rate=rate,
            left=f"{int(seconds_left // 60)}:{int(seconds_left % 60):02}",
        )


@dataclass(frozen=True)
class SuiteRunEnd:
    """The end of a run: its results in the suite's order, and the number of cases without a result."""

    info: SuiteInfo
    results: tuple[SuiteResult, ...]
    missing: int
    stopped: bool

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of results of each outcome."""
        return {
            outcome.value: count for outcome, count in Counter(result.outcome for result in self.results).most_common()
        }


def run_suite(
    request: SuiteRequest,
    *,
    progress: Callable[[SuiteProgress], None] = lambda _progress: None,
    notice: Callable[[str], None] = lambda _text: None,
) -> SuiteRunEnd:
    """Run the cases without a result, and write reports of all cases, also after Ctrl-C.

    Raises CannotRun and FileUnusable; the JSONL file keeps the results so far.
    """
    request.reports.check()
    check_writable(request.jsonl)
    notices: list[str] = []

    def note(text: str) -> None:
        notices.append(text)
        notice(text)

    with SuiteRunner(request.flow, request.suite, jobs=request.jobs, limits=request.limits, notice=note) as runner:
        info = runner.start()
        names = request.selection.of(runner.names())
        if not names:
            raise NoCases(texts.NO_CASES.format(suite=info.suite))
        with SuiteResultFile(request.jsonl, info, fresh=request.fresh, sha=request.sha) as file:
            stopped = False
            done = sum(name in file.results for name in names)
            if done:
                notice(texts.CONTINUES.format(done=done, total=len(names), path=request.jsonl))
            try:
                _run_rest(runner, file, names, progress)
                runner.finish()
            except KeyboardInterrupt:
                stopped = True
            finally:
                # The reports are written even if no further worker can be started.
                results = tuple(file.results[name] for name in names if name in file.results)
                missing = len(names) - len(results)
                request.reports.write(results, flow=info.flow, suite=info.suite, missing=missing, notices=notices)
    return SuiteRunEnd(info, results, missing, stopped)


def _run_rest(
    runner: SuiteRunner, file: SuiteResultFile, chosen: Sequence[str], progress: Callable[[SuiteProgress], None]
) -> None:
    started = time.monotonic()
    done = [file.results[name] for name in chosen if name in file.results]
    failed, ran = sum(result.outcome.is_failure for result in done), 0
    for result in runner.run([name for name in chosen if name not in file.results]):
        file.append(result)
        ran, failed = ran + 1, failed + result.outcome.is_failure
        progress(SuiteProgress(len(chosen), len(done) + ran, failed, ran, time.monotonic() - started))
