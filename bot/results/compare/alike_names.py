"""Pair names that are alike, with no other name like them: the candidates of a search for renamed tests. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import cast

from bot.results.compare.name_parts import Parts, SplitName, new_tuple, words_in
from bot.results.compare.steps import StepBudget

MANY = 10
"""The same change of words must rename so many tests at any position, or in smaller classes together."""
LONGEST_END, LONGEST_BEGINNING = 8, 8
"""Parts of a name that are compared, at most. A runner that writes the class into the name too, such as Zephyr's, has
`kernel.poll::kernel.poll.userspace.wait`: only a long beginning distinguishes the scenarios that run the same tests."""
RARE = 0.1
"""A word vanished if it is in the new names at most so many times as often as in the removed ones; and reversely."""

_Keys = Callable[[Iterable[SplitName]], list[int | None]]
"""What names must have in common, as a hash, because it may be as long as the name; None if there is nothing."""


def alike_names(
    removed: Mapping[str, SplitName], added: Mapping[str, SplitName], counts: WordCounts, steps: StepBudget
) -> list[tuple[str, str]]:
    """Return pairs of names that are alike, with no other name like them on either side; the most similar first."""
    left, right = dict(removed), dict(added)
    pairs = _paired(left, right, chain([_by_words], _by_ends(removed, added)), steps)
    if not (left and right):
        return pairs
    rare = [words for words in _rare(counts) if words]
    pairs += _paired(left, right, map(_without, rare), steps)
    if rare and left and right:
        left, right = (_bare(side, set[str]().union(*rare), steps) for side in (left, right))
        for before, after in _paired(left, right, _by_ends(left, right), steps):
            few, many = removed[before].words, added[after].words
            if len(few) > len(many):
                few, many = many, few
            # Words for others would be no more than a beginning for another.
            if set(many).issuperset(few) or set(few).issuperset(many):
                pairs.append((before, after))
    return pairs


def _paired(
    left: dict[str, SplitName], right: dict[str, SplitName], ways: Iterable[_Keys], steps: StepBudget
) -> list[tuple[str, str]]:
    """Return names that alone share something in one of some ways, and take them away; each way costs once needed."""
    found: list[tuple[str, str]] = []
    for keys in ways:
        shared, of_others = (_keys_of(side, keys, steps) for side in (left, right))
        if set(shared).isdisjoint(of_others):
            continue
        known, others = _alone(left, shared), _alone(right, of_others)
        pairs = [(test, others[key]) for key, test in known.items() if key in others]
        found += pairs
        if len(pairs) == len(left) == len(right):
            left.clear()
            right.clear()
        for before, after in pairs if left else ():
            del left[before], right[after]
        if not (left and right):
            break
    return found


def _keys_of(names: Mapping[str, SplitName], keys: _Keys, steps: StepBudget) -> list[int | None]:
    steps.take(len(names))
    shared = keys(names.values())
    steps.take(LONGEST_END * (len(names) - shared.count(None)))
    return shared


def _alone(names: Mapping[str, SplitName], shared: Sequence[int | None]) -> dict[int, str]:
    """Return tests by a property that no other test has; `shared` has that of each."""
    found = dict(zip(shared, names, strict=True))
    if len(found) == len(names) and None not in found:
        return cast(dict[int, str], found)
    counts = Counter(shared)
    return {key: test for key, test in zip(shared, names, strict=True) if key is not None and counts[key] == 1}


def _by_words(names: Iterable[SplitName]) -> list[int | None]:
    return [hash((frozenset(words), brackets)) for _, words, brackets, _ in names]


def _by_ends(removed: Mapping[str, SplitName], added: Mapping[str, SplitName]) -> Iterator[_Keys]:
    """Yield how to share a beginning and an end: those of many parts first, and no beginning last."""
    shared = {name.parts[-1] for name in removed.values()} & {name.parts[-1] for name in added.values()}
    sides = ([len(name.parts) for name in side.values() if name.parts[-1] in shared] for side in (removed, added))
    longest = min(max(lengths, default=0) for lengths in sides)
    sizes = [(first, last) for first in range(LONGEST_BEGINNING + 1) for last in range(1, LONGEST_END + 1)]
    possible = [size for size in sizes if sum(size) <= longest]
    for first, last in sorted(possible, key=lambda size: (-sum(size), -size[1])):

        def keys(names: Iterable[SplitName], first: int = first, last: int = last) -> list[int | None]:
            least = first + last
            return [
                hash((parts[:first], parts[-last:])) if parts[-1] in shared and len(parts) >= least else None
                for parts, *_ in names
            ]

        yield keys


def _rare(counts: WordCounts) -> list[set[str]]:
    """Return the words that vanished from all names, and those that appeared in all names."""
    olds, news = counts.of_words
    return [
        {word for word, count in many.items() if count >= MANY and few[word] <= RARE * count and not word.isdecimal()}
        for many, few in ((olds, news), (news, olds))
    ]


def _without(rare: Collection[str]) -> _Keys:
    """Return the comparison by all words except the rare ones."""

    def keys(names: Iterable[SplitName]) -> list[int | None]:
        # Hundreds of names share their beginning.
        beginnings: dict[str, Parts] = {}
        found: list[int | None] = []
        for _, words, brackets, beginning in names:
            if (bare := beginnings.get(beginning[0])) is None:
                bare = beginnings[beginning[0]] = tuple([word for word in beginning.words if word not in rare])
            last = [word for word in words[len(beginning[2]) :] if word not in rare]
            found.append(hash((bare + tuple(last), brackets)))
        return found

    return keys


def _bare(names: Mapping[str, SplitName], rare: Collection[str], steps: StepBudget) -> dict[str, SplitName]:
    """Return names without the rare words of their parts; names without other words are left out."""
    steps.take(sum(len(name.words) for name in names.values()))
    bare_of = dict[str, str]()
    beginnings: dict[str, Parts] = {}
    bare = {}
    for test, name in names.items():
        beginning, brackets, last = name.beginning, name.brackets, name.parts[-1]
        if beginning.text not in beginnings:
            beginnings[beginning.text] = _bare_parts(beginning.parts, rare, bare_of)
        stem = last[: len(last) - len(brackets)]
        if stem not in bare_of:
            bare_of[stem] = _bare_part(stem, rare)
        parts = beginnings[beginning.text]
        if bare_stem := bare_of[stem]:
            parts = (*parts, bare_stem + brackets)
        elif brackets and parts:
            parts = (*parts[:-1], parts[-1] + brackets)
        if parts:
            bare[test] = new_tuple(SplitName, (parts, name.words, brackets, beginning))
    return bare


def _bare_parts(parts: Parts, rare: Collection[str], bare_of: dict[str, str]) -> Parts:
    """Return parts without their rare words; parts of rare words only are left out. `bare_of` caches them."""
    for part in parts:
        if part not in bare_of:
            bare_of[part] = _bare_part(part, rare)
    return tuple(filter(None, map(bare_of.__getitem__, parts)))


def _bare_part(part: str, rare: Collection[str]) -> str:
    return " ".join(word for word in words_in(part) if word not in rare)


class WordCounts:
    """The number of removed names, and of new ones, that have each word or each part; counted when first asked for."""

    def __init__(self, removed: Mapping[str, SplitName], added: Mapping[str, SplitName], steps: StepBudget) -> None:
        self._sides, self._steps = (removed.values(), added.values()), steps

    @cached_property
    def of_words(self) -> list[Counter[str]]:
        """The names that have each word."""
        return [_counted([name[1] for name in side], self._steps) for side in self._sides]

    @cached_property
    def of_parts(self) -> list[Counter[str]]:
        """The names that have each part."""
        return [_counted([name[0] for name in side], self._steps) for side in self._sides]


def _counted(names: Collection[Parts], steps: StepBudget) -> Counter[str]:
    steps.take(sum(map(len, names)))
    return Counter(chain.from_iterable(map(frozenset, names)))
