"""Find the owners of a test in the list `owners`, of app.yaml and of the repository's own file, or else elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from bot.core.aliases import STAR

if TYPE_CHECKING:
    from bot.results.settings.owners import OwnedTests

OwnersOf = Callable[[str], tuple[str, ...]]
"""Returns the owners of a test, by its ID; none if nobody is named."""


def no_owners(_test: str) -> tuple[str, ...]:
    """Return nobody."""
    return ()


def owners_of(items: Iterable[OwnedTests], others: OwnersOf = no_owners) -> OwnersOf:
    """Return a function that finds the owners of a test: of several items that match, the last one counts.

    `others` finds those of a test that no item names.
    """
    exact: dict[str, tuple[int, OwnedTests]] = {}
    prefixes: dict[str, tuple[int, OwnedTests]] = {}
    for position, item in enumerate(items):
        if item.test.endswith(STAR):
            prefixes[item.test.removesuffix(STAR)] = (position, item)
        else:
            exact[item.test] = (position, item)
    # One look-up for each length, so that a page with many tests stays fast with a thousand items.
    lengths = sorted({len(prefix) for prefix in prefixes})

    def find(test: str) -> tuple[str, ...]:
        matches = [prefixes[test[:length]] for length in lengths if test[:length] in prefixes]
        matches += [exact[test]] if test in exact else []
        return max(matches, key=lambda match: match[0])[1].owners if matches else others(test)

    return find
