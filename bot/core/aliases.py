"""Names that stand for one another, as maintainers list them: exact names, and prefixes such as `kernel.poll.*`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

STAR = "*"
BOUNDARIES = (".", "/", ":")
"""Each prefix ends with one of these."""
MAX_NAMES = 100
"""Names of one test. More are a mistake, and every name costs a search."""


class Aliases:
    """Pairs of what tests were called and what they are called now; an alias of an alias counts too.

    An exact name goes before a prefix, and a longer prefix before a shorter one. Each pair counts once for a name. A
    prefix that was made longer (`a.*` to `a.b.*`) does not count for names that begin with the longer one.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = tuple(pairs)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._pairs)

    def __eq__(self, other: object) -> bool:
        """Compare by the pairs."""
        return isinstance(other, Aliases) and self._pairs == other._pairs

    def __hash__(self) -> int:
        """Hash the pairs."""
        return hash(self._pairs)

    @cached_property
    def _exact(self) -> dict[str, str]:
        return {old: new for old, new in self._pairs if not old.endswith(STAR)}

    @cached_property
    def _prefixes(self) -> dict[str, str]:
        return {old[:-1]: new[:-1] for old, new in self._pairs if old.endswith(STAR)}

    @cached_property
    def _lengths(self) -> list[int]:
        return sorted({len(prefix) for prefix in self._prefixes}, reverse=True)

    def chain(self, name: str) -> list[str]:
        """Return a name and its later names in order; the last one is the canonical name."""
        names, used = [name], set[str]()
        while (step := self._step(names[-1])) and step[0] not in used:
            used.add(step[0])
            names.append(step[1])
        return names

    def canonical(self, name: str) -> str:
        """Return the canonical name of a test, given any of its names."""
        return self.chain(name)[-1]

    def _step(self, name: str) -> tuple[str, str] | None:
        """Return the key of the pair that applies to a name, and the name that it leads to; None if no pair applies."""
        if name in self._exact:
            return name, self._exact[name]
        for length in self._lengths:
            prefix = name[:length]
            new = self._prefixes.get(prefix) if length <= len(name) else None
            if new is not None and not (new.startswith(prefix) and name.startswith(new)):
                return prefix + STAR, new + name[length:]
        return None

    def others(self, name: str) -> list[str]:
        """Return the other names of the same test, at most MAX_NAMES, whether any test has them or not."""
        last = self.canonical(name)
        names = {last: None}
        waiting = [last]
        while waiting and len(names) <= MAX_NAMES:
            now = waiting.pop()
            for before in self._before(now):
                if before not in names and self.canonical(before) == last:
                    names[before] = None
                    waiting.append(before)
        return [other for other in names if other != name][:MAX_NAMES]

    def _before(self, name: str) -> Iterator[str]:
        """Yield the names that one step may turn into this one."""
        for old, new in self._pairs:
            if not old.endswith(STAR):
                if new == name:
                    yield old
            elif name.startswith(new[:-1]):
                yield old[:-1] + name[len(new) - 1 :]

    def pairs(self, removed: Iterable[str], new: Iterable[str]) -> dict[str, str]:
        """Pair removed names with new ones of the same test, where there is one of each."""
        if not self:
            return {}
        sides: list[Mapping[str, list[str]]] = []
        for names in (removed, new):
            side = defaultdict[str, list[str]](list)
            for name in names:
                side[self.canonical(name)].append(name)
            sides.append(side)
        olds, news = sides
        both = olds.keys() & news.keys()
        return {olds[one][0]: news[one][0] for one in sorted(both) if len(olds[one]) == len(news[one]) == 1}

    def loops(self) -> set[str]:
        """Return the keys of the pairs that lead back to themselves."""
        looping = set()
        for old, _ in self._pairs:
            # No real name contains NUL, so no exact name matches, only prefixes.
            name, used = old.replace(STAR, "\0") if old.endswith(STAR) else old, list[str]()
            while (step := self._step(name)) and step[0] not in used:
                used.append(step[0])
                name = step[1]
            if step:
                looping.update(used[used.index(step[0]) :])
        return looping


NO_ALIASES = Aliases()
