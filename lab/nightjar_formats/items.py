"""Take one item of several, or say how many there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

Item = TypeVar("Item")

NO_ITEM = "there is no item"


def first_of(items: Iterable[Item]) -> Item:
    """Return the first item. Raises IndexError if there is none: StopIteration would end a loop or a generator."""
    for item in items:
        return item
    raise IndexError(NO_ITEM)


def counted(count: int, noun: str = "test") -> str:
    """Return a number with its noun, such as `1 test` or `2,000 tests`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
