"""One run of a suite on a flow: which cases, what is done already, and the reports at its end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nightjar_lab.suite import texts
from nightjar_lab.suite.csv_report import csv_text
from nightjar_lab.suite.flow import matches_pattern
from nightjar_lab.suite.result import SuiteResult
from nightjar_lab.suite.result_file import SuiteResultFile, check_writable, write_report
from nightjar_lab.suite.runner import CannotRun, SuiteInfo, SuiteLimits, SuiteRunner
from nightjar_lab.suite.summary import summary_text


@dataclass(frozen=True)
class CaseSelection:
    """Which cases of a suite run: those that match a pattern, at most `limit` of them, and of those one shard."""

    patterns: tuple[str, ...] = ()
    limit: int | None = None
    shard: tuple[int, int] = (1, 1)

    def of(self, names: Sequence[str]) -> list[str]:
        """Return the names that run, in their order; a limit takes them evenly from the whole list."""
        found = [
            name for name in names if not self.patterns or any(matches_pattern(one, name) for one in self.patterns)
        ]
        if self.limit is not None and self.limit < len(found):
            found = [found[place * len(found) // self.limit] for place in range(self.limit)]
        index, total = self.shard
        return found[index - 1 :: total]


@dataclass(frozen=True)
class SuiteReports:
    """Where the reports go; None for none."""

    csv: Path | None = None
    summary: Path | None = None

    def check(self) -> None:
        """Raise FileUnusable for one that cannot be written."""
        for path in (self.csv, self.summary):
            if path is not None:
                check_writable(path)

    def write(
        self, results: Sequence[SuiteResult], *, flow: str, suite: str, missing: int = 0, notices: Iterable[str] = ()
    ) -> None:
        """Write the reports. Raises FileUnusable."""
        if self.csv is not None:
            write_report(self.csv, csv_text(results))
        if self.summary is not None:
            text = summary_text(results, flow=flow, suite=suite, missing=missing, notices=notices)
            write_report(self.summary, text)


@dataclass(frozen=True)
class SuiteRequest:
    """What the caller asks for. `jsonl` is the state: the same request continues a run that was stopped."""

    flow: str
    suite: str
    jsonl: Path
    selection: CaseSelection = field(default_factory=CaseSelection)
    limits: SuiteLimits = field(default_factory=SuiteLimits)
    reports: SuiteReports = field(default_factory=SuiteReports)
    jobs: int = 1
    fresh: bool = False


@dataclass(frozen=True)
class SuiteProgress:
    """How far a run is. `ran` counts the cases of this command, without those that were done before it."""

    total: int
    done: int = 0
    failed: int = 0
    ran: int = 0
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """Cases done, failures, rate and estimate."""
        rate = self.ran / self.seconds if self.seconds else 0.0
        left = (self.total - self.done) / rate if rate else 0.0
        return texts.PROGRESS.format(
            done=self.done,
            total=self.total,
            failed=self.failed,
            rate=rate,
            left=f"{int(left // 60)}:{int(left % 60):02}",
        )


@dataclass(frozen=True)
class SuiteRunEnd:
    """What a run has: the results in the suite's order, and the number of cases that have none."""

    info: SuiteInfo
    results: tuple[SuiteResult, ...]
    missing: int
    stopped: bool

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of results of each outcome."""
        return {outcome.value: count for outcome, count in Counter(one.outcome for one in self.results).most_common()}


def run_suite(
    request: SuiteRequest,
    *,
    progress: Callable[[SuiteProgress], None] = lambda _progress: None,
    notice: Callable[[str], None] = lambda _text: None,
) -> SuiteRunEnd:
    """Run what has no result yet, and write the reports of all of it; Ctrl-C stops it and writes them too.

    Raises CannotRun and FileUnusable; the results that there are stay in the JSONL file.
    """
    request.reports.check()
    check_writable(request.jsonl)
    notices: list[str] = []

    def note(text: str) -> None:
        notices.append(text)
        notice(text)

    with SuiteRunner(request.flow, request.suite, jobs=request.jobs, limits=request.limits, notice=note) as runner:
        info = runner.start()
        chosen = request.selection.of(runner.names())
        if not chosen:
            raise CannotRun(texts.NO_CASES.format(suite=info.suite))
        with SuiteResultFile(request.jsonl, info, fresh=request.fresh) as file:
            stopped = False
            done = sum(name in file.results for name in chosen)
            if done:
                notice(texts.CONTINUES.format(done=done, total=len(chosen), path=request.jsonl))
            try:
                _run_rest(runner, file, chosen, progress)
                runner.finish()
            except KeyboardInterrupt:
                stopped = True
            finally:
                # Also where no further worker can be started: existing results are reported.
                results = tuple(file.results[name] for name in chosen if name in file.results)
                missing = len(chosen) - len(results)
                request.reports.write(results, flow=info.flow, suite=info.suite, missing=missing, notices=notices)
    return SuiteRunEnd(info, results, missing, stopped)


def _run_rest(
    runner: SuiteRunner, file: SuiteResultFile, chosen: Sequence[str], progress: Callable[[SuiteProgress], None]
) -> None:
    began = time.monotonic()
    done = [file.results[name] for name in chosen if name in file.results]
    failed, ran = sum(one.outcome.is_failure for one in done), 0
    for result in runner.run([name for name in chosen if name not in file.results]):
        file.append(result)
        ran, failed = ran + 1, failed + result.outcome.is_failure
        progress(SuiteProgress(len(chosen), len(done) + ran, failed, ran, time.monotonic() - began))
