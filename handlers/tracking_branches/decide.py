"""Decide from a scan where to move a tracking branch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from typing_extensions import TypedDict

from bot.core.listing import counted, listed
from bot.core.utc import iso_utc
from bot.github.commits.refs import BEHIND, IDENTICAL, Commit
from bot.github.commits.required import Signal, State
from handlers.tracking_branches.texts import (
    AT_HEAD,
    BLOCKED,
    COMMITS_AFTER,
    CREATED,
    IS_AHEAD,
    MOVED,
    NO_MATCH,
    NONE_GREEN,
    NOT_NEWEST,
    ONE_NOT_GREEN,
)

MOST_NAMED = 3
"""The most blockers or patterns that one sentence names."""
MOST_STORED = 5
"""The most blockers of a commit that are stored and shown; the others are only counted."""
MOST_REQUESTED, ALWAYS_REQUESTED = 30, 10
"""The most commits whose statuses and checks one scan reads, and how many of these are always the newest ones."""
FIT = "chosen"
"""The verdict on a commit without blockers."""


class TrackingRules(Protocol):
    """What app.yaml says about a tracking branch."""

    @property
    def branch(self) -> str:
        """Return the branch that the bot moves."""
        ...

    @property
    def source(self) -> str:
        """Return the branch that the commits come from."""
        ...

    @property
    def require(self) -> tuple[str, ...]:
        """Return the patterns: each must have a match, and all matches must be green. Empty: every commit is fit."""
        ...


class StoredBlocker(TypedDict):
    """The stored form of a blocker: what makes a commit unfit."""

    name: str
    state: str


class CommitVerdict(TypedDict):
    """The form of `ScannedCommit` in records and in the API."""

    sha: str
    title: str
    committed_at: str | None
    scanned_at: str
    verdict: str
    blockers: list[StoredBlocker]
    more: int


@dataclass(frozen=True, slots=True)
class ScannedCommit:
    """A commit, the time of its scan in ISO 8601, and the blockers that made it unfit then; it is fit without any.

    `unlisted` is the number of further blockers. The list has the order of `bot.github.commits.required.blockers`.
    """

    commit: Commit
    blockers: tuple[Signal, ...]
    scanned_at: str
    unlisted: int = 0

    def as_json(self) -> CommitVerdict:
        """Return the verdict in the form of records and of the API."""
        return {
            "sha": self.commit.sha,
            "title": self.commit.title,
            "committed_at": self.commit.committed_at or None,
            "scanned_at": self.scanned_at,
            "verdict": self.blockers[0].state.value if self.blockers else FIT,
            "blockers": [
                {"name": blocker.name, "state": blocker.state.value} for blocker in self.blockers[:MOST_STORED]
            ],
            "more": self.unlisted + len(self.blockers[MOST_STORED:]),
        }

    @classmethod
    def read(cls, stored: CommitVerdict) -> ScannedCommit:
        """Read a verdict back."""
        blockers = tuple(Signal(blocker["name"], State(blocker["state"])) for blocker in stored["blockers"])
        commit = Commit(stored["sha"], stored["title"], stored["committed_at"] or "")
        return cls(commit, blockers, stored["scanned_at"], stored["more"])


@dataclass(frozen=True, slots=True)
class Lag:
    """How many commits of its source a branch lacks, and when the oldest of them was committed, in ISO 8601.

    `since` is empty if it lacks none, or if the oldest one is further back than the scan.
    """

    commits: int
    since: str


UP_TO_DATE = Lag(0, "")


@dataclass(frozen=True, slots=True)
class TrackingScan:
    """The result of a scan: the head of the branch, the relation of the source to it, and the scanned commits.

    `head` is None if the branch does not exist. `commits` is the number of commits that a move would add, None if
    unknown. `lag` is how far the branch is behind now, None if it does not exist; `lag_after` is how far at the chosen
    commit, None if there is none.
    """

    head: str | None
    relation: str
    scanned: tuple[ScannedCommit, ...]
    commits: int | None = None
    lag: Lag | None = None
    lag_after: Lag | None = None

    @property
    def chosen(self) -> Commit | None:
        """Return the newest commit that is fit, None if there is none."""
        last = self.scanned[-1] if self.scanned else None
        return last.commit if last is not None and not last.blockers else None


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a scan as plain values: move the branch to `chosen`, or leave it if that is empty.

    `before` is the head of the branch, empty if it does not exist. `fine`: nothing blocks a move, so an open issue can
    be closed. `at` is the timer's scheduled time, in ISO 8601.
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


def decide_step(scan: TrackingScan, rules: TrackingRules, moment: float) -> Step:
    """Return the result of a scan that was scheduled for `moment`, in seconds since 1970.

    A branch that has diverged also gets a move. The move is refused, and the refusal is reported like any other.
    """
    chosen, branch, source = scan.chosen, rules.branch, rules.source
    return Step(
        branch=branch,
        source=source,
        chosen=chosen.sha if chosen else "",
        before=scan.head or "",
        commits=scan.commits,
        fine=chosen is not None or scan.relation in (IDENTICAL, BEHIND),
        at=iso_utc(moment),
        why=_explain(scan, branch, source),
        why_not_newer=tuple(commit.as_json() for commit in scan.scanned),
    )


def commits_to_request(candidates: Sequence[Commit], verdicts: Mapping[str, ScannedCommit]) -> frozenset[str]:
    """Return the SHAs of the candidates to request from GitHub, at most MOST_REQUESTED; `candidates` are newest first.

    `verdicts` are those of the last scan, by SHA. The newest candidates are always requested, then those without a
    verdict, then those with the oldest verdicts. No verdict is final, because CI may still run or run again: each
    commit has its turn, less often if there are many.
    """
    newest, older = candidates[:ALWAYS_REQUESTED], candidates[ALWAYS_REQUESTED:]
    # The empty text sorts first: commits without a verdict come before those with the oldest ones.
    by_age = sorted(older, key=lambda commit: verdicts[commit.sha].scanned_at if commit.sha in verdicts else "")
    return frozenset(commit.sha for commit in (*newest, *by_age[: MOST_REQUESTED - ALWAYS_REQUESTED]))


def _explain(scan: TrackingScan, branch: str, source: str) -> str:
    values = {"branch": branch, "source": source, "count": len(scan.scanned)}
    newest = _describe_blockers(scan.scanned[0]) if scan.scanned and scan.scanned[0].blockers else ""
    if scan.chosen is not None:
        text = (CREATED if scan.head is None else MOVED).format(**values, sha=scan.chosen.sha[:7])
        if scan.head and scan.commits:
            text += COMMITS_AFTER.format(commits=counted(scan.commits, "commit"), head=scan.head[:7])
        return text + (NOT_NEWEST.format(newest=newest) if newest else "")
    if not scan.scanned:
        return (AT_HEAD if scan.relation == IDENTICAL else IS_AHEAD).format(**values)
    if len(scan.scanned) == 1:
        return ONE_NOT_GREEN.format(**values, newest=newest)
    patterns = _unmatched_patterns(scan.scanned)
    text = NO_MATCH.format(patterns=listed(patterns, MOST_NAMED)) if patterns else ""
    return NONE_GREEN.format(**values, newest=newest) + text


def _unmatched_patterns(scanned: Iterable[ScannedCommit]) -> list[str]:
    """Return the patterns without a match on any commit whose blockers are all known."""
    # A stored verdict lists at most `MOST_STORED` blockers, so an unmatched pattern may not be among them.
    fully_listed = [commit for commit in scanned if not commit.unlisted]
    missing = [{signal.name for signal in commit.blockers if signal.state is State.MISSING} for commit in fully_listed]
    return sorted(set.intersection(*missing)) if len(missing) > 1 else []


def _describe_blockers(scanned: ScannedCommit) -> str:
    descriptions = [f"{signal.name} is {signal.state}" for signal in scanned.blockers]
    return BLOCKED.format(
        sha=scanned.commit.sha[:7], blockers=listed(descriptions, MOST_NAMED, len(descriptions) + scanned.unlisted)
    )
