"""A simulated lab: its runs in order, and the truth about every test, which the code under test never sees."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

PASSED, FAILED, SKIPPED, ABSENT = "P", "F", "S", "-"


class TruthClass(StrEnum):
    """The truth about a test. The value is its name in the table; the letters are its results, run after run."""

    # Reported once each.
    REGRESSION = "fails and stays: `PFFF`"
    TWO_RUNS = "fails in two runs, then passes: `PFFP`"
    AGAIN = "fails, recovers, fails again: `PFFFPPPFFF`"
    SKIPPED_FIRST = "skipped before it fails: `PSFFFF`"
    ABSENT_FIRST = "absent before it fails: `P-FFFF`"
    SKIPPED_INSIDE = "skipped while it fails: `PFSFFFF`"
    BEFORE_MASS = "begins one run before a mass failure"
    MASS = "one of many that fail at once and stay"
    RENAMED = "renamed while it fails"
    FLAKY_REGRESSION = "flaky, then fails every time"
    BORN_FAILING = "added, and fails from its first run"
    ALWAYS_FAILED = "fails from the lab's first run"
    # Never reported.
    STEADY = "passes, or is skipped, in every run"
    SINGLE = "fails in single runs: `PFP`"
    ONE_RUN_MASS = "one of many that fail in one run"
    FLAKY_PROVED = "flaky, and a rerun passes"
    FLAKY = "flaky, without reruns"
    # Only of targets whose results are unreliable for a while.
    BEFORE_UNRELIABLE = "begins before the unstable runs, and lasts"
    WHILE_UNRELIABLE = "begins in the unstable runs, and lasts"
    BACK_AND_FORTH = "passes or fails by chance in the unstable runs"


NEVER_PASSED = frozenset({TruthClass.BORN_FAILING, TruthClass.ALWAYS_FAILED})
SILENT = frozenset(
    {TruthClass.STEADY, TruthClass.SINGLE, TruthClass.ONE_RUN_MASS, TruthClass.FLAKY_PROVED, TruthClass.FLAKY}
)
"""Classes of which nothing is to be reported."""


UNRELIABLE = frozenset({TruthClass.BEFORE_UNRELIABLE, TruthClass.WHILE_UNRELIABLE, TruthClass.BACK_AND_FORTH})
"""Classes of `tests.signal.unreliable` alone."""


class LabFault(StrEnum):
    """What went wrong in a run without usable results."""

    NOTHING_RAN = "no test ran"
    UNREADABLE = "no file could be imported"
    ALL_SKIPPED = "every test was skipped"
    ONE_CAUSE = "every test failed with one cause"
    RUNNER = "the test runner failed"


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """One nightly run.

    `position` counts the commits of the branch; times are in seconds since 1970. `tests` has a letter for each test ID.
    `usable` counts the runs with usable results, from 0; it is None for the others. `interrupted`: the run was killed,
    and not all tests ran. `incomplete`: a shard never arrived.
    """

    position: int
    committed_at: float
    received_at: float
    tests: Mapping[str, str]
    usable: int | None
    fault: LabFault | None = None
    interrupted: bool = False
    incomplete: bool = False
    flaky: frozenset[str] = frozenset()
    """Tests that failed at first, and passed in a rerun."""

    @property
    def sha(self) -> str:
        """Return the SHA of the commit."""
        return sha_of(self.position)

    @property
    def counts(self) -> bool:
        """Return whether later runs are compared with it: it has usable results, though perhaps not for each test."""
        return self.fault is None and not self.incomplete


@dataclass(slots=True)
class SimulatedTest:
    """One test with all its names. `letters` has a result for each usable run, and `names` a name."""

    of_class: TruthClass
    letters: list[str]
    names: list[str]
    proved: set[int] = field(default_factory=set)
    """The usable runs in which it failed, and passed in a rerun."""
    episodes: list[tuple[int, int]] = field(default_factory=list)
    """The first and the last usable run of each lasting failure that is to be reported."""


@dataclass(frozen=True, slots=True)
class RenameEvent:
    """Tests that have other names from a usable run on: old ID to new ID.

    A decoy has none, although tests came and went: `others` are their IDs.
    """

    kind: str
    pairs: Mapping[str, str]
    others: frozenset[str] = frozenset()


@dataclass(frozen=True)
class SimulatedLab:
    """One target of a lab, with the truth about it. `runs` are in the order of their commits."""

    seed: int
    runs: Sequence[SimulatedRun]
    tests: Sequence[SimulatedTest]
    renames: Sequence[RenameEvent]

    @property
    def arrivals(self) -> list[SimulatedRun]:
        """Return the runs in the order of their arrival."""
        return sorted(self.runs, key=lambda run: (run.received_at, run.position))

    def tests_by_name(self) -> dict[str, int]:
        """Return the number of the test that each name belongs to."""
        return {name: number for number, test in enumerate(self.tests) for name in test.names}


def sha_of(position: int) -> str:
    """Return the SHA of a commit; as in reality, its order means nothing."""
    return hashlib.sha1(str(position).encode(), usedforsecurity=False).hexdigest()
