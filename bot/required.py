"""What is required of a commit: patterns over the contexts of its statuses and the names of its check runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from bot.config.types import matches


class State(StrEnum):
    """How a status or check stands, or, MISSING, that there is none. In the order in which they are told."""

    RED = "red"
    PENDING = "pending"
    MISSING = "missing"
    GREEN = "green"


@dataclass(frozen=True, slots=True)
class Signal:
    """A commit status or a check run, by its context or name; two that stand alike are the same, whatever they say.

    `result` is GitHub's own word, the state or the conclusion, empty while a check runs; `says` and `url` are what is
    shown beside it: a status's description and target, a check run's title and details. All of them come from outside.
    `app` is the number of the App that reported it, 0 for what is not known to be an App's. `ours`: this bot reported
    it, so that it says nothing about the commit (`bot.ours`).
    """

    name: str
    state: State
    result: str = field(default="", compare=False)
    says: str = field(default="", compare=False)
    url: str = field(default="", compare=False)
    app: int = field(default=0, compare=False)
    ours: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Expected:
    """The names that a pattern matched on the commit `sha`, where all of them were green."""

    pattern: str
    names: tuple[str, ...]
    sha: str


def blockers(require: Sequence[str], signals: Iterable[Signal]) -> list[Signal]:
    """Return what keeps a commit from being fit: the red first, then the pending, then patterns that match nothing.

    Each pattern must match at least one signal, and all that match must be green. What the bot itself reported counts
    for nothing, whatever a pattern matches.
    """
    wanted = [signal for signal in signals if not signal.ours and matches(require, signal.name)]
    found = {signal for signal in wanted if signal.state is not State.GREEN}
    found |= {Signal(p, State.MISSING) for p in require if not any(matches([p], s.name) for s in wanted)}
    return sorted(found, key=lambda signal: (list(State).index(signal.state), signal.name))
