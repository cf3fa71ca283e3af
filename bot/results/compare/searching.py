"""Search for renamed tests outside of the transaction that writes a run.

The search runs in a separate process (`bot.core.untrusted`), because names from labs determine how long it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import structlog
from nightjar_formats.model import Status

from bot.core.errors import TryAgain
from bot.core.untrusted.limits import OverLimit
from bot.results.compare import texts
from bot.results.compare.renames import MAX_STEPS, search_renames, statuses_of
from bot.results.compare.texts import SEARCH_SKIPPED, SEARCH_TOO_LONG

if TYPE_CHECKING:
    from bot.core.untrusted.pool import Pool
    from bot.core.untrusted.queue import Owner

Renames = Callable[[Iterable[str], Iterable[str]], Mapping[str, str]]
"""Finds the new names of removed tests (`renames`). Mappings also have the status of each test."""

FEW, FEW_CHARACTERS = 100, 10_000
"""Up to so many tests, and characters of their names, the search runs in the transaction: one or two milliseconds."""
MOST_SEARCHES = 20
"""Searches for one run, at most; a run needs up to three for each suite of its old and its new version."""

Written = TypeVar("Written")
_Lists = tuple[Mapping[str, Status | None], Mapping[str, Status | None]]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def renames(removed: Iterable[str], new: Iterable[str], *, most_steps: int = MAX_STEPS) -> dict[str, str]:
    """Return the result of `search_renames`; if it gives up, return nothing and write a line to the log."""
    renamed = search_renames(removed, new, most_steps=most_steps)
    if renamed is None:
        log.warning(
            SEARCH_SKIPPED,
            reason=SEARCH_TOO_LONG.format(most=most_steps),
            removed=len(set(removed) - set(new)),
            added=len(set(new) - set(removed)),
        )
    return renamed or {}


class SearchNeeded(Exception):
    """The transaction was rolled back because it needs a search for renamed tests. It runs again after the search."""

    def __init__(self, lists: _Lists) -> None:
        super().__init__()
        self.lists = lists


class SearchResults:
    """The results of the searches for one run. Short lists are searched immediately, with `search_few`.

    A result depends only on the two lists of tests and their statuses. So it stays valid while other runs are stored;
    if that changes the lists, the transaction needs another search.
    """

    def __init__(self, search_few: Renames) -> None:
        self._search_few = search_few
        self._renamed: list[tuple[_Lists, Mapping[str, str]]] = []

    def __call__(self, removed: Iterable[str], new: Iterable[str]) -> Mapping[str, str]:
        """Return the stored result of a search. Raises `SearchNeeded` if there is none."""
        lists = statuses_of(removed), statuses_of(new)
        if all(lists) and _are_few(*lists):
            return self._search_few(*lists)
        for searched_lists, renamed in self._renamed:  # only a few: comparing them is faster than hashing one
            if searched_lists == lists:
                return renamed
        raise SearchNeeded(lists)

    def add(self, lists: _Lists, renamed: Mapping[str, str]) -> None:
        """Store the result of a search."""
        self._renamed.append((lists, renamed))


def _are_few(*lists: Collection[str]) -> bool:
    return sum(map(len, lists)) <= FEW and sum(map(len, chain(*lists))) <= FEW_CHARACTERS


def write_with_searches(write: Callable[[Renames], Written], search: Renames) -> Written:
    """Call `write`, which writes in one transaction, and search for renamed tests outside of the transaction.

    A transaction that needs an unknown search result is rolled back, and runs again after the search. Raises
    `TryAgain` after MOST_SEARCHES.
    """
    results = SearchResults(search)
    for _ in range(MOST_SEARCHES):
        try:
            return write(results)
        except SearchNeeded as needed:
            results.add(needed.lists, search(*needed.lists))
    raise TryAgain(texts.STILL_CHANGING)


async def write_in_thread(write: Callable[[Renames], Written], pool: Pool, owner: Owner) -> Written:
    """Do the same as `write_with_searches`, with the transaction in a thread and each search in a process of the pool.

    If a search costs too much, no test counts as renamed, and the log says so. Raises `TryAgain` if too many wait.
    """
    results = SearchResults(renames)
    for _ in range(MOST_SEARCHES):
        try:
            return await asyncio.to_thread(write, results)
        except SearchNeeded as needed:
            results.add(needed.lists, await _search_in_pool(pool, owner, needed.lists))
    raise TryAgain(texts.STILL_CHANGING)


async def _search_in_pool(pool: Pool, owner: Owner, lists: _Lists) -> Mapping[str, str]:
    skip_reason = SEARCH_TOO_LONG.format(most=MAX_STEPS)
    try:
        renamed = await pool.run(owner, pool.limits.renames, search_renames, *lists)
    except OverLimit as error:
        renamed, skip_reason = None, str(error)
    if renamed is None:
        removed, added = map(len, lists)
        log.warning(
            SEARCH_SKIPPED,
            reason=skip_reason,
            repository=owner.repository,
            part=owner.part,
            removed=removed,
            added=added,
        )
    return renamed or {}
