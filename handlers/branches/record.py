"""What is stored of branches that follow another: for the next scan, for the API, and for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NotRequired

from typing_extensions import TypedDict

from bot.engine.records import Record
from bot.github.pull_heads import repository_id_of
from bot.github.required import State
from handlers.branches.decide import CommitVerdict, ScannedCommit

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records

NIGHTLY, LAST_GOOD = "nightly", "last-good"
"""The timers that move them, and the beginnings of their records' keys."""
MOST_BLOCKERS = 10
"""Sole blockers that are reported, the worst ones."""
MOST_MOVES, LONGEST_WHY = 30, 300
"""Moves of a branch that are stored, and characters of the reason for one."""


@dataclass(frozen=True, slots=True)
class Behind:
    """How far a branch is behind its source: in commits, and in seconds that the oldest of them has waited.

    `seconds` is None where that is not known. `blockers` are the statuses, checks and patterns that each keep so many
    commits from being good all by themselves, the worst first.
    """

    repository: str
    commits: int
    seconds: float | None
    since: str
    blockers: Mapping[str, int]


class TrackingRecord:
    """What is stored of the branches that the timers of one name move."""

    def __init__(self, config: Config, records: Records, name: str) -> None:
        self._config = config
        self._records = records
        self._name = name

    async def of(self, repository: str) -> TrackingState:
        """Return the record of `owner/name`; raises LookupError where no branch is moved or was scanned."""
        record = await self._record(repository)
        if record is None:
            raise LookupError(repository)
        return record

    async def moves(self, repository: str) -> list[TrackingMove]:
        """Return the last moves of the branch of `owner/name`, newest first."""
        repository_id = await repository_id_of(self._records, repository)
        stored = await self._records.get(TRACKING_MOVES.of(self._name, repository_id)) if repository_id else None
        record = await self._record(repository)
        return stored["moves"] if stored and record and stored["branch"] == record["branch"] else []

    async def all(self) -> list[tuple[str, TrackingState]]:
        """Return each repository's name with its record, where there is one."""
        found = [(repository, await self._record(repository)) for repository in self._config.repositories]
        return [(repository, record) for repository, record in found if record is not None]

    async def _record(self, repository: str) -> TrackingState | None:
        config = self._config.repository(repository)
        # The record outlives the feature: where the timer is off, what it says is no longer true.
        if config is None or self._name not in config.timers:
            return None
        repository_id = await repository_id_of(self._records, repository)
        return await self._records.get(TRACKING.of(self._name, repository_id)) if repository_id is not None else None


class StoredLag(TypedDict):
    """How far a branch is behind, as it is stored; see `Lag`."""

    commits: int
    since: str


class TrackingState(TypedDict):
    """Where a tracking branch is, what its last move was, and why it is not at a newer commit.

    Moments are in ISO 8601. What is not known is None. `lag` and `require` are those of the last good branch.
    """

    branch: str
    sha: str | None
    previous_sha: str | None
    moved_at: str | None
    commits: int | None
    scanned_at: str
    why: str
    trouble: str
    why_not_newer: list[CommitVerdict]
    lag: NotRequired[StoredLag | None]
    require: NotRequired[list[str]]


class TrackingStep(TypedDict):
    """The last step of a tracking branch: where it was to be, and where it was before, empty for nowhere.

    `day` and `marked` (the commit has its status) are those of the nightly branch.
    """

    sha: str
    before: str
    commits: int | None
    at: str
    day: NotRequired[str]
    marked: NotRequired[bool]


class TrackingMove(TypedDict):
    """A move of a tracking branch; moments are in ISO 8601, what is not known is None.

    `moved_at` is None for a move that was not ours; `found_at` is when a scan found the branch there. `sha` is None
    where the branch was removed.
    """

    sha: str | None
    previous_sha: str | None
    moved_at: str | None
    found_at: str
    commits: int | None
    why: str


class TrackingMoves(TypedDict):
    """The last moves of a branch, newest first."""

    branch: str
    moves: list[TrackingMove]


TRACKING = Record("tracking-branch", 1, TrackingState, "where the branch is that a timer moves, and why", days=None)
TRACKING_STEP = Record("tracking-step", 1, TrackingStep, "the last step of that branch, taken or not", days=None)
TRACKING_MOVES = Record("tracking-moves", 1, TrackingMoves, "the last moves of that branch", days=None)
RECORDS = (TRACKING, TRACKING_STEP, TRACKING_MOVES)


def moves_after(known: Mapping[str, Any], before: Mapping[str, Any], record: TrackingState) -> TrackingMoves | None:
    """Return the moves of a branch once its record is `record` and no longer `before`; None where it has not moved.

    `known` are the moves that are stored. Where none are, the last move that `before` has is the first one.
    """
    same_branch = before.get("branch") == record["branch"]
    if same_branch and before.get("sha") == record["sha"]:
        return None
    moves = list(known["moves"]) if known.get("branch") == record["branch"] else []
    if same_branch and not moves and before["moved_at"]:
        moves = [_move(before, before["previous_sha"])]
    # A branch that was there before the first scan has not moved.
    if (same_branch and before["sha"]) or record["moved_at"]:
        previous = record["previous_sha"] or (before["sha"] if same_branch else None)
        moves.insert(0, _move(record, previous))
    return {"branch": record["branch"], "moves": moves[:MOST_MOVES]} if moves else None


def _move(record: Mapping[str, Any], previous: str | None) -> TrackingMove:
    return {
        "sha": record["sha"],
        "previous_sha": previous,
        "moved_at": record["moved_at"],
        "found_at": record["scanned_at"],
        "commits": record["commits"],
        # The sentence is about the last scan, which is the move's own where that was ours and did not fail.
        "why": record["why"][:LONGEST_WHY] if record["moved_at"] == record["scanned_at"] else "",
    }


def known_of(record: Mapping[str, Any], require: Iterable[str]) -> dict[str, ScannedCommit]:
    """Return the verdicts of the last scan that are still worth something, by SHA.

    Not those of other requirements, and not what was fit: that is asked again before the branch is moved to it.
    """
    if record.get("require") != list(require):
        return {}
    verdicts = map(ScannedCommit.read, record["why_not_newer"])
    return {one.commit.sha: one for one in verdicts if one.blockers}


def behind_of(repository: str, record: Mapping[str, Any], now: float) -> Behind | None:
    """Return how far a branch is behind at a moment, in seconds since 1970; None where that is not known."""
    lag = record["lag"]
    if lag is None:
        return None
    if not lag["commits"]:
        seconds: float | None = 0.0
    else:
        seconds = max(0.0, now - datetime.fromisoformat(lag["since"]).timestamp()) if lag["since"] else None
    blockers = sole_blockers(map(ScannedCommit.read, record["why_not_newer"]))
    return Behind(repository, lag["commits"], seconds, lag["since"], blockers)


def sole_blockers(scanned: Iterable[ScannedCommit]) -> dict[str, int]:
    """Return what alone keeps commits from being fit, and how many, the worst first.

    That is what is red or missing where everything else is green. What is pending may become green by itself, so it is
    no blocker yet; and beside something pending nobody knows yet what will be the only one.
    """
    alone = (one.blockers[0] for one in scanned if len(one.blockers) + one.more == 1)
    counted = Counter(signal.name for signal in alone if signal.state in (State.RED, State.MISSING))
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:MOST_BLOCKERS])
