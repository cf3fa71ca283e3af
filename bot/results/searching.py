"""Search for renamed tests while nobody waits for it: never inside of a transaction that writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import sqlalchemy as sa

from bot.errors import TryAgain
from bot.results.database import ResultsDatabase

Renames = Callable[[Iterable[str], Iterable[str]], Mapping[str, str]]
"""Finds which of the tests that are gone have come back under which new name (`bot.results.renames.renames`)."""

FEW = 100
"""Tests that are looked through at once: that takes a millisecond or two."""
MOST_SEARCHES = 20
"""Searches for one run; it has at most three for each of the suites that it had before and has now."""
KEEPS_CHANGING = "the results beside this run keep changing while it is stored"

Written = TypeVar("Written")
_Lists = tuple[tuple[str, ...], tuple[str, ...]]


class _Unknown(Exception):
    def __init__(self, lists: _Lists) -> None:
        super().__init__()
        self.lists = lists


def written(database: ResultsDatabase, search: Renames, write: Callable[[sa.Connection, Renames], Written]) -> Written:
    """Write in one transaction that may ask which tests were renamed, and search for them outside of it.

    A transaction that asks what is not known yet is undone, and begins anew once it is. An answer depends on the two
    lists of names alone, so it is right whatever others have stored meanwhile; where that changes the question, it is
    asked again. Raises `TryAgain` after MOST_SEARCHES.
    """
    known: dict[_Lists, Mapping[str, str]] = {}

    def answer(gone: Iterable[str], new: Iterable[str]) -> Mapping[str, str]:
        lists = tuple(gone), tuple(new)
        if min(map(len, lists)) and sum(map(len, lists)) <= FEW:
            return search(*lists)
        if lists not in known:
            raise _Unknown(lists)
        return known[lists]

    for _ in range(MOST_SEARCHES):
        try:
            with database.writing() as connection:
                return write(connection, answer)
        except _Unknown as unknown:
            known[unknown.lists] = search(*unknown.lists)
    raise TryAgain(KEEPS_CHANGING)
