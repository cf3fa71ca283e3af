"""Find out which files, folders and packages contain which. No I/O."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

_FOLDER, _PACKAGE = "\x01", "\x02"
_SEPARATORS = str.maketrans({"/": _FOLDER, ".": _PACKAGE})
"""The separator of a place's name sorts before all other characters, so that its content follows right after it."""


class Places:
    """A set of files, folders and packages, as test IDs begin: `tests/ir`, `tests/ir/test_a.py`, `ctypes.tests.ir`.

    It takes memory in proportion to the names, and a lookup takes time in proportion to its name. A set that has all
    parent folders too would take memory in proportion to their depth as well.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._all = sorted({name.translate(_SEPARATORS) for name in names})
        self._outermost: list[str] = []
        for place in self._all:
            if not (self._outermost and _lies_in(place, self._outermost[-1])):
                self._outermost.append(place)

    def contain(self, name: str) -> bool:
        """Return whether `name` is one of the places, or lies inside of one."""
        place = name.translate(_SEPARATORS)
        index = bisect_right(self._outermost, place)
        return index > 0 and _lies_in(place, self._outermost[index - 1])

    def any_inside(self, name: str) -> bool:
        """Return whether one of the places is `name`, or lies inside of it."""
        place = name.translate(_SEPARATORS)
        index = bisect_left(self._all, place)
        return index < len(self._all) and _lies_in(self._all[index], place)


def _lies_in(place: str, outer: str) -> bool:
    return place == outer or place.startswith((outer + _FOLDER, outer + _PACKAGE))
