"""What is known about runs, and what all runs of one commit come to on one target: as the store gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from nightjar_formats.model import Claims, Detail, RunKey, SeenTest, TargetKey


class RunState(StrEnum):
    """The outcome of a run that was announced by its manifest."""

    WAITING = "waiting"
    """A file is missing, or is not what the manifest says: it may still be on its way."""
    STORED = "stored"
    INCOMPLETE = "incomplete"
    """Its files never arrived."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Admission:
    """What we know of a run's commit, from GitHub or our own record; stored for good, since both change later.

    `committed_at` is the committer date in seconds since 1970. `mainline`: the commit is on the nightly branch.
    `pull_request`: the pull request whose head it was.
    """

    committed_at: float
    mainline: bool
    pull_request: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run. `version` is the manifest's ETag or version in the bucket, `reason` what the lab can read about it.

    Of a stored run, `reason` says what was repaired in its files.
    `received_at`: when the bot was first notified, in seconds since 1970. `claims` is None where the manifest could not
    be read, `admission` where the run was not admitted. `bytes`: of its files, as the manifest says.
    """

    key: RunKey
    version: str
    state: RunState
    reason: str
    received_at: float
    bytes: int = 0
    claims: Claims | None = None
    admission: Admission | None = None


@dataclass(frozen=True, slots=True)
class SuiteState:
    """All runs of one suite at one commit on one target, merged to one verdict per test.

    `runs` are its runs, in their order; `broken` are the incomplete ones among them, which report no test.
    `details` holds the tests that did not simply pass. `missing_shards` are the numbers that nobody sent, of
    `shard_total`. Nothing of it depends on the order in which runs arrived.
    """

    suite: str
    runs: tuple[Run, ...]
    seen: Mapping[str, SeenTest]
    details: Mapping[str, Detail]
    shard_total: int = 1
    missing_shards: tuple[int, ...] = ()
    waiting: tuple[Run, ...] = ()
    broken: tuple[Run, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything that was announced has arrived."""
        return not (self.missing_shards or self.waiting or self.broken)


@dataclass(frozen=True, slots=True)
class TargetState:
    """What is known about one commit on one target: all its suites by name, and whose head it is.

    `missing_suites`: the newest earlier commit on the nightly branch, which this one is on too, had results of them.
    """

    about: TargetKey
    sha: str
    suites: Mapping[str, SuiteState]
    pull_request: int | None = None
    mainline: bool = False
    missing_suites: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no suite is missing, and all that were begun are complete."""
        return not self.missing_suites and all(suite.complete for suite in self.suites.values())


@dataclass(frozen=True, slots=True)
class PendingCheck:
    """A check run that is to be written: for which state of the results, and whether more of them is waited for.

    `revision` counts the changes of what is known about the commit on the target. `over`: everything has arrived, or
    nothing more is waited for.
    """

    about: TargetKey
    sha: str
    revision: int
    over: bool
