"""What the bot remembers of a draft that reverts the culprit of a search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bot.core.events import pull_lock
from bot.engine.internal import InternalEvent
from bot.engine.records import Record
from handlers.searches.records import DAYS, AskedRun

REVERT_PURPOSE = "revert:"
"""How the purposes of the jobs of reverted heads begin: `revert:SEARCH:SHA:NUMBER`."""
BRANCH = "nightjar/revert-{pull}-{search}"


class RevertStage(StrEnum):
    """How far a revert is. Only a draft that was `OPENED` is on GitHub."""

    WAITING = "waiting"
    """No device is idle, or none that was asked ran the tests."""
    TESTING = "testing"
    OPENED = "opened"
    FAILED = "failed"
    """The tests fail without the culprit too."""
    UNKNOWN = "unknown"
    """No lab ran the tests."""
    CONFLICT = "conflict"
    """Later commits changed the same lines."""
    NOTHING = "nothing"
    """The branch no longer has the change."""
    EXISTS = "exists"
    """Another pull request reverts it, or did: `number`."""
    REFUSED = "refused"
    """GitHub refused a write; `reason` says why."""
    WITHDRAWN = "withdrawn"
    """The search no longer names this pull request."""


IN_WORK = frozenset({RevertStage.WAITING, RevertStage.TESTING})


@dataclass(frozen=True, slots=True)
class CulpritRevert:
    """The revert of a merged pull request that a search names.

    `head` is the commit with the revert and `tip` the one before, both on `base`, the branch into which it was merged;
    all are empty until the tests run. `runs` are the jobs at `head`; the position of their commits means nothing.
    `number` is the draft, or the pull request that reverts it already; 0 for none. `step` counts the changes.
    """

    search: str
    pull: int
    stage: RevertStage = RevertStage.WAITING
    base: str = ""
    tip: str = ""
    head: str = ""
    runs: tuple[AskedRun, ...] = ()
    number: int = 0
    is_own: bool = False
    """Whether the bot opened `number` for this search."""
    reason: str = ""
    step: int = 0

    @property
    def branch(self) -> str:
        """The branch of the reverted head, while the tests run."""
        return BRANCH.format(pull=self.pull, search=self.search)

    @property
    def subject(self) -> str:
        """What its head and its draft are stored under."""
        return f"{self.search}:{self.pull}"

    def purpose(self, number: int) -> str:
        """Return the purpose of the job of a run."""
        return f"{REVERT_PURPOSE}{self.search}:{self.head[:12]}:{number}"


CULPRIT_REVERT = Record("culprit-revert", 1, CulpritRevert, "a draft that reverts the culprit of a search", days=DAYS)


@dataclass(frozen=True, slots=True)
class WaitingRevert:
    """A revert of a pull request whose tests have not ended; `id` is that of the search."""

    repository: str
    id: str
    pull: int


OPEN_REVERT = Record("open-revert", 1, WaitingRevert, "the tests run without the culprit of a search", days=DAYS)


@dataclass(frozen=True, slots=True)
class RevertedHead:
    """The commit `head` of a branch that reverts a pull request, and the commit before, `tip`; empty without a branch.

    Without `head`, the pull request cannot be reverted there: later commits changed the same lines. If `is_same`, the
    revert changes nothing.
    """

    tip: str
    head: str = ""
    is_same: bool = False


REVERTED_HEAD = Record("reverted-head", 1, RevertedHead, "a commit on which tests run without a culprit", days=DAYS)


@dataclass(frozen=True, slots=True)
class RevertEvent:
    """The revert of a search's culprit, `pull`, must be looked at. `asked` identifies the event.

    `at` is the time, in seconds since 1970.
    """

    id: str
    pull: int
    asked: str
    at: float


def _lock(repository: int, event: RevertEvent) -> str:
    # All writes about one culprit happen in their order, so it has one draft; the page of the pull request shows them.
    return pull_lock(repository, event.pull)


REVERT_EVENT = InternalEvent(
    "nightjar.culprit-revert",
    RevertEvent,
    guid=lambda repository, event: f"culprit-revert:{repository}:{event.id}:{event.asked}",
    lock=_lock,
    number=lambda event: event.pull,
)
