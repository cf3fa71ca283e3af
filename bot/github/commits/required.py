"""Required checks of a commit: patterns over the contexts of statuses and the names of check runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bot.config.types import matches
from bot.core.patterns import is_glob

SETTLED_SECONDS = 2 * 60 * 60
"""Seconds without a new report after which a green commit shows which jobs CI has."""


class State(StrEnum):
    """The state of a status or check; MISSING if there is none. Texts list them in this order."""

    RED = "red"
    PENDING = "pending"
    MISSING = "missing"
    GREEN = "green"


@dataclass(frozen=True, slots=True)
class Signal:
    """A commit status or a check run, by its context or name; signals are equal if name and state are.

    `result` is the status's state or the check run's conclusion, empty while a check runs. `says` and `url` are a
    status's description and target, or a check run's title and details. All of these are untrusted. `app` is the number
    of the App that reported it, 0 if no App is known; `at` is the time of the report in seconds since 1970, None if
    GitHub names none. `ours`: this bot reported it, so it says nothing about the commit (`bot.github.commits.ours`).
    `is_workflow_run`: a workflow run that may still begin jobs, although those that it began have ended. It is no
    status or check, so only patterns match it.
    """

    name: str
    state: State
    result: str = field(default="", compare=False)
    says: str = field(default="", compare=False)
    url: str = field(default="", compare=False)
    app: int = field(default=0, compare=False)
    at: float | None = field(default=None, compare=False)
    ours: bool = field(default=False, compare=False)
    is_workflow_run: bool = field(default=False, compare=False)

    def counts_for(self, pattern: str) -> bool:
        """Return whether the signal counts as CI, and a pattern matches its name."""
        return not self.ours and matches([pattern], self.name) and (is_glob(pattern) or not self.is_workflow_run)


@dataclass(frozen=True, slots=True)
class Expected:
    """The names that a pattern stands for, because it matched them on the commit `sha`."""

    pattern: str
    names: tuple[str, ...]
    sha: str


@dataclass(frozen=True, slots=True)
class BaseCommit:
    """A commit of the base branch, or the pull request's head that was merged as one, with all its signals."""

    sha: str
    signals: tuple[Signal, ...]

    def matched(self, pattern: str) -> list[Signal]:
        """Return the signals of this commit that a pattern matches, except for the bot's own reports."""
        return [signal for signal in self.signals if signal.counts_for(pattern)]

    def is_green(self, pattern: str) -> bool:
        """Return whether a pattern matches signals of this commit, and all of them are green."""
        matched = self.matched(pattern)
        return bool(matched) and all(signal.state is State.GREEN for signal in matched)

    def is_settled(self, pattern: str, moment: float) -> bool:
        """Return whether a pattern is green on this commit and nothing new was reported for `SETTLED_SECONDS`.

        Only then does a missing job show that CI has no such job: a job that `needs:` others has no check run before
        they end. After a failure it shows nothing, because the failure may have stopped other jobs from starting.
        """
        return self.is_green(pattern) and all(
            signal.at is not None and moment - signal.at >= SETTLED_SECONDS for signal in self.matched(pattern)
        )


def stands_for(pattern: str, commits: Sequence[BaseCommit], moment: float) -> list[Expected]:
    """Return the names that a pattern stands for, each with the newest commit that has it.

    `commits` are sorted from newest to oldest; commits after the first settled one are ignored. If there is a settled
    one, only green commits count; otherwise all commits count, whatever their state. `moment` is in seconds since 1970.
    """
    end = next((index for index, commit in enumerate(commits) if commit.is_settled(pattern, moment)), None)
    counted_commits = commits if end is None else [commit for commit in commits[: end + 1] if commit.is_green(pattern)]
    expected: list[Expected] = []
    known_names: set[str] = set()
    for commit in counted_commits:
        names = {signal.name for signal in commit.matched(pattern) if not signal.is_workflow_run} - known_names
        known_names |= names
        if names:
            expected.append(Expected(pattern, tuple(sorted(names)), commit.sha))
    return expected


def blockers(require: Sequence[str], signals: Iterable[Signal]) -> list[Signal]:
    """Return why a commit does not pass: red signals first, then pending ones, then patterns that match nothing.

    Each pattern must match at least one signal, and all that match must be green. The bot's own reports never count,
    whatever a pattern matches.
    """
    reported, blocking = list(signals), set[Signal]()
    for pattern in require:
        matched = [signal for signal in reported if signal.counts_for(pattern)]
        blocking |= {signal for signal in matched if signal.state is not State.GREEN}
        if not matched:
            blocking.add(Signal(pattern, State.MISSING))
    return sorted(blocking, key=lambda signal: (list(State).index(signal.state), signal.name))
