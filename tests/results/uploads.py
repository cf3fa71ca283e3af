"""Uploads for tests, and their expected results from the simplest possible model: a dict of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from nightjar_formats.columns.collect import Columns, collect
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import BAD, Case, Claims, RunKey, Status, TargetKey

from bot.results.state import Admission, Run, RunState

REPOSITORY = "octocat/compiler"
LAB = "example-lab"
TARGET = "adreno"
SUITE = "operators"
ABOUT = TargetKey(REPOSITORY, LAB, TARGET)
GOOD = frozenset({Status.PASSED, Status.XFAILED, Status.XPASSED})


def sha(number: int) -> str:
    """Return the SHA of a commit."""
    return f"{number:040x}"


@dataclass(frozen=True)
class Upload:
    """A run with its tests: `commit` numbers the commits in order of time, unless `at` says otherwise."""

    commit: int
    tests: Mapping[str, str]
    run_id: str = "1"
    target: str = TARGET
    suite: str = SUITE
    attempt: int = 1
    shard: tuple[int, int] = (1, 1)
    mainline: bool = True
    pull_request: int | None = None
    repository: str = REPOSITORY
    at: float | None = None
    flaky: frozenset[str] = field(default_factory=frozenset)
    measured: Mapping[str, tuple[Measurement, ...]] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    """How long tests take, all others half a second."""

    @property
    def run(self) -> Run:
        """Return the run without its tests."""
        claims = Claims(self.suite, self.attempt, *self.shard, environment={"device": "Pixel 9"})
        moment = 1000.0 * self.commit if self.at is None else self.at
        admission = Admission(moment, self.mainline, self.pull_request)
        key = RunKey(self.repository, LAB, self.target, sha(self.commit), self.run_id)
        return Run(key, f"etag-{self.run_id}", RunState.STORED, "", 5000.0, 100, claims, admission)

    @property
    def columns(self) -> Columns:
        """Return its tests as columns; failed ones have a message and a text."""
        return collect((self._case(name, Status(status)) for name, status in self.tests.items()), resolve)

    def _case(self, name: str, status: Status) -> Case:
        message, text = ("boom", f"{name} went wrong") if status in BAD else ("", "")
        return Case(
            name,
            status,
            nodeid=name,
            flaky=name in self.flaky,
            seconds=self.seconds.get(name, 0.5),
            message=message,
            text=text,
            measurements=self.measured.get(name, ()),
        )

    def without_results(self, state: RunState, reason: str = "te.xml is missing") -> Run:
        """Return the run as it is stored while its files are missing, or if they are refused."""
        return replace(self.run, state=state, reason=reason)

    def in_shards(self, total: int) -> list[Upload]:
        """Return the same results as several uploads, each with a part of the tests."""
        parts: list[dict[str, str]] = [{} for _ in range(total)]
        for number, (name, status) in enumerate(self.tests.items()):
            parts[number % total][name] = status
        return [
            replace(self, tests=part, run_id=f"{self.run_id}-{index}", shard=(index, total))
            for index, part in enumerate(parts, 1)
        ]


def resolve(case: Case) -> tuple[str, str]:
    """Return a case's ID unchanged."""
    return case.nodeid, case.nodeid.partition("::")[0]


class Verdict(NamedTuple):
    """The outcome of a test."""

    status: Status
    flaky: bool


Results = dict[str, Verdict]


def merged(uploads: Iterable[Upload]) -> Results:
    """Merge the uploads of one suite and commit by the rules, one result after another."""
    verdicts_of: dict[str, list[Verdict]] = {}
    for upload in sorted(uploads, key=lambda upload: (upload.attempt, upload.run_id)):
        for name, status in upload.tests.items():
            verdicts_of.setdefault(name, []).append(Verdict(Status(status), name in upload.flaky))
    return {
        name: Verdict(
            verdicts[-1].status,
            any(verdict.flaky for verdict in verdicts)
            or (
                {verdict.status for verdict in verdicts} & GOOD != set()
                and {verdict.status for verdict in verdicts} & BAD != set()
            ),
        )
        for name, verdicts in verdicts_of.items()
    }


def is_complete(uploads: Sequence[Upload]) -> bool:
    """Return whether all shards of one suite and commit exist."""
    totals = {upload.shard[1] for upload in uploads}
    return any(
        {upload.shard for upload in uploads} >= {(index + 1, total) for index in range(total)} for total in totals
    )


def series(uploads: Iterable[Upload]) -> list[tuple[str, Results]]:
    """Return the complete nightly commits that tested something, in order, with merged results."""
    by_commit: dict[tuple[float, str], list[Upload]] = {}
    for upload in uploads:
        if upload.mainline:
            assert upload.run.admission is not None
            by_commit.setdefault((upload.run.admission.committed_at, upload.run.key.sha), []).append(upload)
    complete = [
        (commit[1], merged(of_commit)) for commit, of_commit in sorted(by_commit.items()) if is_complete(of_commit)
    ]
    return [
        (commit, tests)
        for commit, tests in complete
        if {verdict.status for verdict in tests.values()} - {Status.SKIPPED}
    ]


def changes(uploads: Iterable[Upload]) -> dict[str, dict[str, tuple[Verdict | None, Verdict | None]]]:
    """Return, for each commit of the series, the tests whose status differs from the previous commit."""
    commits = series(uploads)
    changes_by_commit: dict[str, dict[str, tuple[Verdict | None, Verdict | None]]] = (
        {commits[0][0]: {}} if commits else {}
    )
    for (_, previous), (commit, current) in pairwise(commits):
        names = previous.keys() | current.keys()
        changes_by_commit[commit] = {
            name: (previous.get(name), current.get(name)) for name in names if previous.get(name) != current.get(name)
        }
    return changes_by_commit
