"""What the program gives to features when it starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from bot.config import Config
    from bot.core.parts import PartKey, PartMap
    from bot.engine.internal import Announce
    from bot.engine.jobs.journal import Journal
    from bot.engine.records import Records
    from bot.engine.sql.transactions import Connector
    from bot.github.client import GitHub

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Services:
    """What a feature may use outside of plans and effects: for its routes, its timers and its metrics.

    `github_for` gives a client for `owner/name` that refuses to write, `now` seconds since 1970.
    """

    config: Config
    records: Records
    journal: Journal
    announce: Announce
    github_for: Callable[[str], Awaitable[GitHub]]
    now: Callable[[], float]
    parts: PartMap
    connector: Connector
    """The engine's database, for what has tables of its own there."""

    def part(self, key: PartKey[T]) -> T:
        """Return what another module provides. Raises LookupError where nobody does."""
        return self.parts[key]
