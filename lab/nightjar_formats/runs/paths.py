"""Find the files of a repository at one commit by the ends of their paths. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nightjar_formats.limits import MAX_PATH_STEPS
from nightjar_formats.refused import TooMuch
from nightjar_formats.runs import texts

MAX_PARTS = 64
"""The most components of a path or a dotted name; one with more is not searched in the repository."""

Parts = tuple[str, ...]


class Paths:
    """An index of paths by their last component, then by the one before it, and so on.

    A search creates branches when it first gets there, so each path is moved at most MAX_PARTS times for all searches
    together. A search takes a step for each component that it finds. Raises TooMuch beyond MAX_PATH_STEPS in all.
    """

    def __init__(self, paths: Iterable[Parts]) -> None:
        self._root = _Branch(0)
        self._root.paths.extend(paths)
        self._steps = 0

    def ending(self, parts: Sequence[str]) -> tuple[int, Parts | None]:
        """Return the length of the longest end of `parts` that a path has, and this path; None if several have it.

        If one of several consists of this end alone, it is returned, because then `parts` only adds a prefix.
        """
        branch = self._root
        if len(parts) > MAX_PARTS:
            return 0, None
        while branch.depth < len(parts) and (longer := self._longer(branch, parts[-branch.depth - 1])) is not None:
            branch = longer
        if branch is self._root:
            return 0, None
        return branch.depth, branch.whole or (branch.first if branch.count == 1 else None)

    def _longer(self, branch: _Branch, component: str) -> _Branch | None:
        self._steps += 1 + len(branch.paths)
        if self._steps > MAX_PATH_STEPS:
            raise TooMuch(texts.TOO_MANY_STEPS)
        branch.split()
        return branch.longer.get(component)


class _Branch:
    """The paths that share their last `depth` components.

    `paths` are those that `split` has not yet distributed to the longer branches. `whole` is the path that has no
    further component, `first` any path, and `count` their number.
    """

    __slots__ = ("count", "depth", "first", "longer", "paths", "whole")

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.count = 0
        self.first: Parts | None = None
        self.whole: Parts | None = None
        self.paths: list[Parts] = []
        self.longer: dict[str, _Branch] = {}

    def split(self) -> None:
        for path in self.paths:
            name = path[-self.depth - 1]
            branch = self.longer.get(name) or self.longer.setdefault(name, _Branch(self.depth + 1))
            branch.count += 1
            branch.first = branch.first or path
            if len(path) == branch.depth:
                branch.whole = path
            else:
                branch.paths.append(path)
        self.paths = []
