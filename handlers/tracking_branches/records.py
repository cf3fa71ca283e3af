"""The stored state of tracking branches: for the next scan, the API, and metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NotRequired

from typing_extensions import TypedDict

from bot.engine.records import Record
from bot.github.commits.required import State
from bot.github.pull_heads import repository_id_of, repository_ids
from handlers.tracking_branches.decide import CommitVerdict, ScannedCommit

if TYPE_CHECKING:
    from bot.config import Config
    from bot.config.model import RepositoryConfig
    from bot.engine.records import Records

NIGHTLY, LAST_GOOD = "nightly", "last-good"
"""The names of the timers that move the branches, with which the keys of their records begin."""
MOST_BLOCKERS = 10
"""The most sole blockers that are reported, the worst first."""
MOST_MOVES, LONGEST_WHY = 30, 300
"""The most moves of a branch that are stored, and the most characters of the reason of a move."""


@dataclass(frozen=True, slots=True)
class LagReport:
    """How far a branch is behind its source: in commits, and in seconds since the oldest of them was committed.

    `seconds` is None if unknown. `blockers` has the statuses, checks and patterns that are the only blocker of commits,
    each with the number of those commits, the worst first.
    """

    repository: str
    commits: int
    seconds: float | None
    since: str
    blockers: Mapping[str, int]


class TrackingRecord:
    """Reads the records of the branches that timers with one name move."""

    def __init__(self, config: Config, records: Records, name: str) -> None:
        self._config = config
        self._records = records
        self._name = name

    async def of(self, repository: str) -> TrackingState:
        """Return the record of `owner/name`. Raises LookupError if no branch is configured or was scanned."""
        record = await self._record(repository)
        if record is None:
            raise LookupError(repository)
        return record

    async def some(self, repositories: Collection[str]) -> dict[str, TrackingState]:
        """Return the records of some repositories, by name; those for which `of` raises LookupError are left out."""
        names = [name for name in repositories if (config := self._config.repository(name)) and self._is_on(config)]
        ids = await repository_ids(self._records, names)
        keys = {name: TRACKING.of(self._name, number) for name, number in ids.items()}
        stored = await self._records.get_some(list(keys.values()))
        return {name: stored[key.name] for name, key in keys.items() if key.name in stored}

    async def moves(self, repository: str) -> list[TrackingMove]:
        """Return the last moves of the branch of `owner/name`, newest first."""
        return (await self.moves_of([repository])).get(repository, [])

    async def moves_of(self, repositories: Collection[str]) -> dict[str, list[TrackingMove]]:
        """Return the last moves of the branches of some repositories, newest first, by name."""
        records = await self.some(repositories)
        ids = await repository_ids(self._records, list(records))
        keys = {name: TRACKING_MOVES.of(self._name, number) for name, number in ids.items()}
        stored = await self._records.get_some(list(keys.values()))
        branches = {name: stored[key.name] for name, key in keys.items() if key.name in stored}
        # The record outlives a change of the branch in app.yaml.
        return {
            name: branch["moves"] for name, branch in branches.items() if branch["branch"] == records[name]["branch"]
        }

    async def all(self) -> list[tuple[str, TrackingState]]:
        """Return the name and the record of each repository that has one."""
        return list((await self.some(self._config.repositories)).items())

    async def _record(self, repository: str) -> TrackingState | None:
        config = self._config.repository(repository)
        if config is None or not self._is_on(config):
            return None
        repository_id = await repository_id_of(self._records, repository)
        return await self._records.get(TRACKING.of(self._name, repository_id)) if repository_id is not None else None

    def _is_on(self, config: RepositoryConfig) -> bool:
        # The record outlives the feature: once the timer is off, the record is out of date.
        return self._name in config.timers


class StoredLag(TypedDict):
    """The stored form of `Lag`: how far a branch is behind."""

    commits: int
    since: str


class TrackingState(TypedDict):
    """Where a tracking branch is, what its last move was, and why it is not at a newer commit.

    Times are in ISO 8601, and unknown values are None. Only the last good branch has `lag` and `require`.
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
    """The last step of a tracking branch: its target, and its head before, empty if it did not exist.

    Only the nightly branch has `day` and `marked`, which says that the commit has its status.
    """

    sha: str
    before: str
    commits: int | None
    at: str
    day: NotRequired[str]
    marked: NotRequired[bool]


class TrackingMove(TypedDict):
    """A move of a tracking branch. Times are in ISO 8601, and unknown values are None.

    `moved_at` is None if somebody else moved the branch; `found_at` is when a scan found it there. `sha` is None if the
    branch was removed.
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


TRACKING = Record("tracking-branch", 1, TrackingState, "where the branch of a timer is, and why", days=None)
TRACKING_STEP = Record("tracking-step", 1, TrackingStep, "the last step of that branch, taken or not", days=None)
TRACKING_MOVES = Record("tracking-moves", 1, TrackingMoves, "the last moves of that branch", days=None)
RECORDS = (TRACKING, TRACKING_STEP, TRACKING_MOVES)


def moves_to_store(
    stored: Mapping[str, Any], previous_state: Mapping[str, Any], state: TrackingState
) -> TrackingMoves | None:
    """Return the moves of a branch whose record changes from `previous_state` to `state`; None if it has not moved.

    `stored` are the earlier moves. If there are none, the list begins with the move that `previous_state` describes.
    """
    same_branch = previous_state.get("branch") == state["branch"]
    if same_branch and previous_state.get("sha") == state["sha"]:
        return None
    moves = list(stored["moves"]) if stored.get("branch") == state["branch"] else []
    if same_branch and not moves and previous_state["moved_at"]:
        moves = [_move(previous_state, previous_state["previous_sha"])]
    # A branch that existed before the first scan has not moved.
    if (same_branch and previous_state["sha"]) or state["moved_at"]:
        previous_sha = state["previous_sha"] or (previous_state["sha"] if same_branch else None)
        moves.insert(0, _move(state, previous_sha))
    return {"branch": state["branch"], "moves": moves[:MOST_MOVES]} if moves else None


def _move(state: Mapping[str, Any], previous_sha: str | None) -> TrackingMove:
    return {
        "sha": state["sha"],
        "previous_sha": previous_sha,
        "moved_at": state["moved_at"],
        "found_at": state["scanned_at"],
        "commits": state["commits"],
        # `why` is about the last scan. It explains this move only if that scan made the move.
        "why": state["why"][:LONGEST_WHY] if state["moved_at"] == state["scanned_at"] else "",
    }


def reusable_verdicts(record: Mapping[str, Any], require: Iterable[str]) -> dict[str, ScannedCommit]:
    """Return the verdicts of the last scan that can be reused, by SHA.

    Verdicts for other requirements cannot. Nor can those on fit commits: they are checked again before a move.
    """
    if record.get("require") != list(require):
        return {}
    verdicts = map(ScannedCommit.read, record["why_not_newer"])
    return {verdict.commit.sha: verdict for verdict in verdicts if verdict.blockers}


def lag_report(repository: str, record: Mapping[str, Any], moment: float) -> LagReport | None:
    """Return how far a branch is behind at `moment`, in seconds since 1970; None if unknown."""
    lag = record["lag"]
    if lag is None:
        return None
    if not lag["commits"]:
        seconds: float | None = 0.0
    else:
        seconds = max(0.0, moment - datetime.fromisoformat(lag["since"]).timestamp()) if lag["since"] else None
    blockers = sole_blockers(map(ScannedCommit.read, record["why_not_newer"]))
    return LagReport(repository, lag["commits"], seconds, lag["since"], blockers)


def sole_blockers(scanned: Iterable[ScannedCommit]) -> dict[str, int]:
    """Return each sole blocker of commits with the number of commits that it blocks, the worst first.

    A sole blocker is red or missing on a commit where everything else is green. A pending check may become green, so it
    is not a blocker yet, and a commit with a pending check does not count.
    """
    blockers = (commit.blockers[0] for commit in scanned if len(commit.blockers) + commit.unlisted == 1)
    counts = Counter(signal.name for signal in blockers if signal.state in (State.RED, State.MISSING))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_BLOCKERS])
