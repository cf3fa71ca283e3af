"""Decide where a branch that tracks another one moves, by a scan. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from typing_extensions import TypedDict

from bot.core.listing import listed
from bot.core.utc import iso_utc
from bot.github.refs import BEHIND, IDENTICAL, Commit
from bot.github.required import Signal, State
from handlers.branches.texts import (
    AT_HEAD,
    BLOCKED,
    COMMITS,
    CREATED,
    IS_AHEAD,
    MOVED,
    NO_MATCH,
    NONE_GREEN,
    NOT_NEWEST,
    ONE_COMMIT,
    ONE_NOT_GREEN,
    SOME_COMMITS,
)

MOST_NAMED = 3
"""Blockers, or patterns, that a sentence names."""
MOST_STORED = 5
"""Blockers of a commit that are stored and shown; of the others, how many there are."""
MOST_ASKED, ALWAYS_ASKED = 30, 10
"""Commits whose statuses and checks are read in one scan, and how many of them are the newest."""
FIT = "chosen"
"""The verdict on a commit that nothing keeps from being fit."""


class TrackingRules(Protocol):
    """What app.yaml says about a branch that follows another."""

    @property
    def branch(self) -> str:
        """Return the branch that is moved."""
        ...

    @property
    def source(self) -> str:
        """Return the branch that the commits come from."""
        ...

    @property
    def require(self) -> tuple[str, ...]:
        """Return the patterns that must each be matched, by what is green alone; empty: any commit is fit."""
        ...


class StoredBlocker(TypedDict):
    """What makes a commit unfit, as it is stored."""

    name: str
    state: str


class CommitVerdict(TypedDict):
    """`ScannedCommit`, as it is stored and as the API shows it."""

    sha: str
    title: str
    committed_at: str | None
    scanned_at: str
    verdict: str
    blockers: list[StoredBlocker]
    more: int


@dataclass(frozen=True, slots=True)
class ScannedCommit:
    """A commit, and what made it unfit when it was scanned (in ISO 8601): nothing, if it is fit.

    `more` blockers are not listed. Those that are listed come in the order of `bot.github.required.blockers`.
    """

    commit: Commit
    blockers: tuple[Signal, ...]
    scanned_at: str
    more: int = 0

    def as_json(self) -> CommitVerdict:
        """Return the verdict as it is stored and as the API returns it."""
        return {
            "sha": self.commit.sha,
            "title": self.commit.title,
            "committed_at": self.commit.committed_at or None,
            "scanned_at": self.scanned_at,
            "verdict": self.blockers[0].state.value if self.blockers else FIT,
            "blockers": [{"name": one.name, "state": one.state.value} for one in self.blockers[:MOST_STORED]],
            "more": self.more + len(self.blockers[MOST_STORED:]),
        }

    @classmethod
    def read(cls, stored: CommitVerdict) -> ScannedCommit:
        """Read a verdict back."""
        blockers = tuple(Signal(one["name"], State(one["state"])) for one in stored["blockers"])
        commit = Commit(stored["sha"], stored["title"], stored["committed_at"] or "")
        return cls(commit, blockers, stored["scanned_at"], stored["more"])


@dataclass(frozen=True, slots=True)
class Lag:
    """How many commits of its source a branch lacks, and when the oldest of them was committed, in ISO 8601.

    `since` is empty where it lacks none, or where that was too far back to be seen.
    """

    commits: int
    since: str


UP_TO_DATE = Lag(0, "")


@dataclass(frozen=True, slots=True)
class TrackingScan:
    """What was seen: where the branch is (None: nowhere), how its source lies to it, and the commits scanned.

    `commits` is how many it would move by, None where that is not known. `lag` is how far it is behind, `lag_after` how
    far once it is at the chosen commit; None where there is no branch, and no such commit.
    """

    before: str | None
    relation: str
    scanned: tuple[ScannedCommit, ...]
    commits: int | None = None
    lag: Lag | None = None
    lag_after: Lag | None = None

    @property
    def chosen(self) -> Commit | None:
        """Return the newest commit that is fit, None where there is none."""
        last = self.scanned[-1] if self.scanned else None
        return last.commit if last is not None and not last.blockers else None


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a scan as plain values: the branch should be at `chosen`, or stay if that is empty.

    `before` is where the branch was, empty if there was none. `fine`: nothing blocks the move, so that an issue may be
    closed. `at` is the timer's scheduled time, in ISO 8601.
    """

    branch: str
    source: str
    chosen: str
    before: str
    commits: int | None
    fine: bool
    at: str
    why: str
    why_not_newer: tuple[CommitVerdict, ...]


def step_of(scan: TrackingScan, rules: TrackingRules, at: float) -> Step:
    """Return the result of a scan at a moment, in seconds since 1970.

    Where the branch has diverged, it is to be moved all the same: that is refused, and reported in one way.
    """
    chosen = scan.chosen
    return Step(
        branch=rules.branch,
        source=rules.source,
        chosen=chosen.sha if chosen else "",
        before=scan.before or "",
        commits=scan.commits,
        fine=chosen is not None or scan.relation in (IDENTICAL, BEHIND),
        at=iso_utc(at),
        why=_why(scan, rules),
        why_not_newer=tuple(one.as_json() for one in scan.scanned),
    )


def to_scan(candidates: Sequence[Commit], known: Mapping[str, ScannedCommit]) -> frozenset[str]:
    """Return which of the candidates, given newest first, to ask about: MOST_ASKED at most.

    These are the newest, each time, and of the others the new ones and then the oldest verdicts. No verdict is final,
    for what runs ends, and what is red may be run again: each commit's turn comes, of many less often.
    """
    newest, others = candidates[:ALWAYS_ASKED], candidates[ALWAYS_ASKED:]
    # The empty text sorts first: what was never asked about comes before the oldest verdict.
    by_age = sorted(others, key=lambda commit: known[commit.sha].scanned_at if commit.sha in known else "")
    return frozenset(commit.sha for commit in (*newest, *by_age[: MOST_ASKED - ALWAYS_ASKED]))


def _why(scan: TrackingScan, rules: TrackingRules) -> str:
    names = {"branch": rules.branch, "source": rules.source, "count": len(scan.scanned)}
    newest = _blocked(scan.scanned[0]) if scan.scanned and scan.scanned[0].blockers else ""
    if scan.chosen is not None:
        moves = CREATED if scan.before is None else MOVED
        reported = moves.format(**names, sha=scan.chosen.sha[:7], commits=_count(scan.commits))
        return reported + (NOT_NEWEST.format(newest=newest) if newest else "")
    if not scan.scanned:
        return (AT_HEAD if scan.relation == IDENTICAL else IS_AHEAD).format(**names)
    if len(scan.scanned) == 1:
        return ONE_NOT_GREEN.format(**names, newest=newest)
    patterns = _unmatched(scan.scanned)
    reported = NO_MATCH.format(patterns=listed(patterns, MOST_NAMED)) if patterns else ""
    return NONE_GREEN.format(**names, newest=newest) + reported


def _unmatched(scanned: Iterable[ScannedCommit]) -> list[str]:
    """Return the patterns that nothing matches on any of the commits whose blockers are all known."""
    # A verdict from the record has only `MOST_STORED` blockers: a pattern that is not among them may still be
    # unmatched.
    whole = [one for one in scanned if not one.more]
    missing = [{signal.name for signal in one.blockers if signal.state is State.MISSING} for one in whole]
    return sorted(set.intersection(*missing)) if len(missing) > 1 else []


def _count(commits: int | None) -> str:
    if commits is None:
        return SOME_COMMITS
    return ONE_COMMIT if commits == 1 else COMMITS.format(count=commits)


def _blocked(scanned: ScannedCommit) -> str:
    named = [f"{signal.name} is {signal.state}" for signal in scanned.blockers]
    return BLOCKED.format(sha=scanned.commit.sha[:7], blockers=listed(named, MOST_NAMED, len(named) + scanned.more))
