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

_KeyFunction = Callable[[Iterable[SplitName]], list[int | None]]
"""Returns a key for each name: a hash of the part that alike names share, because it may be long; None if no part."""


def alike_names(
    removed: Mapping[str, SplitName], added: Mapping[str, SplitName], counts: WordCounts, steps: StepBudget
) -> list[tuple[str, str]]:
    """Return pairs of names that are alike, with no other name like them on either side; the most similar first."""
    old_names, new_names = dict(removed), dict(added)
    pairs = _pair_by_keys(old_names, new_names, chain([_by_words], _by_ends(removed, added)), steps)
    if not (old_names and new_names):
        return pairs
    rare_words = [words for words in _rare_words(counts) if words]
    pairs += _pair_by_keys(old_names, new_names, map(_words_without, rare_words), steps)
    if rare_words and old_names and new_names:
        old_names, new_names = (_bare(side, set[str]().union(*rare_words), steps) for side in (old_names, new_names))
        for old_name, new_name in _pair_by_keys(old_names, new_names, _by_ends(old_names, new_names), steps):
            old_words, new_words = removed[old_name].words, added[new_name].words
            # A name that only lost words, or only got words, is alike; replaced words may be another test.
            if set(new_words).issuperset(old_words) or set(old_words).issuperset(new_words):
                pairs.append((old_name, new_name))
    return pairs


def _pair_by_keys(
    old_names: dict[str, SplitName],
    new_names: dict[str, SplitName],
    key_functions: Iterable[_KeyFunction],
    steps: StepBudget,
) -> list[tuple[str, str]]:
    """Pair names that share a key with exactly one name of the other side, and remove them from both mappings.

    Each function gives the names other keys. It is not called if all names are paired by the functions before it.
    """
    pairs: list[tuple[str, str]] = []
    for key_function in key_functions:
        old_keys, new_keys = (_keys_of(side, key_function, steps) for side in (old_names, new_names))
        if set(old_keys).isdisjoint(new_keys):
            continue
        old_by_key, new_by_key = _by_unique_key(old_names, old_keys), _by_unique_key(new_names, new_keys)
        new_pairs = [(test, new_by_key[key]) for key, test in old_by_key.items() if key in new_by_key]
        pairs += new_pairs
        if len(new_pairs) == len(old_names) == len(new_names):
            old_names.clear()
            new_names.clear()
        for old_name, new_name in new_pairs if old_names else ():
            del old_names[old_name], new_names[new_name]
        if not (old_names and new_names):
            break
    return pairs


def _keys_of(names: Mapping[str, SplitName], key_function: _KeyFunction, steps: StepBudget) -> list[int | None]:
    steps.take(len(names))
    keys = key_function(names.values())
    steps.take(LONGEST_END * (len(names) - keys.count(None)))
    return keys


def _by_unique_key(names: Mapping[str, SplitName], keys: Sequence[int | None]) -> dict[int, str]:
    """Return the tests with a unique key, by that key; `keys` has the key of each name."""
    test_by_key = dict(zip(keys, names, strict=True))
    if len(test_by_key) == len(names) and None not in test_by_key:
        return cast(dict[int, str], test_by_key)
    counts = Counter(keys)
    return {key: test for key, test in zip(keys, names, strict=True) if key is not None and counts[key] == 1}


def _by_words(names: Iterable[SplitName]) -> list[int | None]:
    return [hash((frozenset(words), brackets)) for _, words, brackets, _ in names]


def _by_ends(removed: Mapping[str, SplitName], added: Mapping[str, SplitName]) -> Iterator[_KeyFunction]:
    """Yield functions whose keys are a beginning and an end: those of many parts first, and no beginning last."""
    shared = {name.parts[-1] for name in removed.values()} & {name.parts[-1] for name in added.values()}
    sides = ([len(name.parts) for name in side.values() if name.parts[-1] in shared] for side in (removed, added))
    longest = min(max(lengths, default=0) for lengths in sides)
    sizes = [(first, last) for first in range(LONGEST_BEGINNING + 1) for last in range(1, LONGEST_END + 1)]
    possible = [size for size in sizes if sum(size) <= longest]
    for first, last in sorted(possible, key=lambda size: (-sum(size), -size[1])):

        def key_function(names: Iterable[SplitName], first: int = first, last: int = last) -> list[int | None]:
            least_length = first + last
            return [
                hash((parts[:first], parts[-last:])) if parts[-1] in shared and len(parts) >= least_length else None
                for parts, *_ in names
            ]

        yield key_function


def _rare_words(counts: WordCounts) -> list[set[str]]:
    """Return the words that vanished from all names, and those that appeared in all names."""
    olds, news = counts.of_words
    return [
        {word for word, count in many.items() if count >= MANY and few[word] <= RARE * count and not word.isdecimal()}
        for many, few in ((olds, news), (news, olds))
    ]


def _words_without(rare_words: Collection[str]) -> _KeyFunction:
    """Return a function whose keys are all words of a name except the rare ones."""

    def key_function(names: Iterable[SplitName]) -> list[int | None]:
        # Cached, because hundreds of names share a beginning.
        beginnings: dict[str, Parts] = {}
        hashes: list[int | None] = []
        for _, words, brackets, beginning in names:
            if (bare := beginnings.get(beginning[0])) is None:
                bare = beginnings[beginning[0]] = tuple([word for word in beginning.words if word not in rare_words])
            last = [word for word in words[len(beginning[2]) :] if word not in rare_words]
            hashes.append(hash((bare + tuple(last), brackets)))
        return hashes

    return key_function


def _bare(names: Mapping[str, SplitName], rare_words: Collection[str], steps: StepBudget) -> dict[str, SplitName]:
    """Return names without the rare words of their parts; names without other words are left out."""
    steps.take(sum(len(name.words) for name in names.values()))
    bare_of = dict[str, str]()
    beginnings: dict[str, Parts] = {}
    bare = {}
    for test, name in names.items():
        beginning, brackets, last = name.beginning, name.brackets, name.parts[-1]
        if beginning.text not in beginnings:
            beginnings[beginning.text] = _bare_parts(beginning.parts, rare_words, bare_of)
        stem = last[: len(last) - len(brackets)]
        if stem not in bare_of:
            bare_of[stem] = _bare_part(stem, rare_words)
        parts = beginnings[beginning.text]
        if bare_stem := bare_of[stem]:
            parts = (*parts, bare_stem + brackets)
        elif brackets and parts:
            parts = (*parts[:-1], parts[-1] + brackets)
        if parts:
            bare[test] = new_tuple(SplitName, (parts, name.words, brackets, beginning))
    return bare


def _bare_parts(parts: Parts, rare_words: Collection[str], bare_of: dict[str, str]) -> Parts:
    """Return parts without their rare words; parts of rare words only are left out. `bare_of` caches them."""
    for part in parts:
        if part not in bare_of:
            bare_of[part] = _bare_part(part, rare_words)
    return tuple(filter(None, map(bare_of.__getitem__, parts)))


def _bare_part(part: str, rare_words: Collection[str]) -> str:
    return " ".join(word for word in words_in(part) if word not in rare_words)


class WordCounts:
    """The number of removed names, and of new ones, that have each word or each part; counted on first use."""

    def __init__(self, removed: Mapping[str, SplitName], added: Mapping[str, SplitName], steps: StepBudget) -> None:
        self._sides, self._steps = (removed.values(), added.values()), steps

    @cached_property
    def of_words(self) -> list[Counter[str]]:
        """The names that have each word."""
        return [_count_names([name[1] for name in side], self._steps) for side in self._sides]

    @cached_property
    def of_parts(self) -> list[Counter[str]]:
        """The names that have each part."""
        return [_count_names([name[0] for name in side], self._steps) for side in self._sides]


def _count_names(names: Collection[Parts], steps: StepBudget) -> Counter[str]:
    steps.take(sum(map(len, names)))
    return Counter(chain.from_iterable(map(frozenset, names)))
