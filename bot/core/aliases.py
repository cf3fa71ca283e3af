"""Old and new names of tests, as maintainers list them: exact names, and prefixes such as `kernel.poll.*`."""

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
    """Pairs of an old name and a new name of tests; a new name may be the old name of another pair.

    An exact name takes precedence over a prefix, and a longer prefix over a shorter one. Each pair applies once to a
    name. A prefix that was made longer (`a.*` to `a.b.*`) does not apply to names that begin with the longer one.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = tuple(pairs)

    def __bool__(self) -> bool:
        """Return whether there are any pairs."""
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
        """Return the other names that a test may have had or may get, at most MAX_NAMES."""
        last = self.canonical(name)
        names = {last: None}
        waiting = [last]
        while waiting and len(names) <= MAX_NAMES:
            later_name = waiting.pop()
            for earlier_name in self._earlier_names(later_name):
                if earlier_name not in names and self.canonical(earlier_name) == last:
                    names[earlier_name] = None
                    waiting.append(earlier_name)
        return [other_name for other_name in names if other_name != name][:MAX_NAMES]

    def _earlier_names(self, name: str) -> Iterator[str]:
        """Yield the names to which one pair applies with this name as the result."""
        for old, new in self._pairs:
            if not old.endswith(STAR):
                if new == name:
                    yield old
            elif name.startswith(new[:-1]):
                yield old[:-1] + name[len(new) - 1 :]

    def pairs(self, removed: Iterable[str], new: Iterable[str]) -> dict[str, str]:
        """Return the new name of each removed one with the same canonical name, if there is one of each."""
        if not self:
            return {}
        removed_names, new_names = self._by_canonical_name(removed), self._by_canonical_name(new)
        return {
            removed_names[canonical][0]: new_names[canonical][0]
            for canonical in sorted(removed_names.keys() & new_names.keys())
            if len(removed_names[canonical]) == len(new_names[canonical]) == 1
        }

    def _by_canonical_name(self, names: Iterable[str]) -> Mapping[str, list[str]]:
        by_canonical_name = defaultdict[str, list[str]](list)
        for name in names:
            by_canonical_name[self.canonical(name)].append(name)
        return by_canonical_name

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
