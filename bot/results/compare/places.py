"""Find out which files, folders and packages contain which. No I/O."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

_FOLDER, _PACKAGE = "\x01", "\x02"
_SEPARATORS = str.maketrans({"/": _FOLDER, ".": _PACKAGE})
"""The separator of a place's name sorts before all other characters, so that its content follows right after it."""


class Places:
    """Some places, by the names that test IDs begin with: `tests/ir`, `tests/ir/test_a.py`, `ctypes.tests.ir`.

    Takes memory in proportion to the names, and for each question time in proportion to the name that is asked about.
    A set of all folders of each would take that times their depth.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._all = sorted({name.translate(_SEPARATORS) for name in names})
        self._outermost: list[str] = []
        for place in self._all:
            if not (self._outermost and _lies_in(place, self._outermost[-1])):
                self._outermost.append(place)

    def hold(self, name: str) -> bool:
        """Return whether one of the places is this one, or contains it."""
        place = name.translate(_SEPARATORS)
        index = bisect_right(self._outermost, place)
        return index > 0 and _lies_in(place, self._outermost[index - 1])

    def lie_in(self, name: str) -> bool:
        """Return whether one of the places is this one, or is inside of it."""
        place = name.translate(_SEPARATORS)
        index = bisect_left(self._all, place)
        return index < len(self._all) and _lies_in(self._all[index], place)


def _lies_in(place: str, other: str) -> bool:
    return place == other or place.startswith((other + _FOLDER, other + _PACKAGE))
