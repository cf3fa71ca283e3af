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
"""A word vanished if the new names have it at most this share as often as the removed ones; likewise it appeared."""

_Keys = Callable[[Iterable[SplitName]], list[int | None]]
"""Returns a key for each name: a hash of the part that alike names share, because it may be long; None if no part."""


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
        for old_name, new_name in _paired(left, right, _by_ends(left, right), steps):
            old_words, new_words = removed[old_name].words, added[new_name].words
            # A name that only lost words, or only got words, is alike; replaced words may be another test.
            if set(new_words).issuperset(old_words) or set(old_words).issuperset(new_words):
                pairs.append((old_name, new_name))
    return pairs


def _paired(
    left: dict[str, SplitName], right: dict[str, SplitName], ways: Iterable[_Keys], steps: StepBudget
) -> list[tuple[str, str]]:
    """Pair names that share a key with exactly one name of the other side, and remove them from `left` and `right`.

    Each of the `ways` gives names other keys; later ways cost nothing once all names are paired.
    """
    pairs: list[tuple[str, str]] = []
    for keys in ways:
        shared_left, shared_right = (_keys_of(side, keys, steps) for side in (left, right))
        if set(shared_left).isdisjoint(shared_right):
            continue
        old_by_key, new_by_key = _alone(left, shared_left), _alone(right, shared_right)
        new_pairs = [(test, new_by_key[key]) for key, test in old_by_key.items() if key in new_by_key]
        pairs += new_pairs
        if len(new_pairs) == len(left) == len(right):
            left.clear()
            right.clear()
        for old_name, new_name in new_pairs if left else ():
            del left[old_name], right[new_name]
        if not (left and right):
            break
    return pairs


def _keys_of(names: Mapping[str, SplitName], keys: _Keys, steps: StepBudget) -> list[int | None]:
    steps.take(len(names))
    shared = keys(names.values())
    steps.take(LONGEST_END * (len(names) - shared.count(None)))
    return shared


def _alone(names: Mapping[str, SplitName], shared: Sequence[int | None]) -> dict[int, str]:
    """Return the tests with a unique key, by that key; `shared` has the key of each name."""
    test_by_key = dict(zip(shared, names, strict=True))
    if len(test_by_key) == len(names) and None not in test_by_key:
        return cast(dict[int, str], test_by_key)
    counts = Counter(shared)
    return {key: test for key, test in zip(shared, names, strict=True) if key is not None and counts[key] == 1}


def _by_words(names: Iterable[SplitName]) -> list[int | None]:
    return [hash((frozenset(words), brackets)) for _, words, brackets, _ in names]


def _by_ends(removed: Mapping[str, SplitName], added: Mapping[str, SplitName]) -> Iterator[_Keys]:
    """Yield ways to compare a beginning and an end: those of many parts first, and no beginning last."""
    shared = {name.parts[-1] for name in removed.values()} & {name.parts[-1] for name in added.values()}
    sides = ([len(name.parts) for name in side.values() if name.parts[-1] in shared] for side in (removed, added))
    longest = min(max(lengths, default=0) for lengths in sides)
    sizes = [(first, last) for first in range(LONGEST_BEGINNING + 1) for last in range(1, LONGEST_END + 1)]
    possible = [size for size in sizes if sum(size) <= longest]
    for first, last in sorted(possible, key=lambda size: (-sum(size), -size[1])):

        def keys(names: Iterable[SplitName], first: int = first, last: int = last) -> list[int | None]:
            least_length = first + last
            return [
                hash((parts[:first], parts[-last:])) if parts[-1] in shared and len(parts) >= least_length else None
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
        # Cached, because hundreds of names share a beginning.
        beginnings: dict[str, Parts] = {}
        hashes: list[int | None] = []
        for _, words, brackets, beginning in names:
            if (bare := beginnings.get(beginning[0])) is None:
                bare = beginnings[beginning[0]] = tuple([word for word in beginning.words if word not in rare])
            last = [word for word in words[len(beginning[2]) :] if word not in rare]
            hashes.append(hash((bare + tuple(last), brackets)))
        return hashes

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
    """The number of removed names, and of new ones, that have each word or each part; counted on first use."""

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
