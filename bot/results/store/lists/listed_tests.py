"""The request for a list of tests."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.aliases import NO_ALIASES, Aliases


@dataclass(frozen=True, slots=True)
class ListedTests:
    """Which tests of a repository a list has: `limit` of them, from the place `start` on.

    `target` is a lab and its target, None for all; `text` is a part of their IDs, in lower case. `aliases` are the
    names of tests that maintainers renamed.
    """

    repository: str
    target: tuple[str, str] | None = None
    text: str = ""
    start: int = 0
    limit: int = 100
    aliases: Aliases = NO_ALIASES
