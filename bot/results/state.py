"""Runs, and the combined result of a commit's runs on a target, as the store returns them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from nightjar_formats.model import Claims, Detail, RunKey, SeenTest, TargetKey


class RunState(StrEnum):
    """The outcome of a run that was announced by its manifest."""

    WAITING = "waiting"
    """A file is missing or differs from the manifest; it may still arrive."""
    STORED = "stored"
    INCOMPLETE = "incomplete"
    """Its files never arrived."""
    REFUSED = "refused"
    FEW_TESTS = "few tests"
    """A run of a few tests, whose outcome is stored with its job."""


@dataclass(frozen=True, slots=True)
class CommitSummary:
    """What people recognize a commit by; title and author are empty, and the pull request is None, if unknown."""

    title: str
    author: str
    pull_request: int | None


@dataclass(frozen=True, slots=True)
class Admission:
    """What GitHub or our own record says about a run's commit. It is stored for good, because both change later.

    `committed_at` is the committer date in seconds since 1970. `mainline`: the commit is on the nightly branch.
    `pull_request`: the pull request whose head it was. `summary` is there when GitHub has just answered; it is stored
    for the commit, not for each run.
    """

    committed_at: float
    mainline: bool
    pull_request: int | None = None
    summary: CommitSummary | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Run:
    """One run.

    `version` is the manifest's ETag or version in the bucket. `reason` tells the lab why the run is in this state; for
    a stored run it says what was repaired in its files. `received_at` is when the bot was first notified, in seconds
    since 1970. `claims` is None if the manifest could not be read, `admission` if the run was not admitted. `bytes` is
    the size of all its files according to the manifest.
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

    `seen` has the verdict of each test, `details` the details of tests that did not simply pass. `runs` are sorted;
    `broken` are the incomplete ones among them, which report no test. `missing_shards` are the numbers of shards, up to
    `shard_total`, that no run sent. The order in which runs arrived makes no difference.
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
    """The combined result of a commit's runs on a target: all its suites by name, and whose head it is.

    `missing_suites` have no results here, although the newest earlier commit of the nightly branch had some. It is
    empty unless this commit is on the nightly branch, too.
    """

    target: TargetKey
    sha: str
    suites: Mapping[str, SuiteState]
    pull_request: int | None = None
    mainline: bool = False
    missing_suites: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether no suite is missing, and all suites with runs are complete."""
        return not self.missing_suites and all(suite.complete for suite in self.suites.values())


@dataclass(frozen=True, slots=True)
class PendingCheck:
    """A check run that must be written, and for which state of the results.

    `revision` counts the changes of the results of the commit on the target. `over`: all results have arrived, or we no
    longer wait for the rest.
    """

    target: TargetKey
    sha: str
    revision: int
    over: bool
