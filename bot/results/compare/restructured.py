"""Find tests that were renamed because parts of names were left out, added, or reordered. No I/O.

If a runner changes how it names tests, all tests get new names at once, in hundreds of small classes. So a rule need
not pair many tests of one class. A candidate is a pair of names that are alike, with no other name like them on either
side. The search compares, in this order: names with the same words; names with the same beginning and end, from long to
short; names that are equal without words that vanished or appeared everywhere, as a whole or in their beginning and
end. A candidate counts if

- at least SMALL_CLASS candidates have the same change, these are most of the names to which the change could apply, and
  the tests had the same results before and after;
- or parts were only left out, added or reordered, such candidates are most of all changed names, and they had the same
  results.

A wrong pair would hide a failure. A missing pair only shows one removed and one new test. So doubt means no pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum, auto
from typing import NamedTuple

from nightjar_formats.model import BAD, Status

from bot.results.compare.alike_names import MANY, WordCounts, alike_names
from bot.results.compare.name_parts import Beginning, Parts, SplitName, common_end, new_tuple, split_names
from bot.results.compare.steps import StepBudget

SMALL_CLASS = 4
"""The same change of words at the same position must rename so many tests."""
MOST_OF_CLASS = 0.8
"""A change must have renamed this share of the names that it could apply to."""
MOST_OF_REMOVED, MOST_OF_NEW = 0.8, 0.5
"""So many of all names that changed must be candidates, where their classes are smaller than SMALL_CLASS."""
ALIKE = 0.875
"""This share of a class must have the same results: all of four, seven of eight. Real renames have 95 % or more."""
MAX_RESTRUCTURED = 30_000
"""Tests on one side, at most; with more, only moves are searched. So many tests without similar names take 3 s."""

Ended = Mapping[str, Status | None]
"""The results of tests; None if unknown."""

PARTS, WORDS = "parts", "words"


class _Kind(Enum):
    LEFT_OUT = auto()
    ADDED = auto()
    REORDERED = auto()
    REPLACED = auto()

    __hash__ = object.__hash__  # members are singletons, and that of Enum is a call for each of thousands of tests


_KINDS = (_Kind.REORDERED, _Kind.ADDED), (_Kind.LEFT_OUT, _Kind.REPLACED)
"""By whether words were left out, and whether words were added."""


class _Change(NamedTuple):
    """The difference of two names: all parts before their common end, or a part `inside` of them.

    Inside, it is `parts` between a common beginning and a common end, or `words` at any position.
    """

    kind: _Kind
    before: Parts
    after: Parts
    inside: str = ""


class _Candidate(NamedTuple):
    old: str
    new: str
    change: _Change


def search_restructured(old: Ended, new: Ended, explained: int, steps: StepBudget) -> dict[str, str]:
    """Pair removed tests with new ones whose names have the same parts except for some, or in another order.

    `explained` is the number of tests that are already known as renamed. Raises `TooManyStepsError`.
    """
    if not SMALL_CLASS <= min(len(old), len(new)) <= max(len(old), len(new)) <= MAX_RESTRUCTURED:
        return {}
    words_of = dict[str, Parts]()
    removed, added = (split_names(side, words_of, steps) for side in (old, new))
    counts = WordCounts(removed, added, steps)
    candidates = _candidates(alike_names(removed, added, counts, steps), removed, added, steps)
    accepted = [*_in_classes(candidates, removed, added, counts, old, new, steps)]
    found = {one[0]: one[1] for one in accepted}
    if len(found) == len(candidates):
        return found
    general = [one for one in candidates if one.change.kind is not _Kind.REPLACED]
    counted = explained + len(found.keys() | {one.old for one in general})
    most = counted >= MOST_OF_REMOVED * (explained + len(old)) and counted >= MOST_OF_NEW * (explained + len(new))
    if most and len(general) >= MANY and _ended_alike(general, old, new):
        found |= {one.old: one.new for one in general if _is_alike(old[one.old], new[one.new])}
    return found


def _candidates(
    pairs: Iterable[tuple[str, str]],
    removed: Mapping[str, SplitName],
    added: Mapping[str, SplitName],
    steps: StepBudget,
) -> list[_Candidate]:
    """Return pairs of names, each with what changed; mostly that is the beginning, which hundreds of them share."""
    candidates = []
    taken = 0
    changes: dict[tuple[str, str], tuple[_Change, frozenset[str], int]] = {}
    changes_of_words: dict[tuple[Parts, Parts], _Change] = {}
    for before, after in pairs:
        old, new = removed[before], added[after]
        parts, words, _, beginning = old
        new_parts, new_words, _, new_beginning = new
        taken += len(words) + len(new_words)
        if parts[-1] != new_parts[-1]:
            change = _change_of_words(old, new, changes_of_words)
        else:
            key = beginning[0], new_beginning[0]
            if (known := changes.get(key)) is None:
                change = _change_of_beginning(old, new, beginning.words, new_beginning.words)
                changed = frozenset(beginning.words).symmetric_difference(new_beginning.words)
                known = changes[key] = change, changed, len(beginning.words)
            change, changed, at_last = known
            if changed and not changed.isdisjoint(words[at_last:]):
                change = _change_of_beginning(old, new, words, new_words)
        candidates.append(new_tuple(_Candidate, (before, after, change)))
    steps.take(taken)
    return candidates


def _change_of_beginning(old: SplitName, new: SplitName, before: Parts, after: Parts) -> _Change:
    """Return the change of the parts before the common end of two names; what kind it is, some of their words say."""
    end = common_end(old.parts, new.parts)
    if end > 1 and end in (len(old.parts), len(new.parts)):
        end -= 1  # all names begin with nothing
    left_out, added = set(before).difference(after), set(after).difference(before)
    return _Change(_KINDS[bool(left_out)][bool(added)], old.parts[:-end], new.parts[:-end])


def _change_of_words(old: SplitName, new: SplitName, known: dict[tuple[Parts, Parts], _Change]) -> _Change:
    """Return the change of two names that end otherwise; `known` remembers those by other words."""
    words, new_words, same = old.words, new.words, 0
    if old.beginning.words == new.beginning.words:
        same = len(old.beginning.words)  # so they are on both sides, and only the others can be missing on one
    left_out = tuple(sorted(set(words[same:]).difference(new_words)))
    added = tuple(sorted(set(new_words[same:]).difference(words)))
    if not (left_out or added):
        places = {word: str(place) for place, word in enumerate(words)}
        return _Change(_Kind.REORDERED, (), tuple(places[word] for word in new_words), WORDS)
    if (change := known.get((left_out, added))) is None:
        change = _Change(_KINDS[bool(left_out)][bool(added)], left_out, added, WORDS)
        known[left_out, added] = change
    return change


def _in_classes(
    candidates: Iterable[_Candidate],
    removed: Mapping[str, SplitName],
    added: Mapping[str, SplitName],
    counts: WordCounts,
    old: Ended,
    new: Ended,
    steps: StepBudget,
) -> Iterator[_Candidate]:
    """Yield the candidates of large classes."""
    # By identity first, for most candidates share an object, and to hash a change takes longer than all the rest.
    same: dict[int, list[_Candidate]] = defaultdict(list)
    for one in candidates:
        same[id(one[2])].append(one)
    classes: dict[_Change, list[_Candidate]] = defaultdict(list)
    for found in same.values():
        classes[found[0].change] += found
    for change, found in list(classes.items()):
        inner = _inner(change)
        if inner != change:
            classes[inner] += found
    concerned = _Concerned(removed, added, counts, {change: len(found) for change, found in classes.items()}, steps)
    accepted = set[str]()
    for change, found in classes.items():
        if (
            len(found) >= SMALL_CLASS
            and not accepted.issuperset(one.old for one in found)
            and concerned.are_made(change, found)
            and _ended_alike(found, old, new)
        ):
            accepted.update(one.old for one in found)
            yield from found


def _inner(change: _Change) -> _Change:
    """Return a change without the parts that both names begin with, which may be another place for each of a class."""
    if change.inside:
        return change
    before, after = change.before, change.after
    if end := common_end(before, after):
        before, after = before[:-end], after[:-end]
    beginning = common_end(before[::-1], after[::-1])
    return _Change(change.kind, before[beginning:], after[beginning:], PARTS)


class _Concerned:
    """Counts the names to which changes could apply, to compare with those that they renamed."""

    def __init__(
        self,
        removed: Mapping[str, SplitName],
        added: Mapping[str, SplitName],
        counts: WordCounts,
        made: Mapping[_Change, int],
        steps: StepBudget,
    ) -> None:
        self._made = made
        self._removed, self._counts, self._steps = removed, counts, steps
        places: list[Counter[Parts]] = [Counter(), Counter()]
        for change, count in made.items():
            if not change.inside:
                places[0][change.before] += count
                places[1][change.after] += count
        self._places = places
        at = [Counter([name[3][0] for name in side.values()]) for side in (removed, added)]
        self._at = at[0]
        self._below = [
            _below(of_side, {name[3][0]: name[3] for name in side.values()}, wanted.keys(), steps)
            for side, of_side, wanted in zip((removed, added), at, places, strict=True)
        ]

    def are_made(self, change: _Change, found: Collection[_Candidate]) -> bool:
        """Return whether most candidates changed this way: names with this beginning, or this word, on each side.

        `found` are the candidates that did.
        """
        made, enough = self._made[change], MOST_OF_CLASS
        if change.inside:
            if change.kind is _Kind.REORDERED:
                return change.inside == WORDS
            counted = self._counts.of_words if change.inside == WORDS else self._counts.of_parts
            sides = zip(counted, (change.before, change.after), strict=True)
            having = [of_side[each] for of_side, side in sides for each in side]
            if change.kind is _Kind.ADDED:  # which could have been added to every name that was removed there
                self._steps.take(len(found))
                beginnings = {self._removed[one.old].beginning.text for one in found}
                having.append(sum(map(self._at.__getitem__, beginnings)))
            if change.inside == WORDS:
                having.append(MANY)
            return made >= enough * max(having)
        for place, places, below in zip((change.before, change.after), self._places, self._below, strict=True):
            # Where parts were left out or added, several classes may have become one, or one several.
            of_place = made if change.kind is _Kind.REPLACED else places[place]
            if place and of_place < enough * below[place]:
                return False
        return True


def _below(
    counts: Mapping[str, int], beginnings: Mapping[str, Beginning], places: Collection[Parts], steps: StepBudget
) -> Counter[Parts]:
    """Count the names that begin with each of some parts; `counts` has how many have each beginning."""
    below = Counter[Parts]()
    lengths = sorted({len(place) for place in places})
    for text, count in counts.items():
        beginning = beginnings[text].parts
        for length in lengths:
            if length > len(beginning):
                break
            steps.take(1 + length)
            if (place := beginning[:length]) in places:
                below[place] += count
    return below


def _ended_alike(candidates: Collection[_Candidate], old: Ended, new: Ended) -> bool:
    """Return whether tests had the same results before and after."""
    others = [one for one in candidates if old[one[0]] is not new[one[1]]]
    unlike = sum(not _is_alike(old[before], new[after]) for before, after, _ in others)
    return len(candidates) - unlike >= ALIKE * len(candidates)


def _is_alike(before: Status | None, after: Status | None) -> bool:
    return before is after or before is None or after is None or _rough(before) is _rough(after)


def _rough(status: Status) -> Status:
    if status in BAD:
        return Status.FAILED
    return Status.SKIPPED if status is Status.SKIPPED else Status.PASSED
