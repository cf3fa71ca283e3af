"""Search for renamed tests between two tries to write a run, never inside of a transaction.

Names from labs are searched in a separate process (`bot.core.untrusted`), because they decide how long it takes.
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
from bot.results.compare.renames import MAX_STEPS, ended_of, search_renames
from bot.results.compare.texts import SEARCH_SKIPPED, SEARCH_TOO_LONG

if TYPE_CHECKING:
    from bot.core.untrusted.pool import Pool
    from bot.core.untrusted.queue import Owner

Renames = Callable[[Iterable[str], Iterable[str]], Mapping[str, str]]
"""Finds the new names of removed tests (`renames`). Mappings also have the result of each test."""

FEW, FEW_CHARACTERS = 100, 10_000
"""Tests, and characters of their names, that are searched at once: that takes a millisecond or two."""
MOST_SEARCHES = 20
"""Searches for one run; it has at most three for each of the suites that it had before and has now."""

Written = TypeVar("Written")
_Lists = tuple[Mapping[str, Status | None], Mapping[str, Status | None]]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def renames(removed: Iterable[str], new: Iterable[str], *, most_steps: int = MAX_STEPS) -> dict[str, str]:
    """Return the result of `search_renames`; if it gives up, return nothing and write a line to the log."""
    found = search_renames(removed, new, most_steps=most_steps)
    if found is None:
        log.warning(
            SEARCH_SKIPPED,
            reason=SEARCH_TOO_LONG.format(most=most_steps),
            removed=len(set(removed) - set(new)),
            added=len(set(new) - set(removed)),
        )
    return found or {}


class SearchNeeded(Exception):
    """A transaction needs to know which tests were renamed. It was rolled back, and runs again after the search."""

    def __init__(self, lists: _Lists) -> None:
        super().__init__()
        self.lists = lists


class Answers:
    """The results of the searches for one run; short lists are searched at once, with `few`.

    A result depends only on the two lists of names and the results of their tests. So it stays valid if others store
    something meanwhile; if that changes the lists, the transaction asks again.
    """

    def __init__(self, few: Renames) -> None:
        self._few = few
        self._known: list[tuple[_Lists, Mapping[str, str]]] = []

    def __call__(self, removed: Iterable[str], new: Iterable[str]) -> Mapping[str, str]:
        """Return the stored result of a search. Raises `SearchNeeded` if there is none."""
        lists = ended_of(removed), ended_of(new)
        if all(lists) and _are_few(*lists):
            return self._few(*lists)
        for known, found in self._known:  # a few, which are compared in less time than it takes to hash one
            if known == lists:
                return found
        raise SearchNeeded(lists)

    def add(self, lists: _Lists, found: Mapping[str, str]) -> None:
        """Store the result of a search."""
        self._known.append((lists, found))


def _are_few(*lists: Collection[str]) -> bool:
    return sum(map(len, lists)) <= FEW and sum(map(len, chain(*lists))) <= FEW_CHARACTERS


def written(write: Callable[[Renames], Written], search: Renames) -> Written:
    """Write in one transaction, and search for renamed tests outside of it.

    A transaction that needs an unknown result is rolled back, and runs again after the search. Raises `TryAgain` after
    MOST_SEARCHES.
    """
    answers = Answers(search)
    for _ in range(MOST_SEARCHES):
        try:
            return write(answers)
        except SearchNeeded as needed:
            answers.add(needed.lists, search(*needed.lists))
    raise TryAgain(texts.STILL_CHANGING)


async def written_apart(write: Callable[[Renames], Written], pool: Pool, owner: Owner) -> Written:
    """Do the same with the transaction in a thread, and each search in a process of the pool.

    If a search costs too much, no test counts as renamed, and the log says so. Raises `TryAgain` if too many wait.
    """
    answers = Answers(renames)
    for _ in range(MOST_SEARCHES):
        try:
            return await asyncio.to_thread(write, answers)
        except SearchNeeded as needed:
            answers.add(needed.lists, await _searched(pool, owner, needed.lists))
    raise TryAgain(texts.STILL_CHANGING)


async def _searched(pool: Pool, owner: Owner, lists: _Lists) -> Mapping[str, str]:
    why = SEARCH_TOO_LONG.format(most=MAX_STEPS)
    try:
        found = await pool.run(owner, pool.limits.renames, search_renames, *lists)
    except OverLimit as error:
        found, why = None, str(error)
    if found is None:
        removed, added = map(len, lists)
        log.warning(
            SEARCH_SKIPPED, reason=why, repository=owner.repository, part=owner.part, removed=removed, added=added
        )
    return found or {}
