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
"""Classes smaller than SMALL_CLASS count if these shares of the removed and the new names are candidates."""
ALIKE = 0.875
"""This share of a class must have the same results: all of four, seven of eight. Real renames have 95 % or more."""
MAX_RESTRUCTURED = 30_000
"""Tests on one side, at most; with more, only moves are searched. So many tests without similar names take 3 s."""

StatusByTest = Mapping[str, Status | None]
"""The results of tests; None if unknown."""

PARTS, WORDS = "parts", "words"


class _Kind(Enum):
    LEFT_OUT = auto()
    ADDED = auto()
    REORDERED = auto()
    REPLACED = auto()

    __hash__ = object.__hash__  # members are singletons; the hash of Enum is a slow call


_KINDS = (_Kind.REORDERED, _Kind.ADDED), (_Kind.LEFT_OUT, _Kind.REPLACED)
"""By whether words were left out, and whether words were added."""


class _Change(NamedTuple):
    """The difference of two names: all parts before their common end, or a difference `inside` of the names.

    `inside` is PARTS for parts between a common beginning and a common end, or WORDS for words at any position.
    """

    kind: _Kind
    old: Parts
    new: Parts
    inside: str = ""


class _Candidate(NamedTuple):
    old: str
    new: str
    change: _Change


def search_restructured(old: StatusByTest, new: StatusByTest, explained: int, steps: StepBudget) -> dict[str, str]:
    """Pair removed tests with new ones whose names lack some parts, have more parts, or have them in another order.

    `explained` is the number of tests that are already known as renamed. Raises `TooManyStepsError`.
    """
    if not SMALL_CLASS <= min(len(old), len(new)) <= max(len(old), len(new)) <= MAX_RESTRUCTURED:
        return {}
    words_of = dict[str, Parts]()
    removed, added = (split_names(side, words_of, steps) for side in (old, new))
    counts = WordCounts(removed, added, steps)
    candidates = _with_changes(alike_names(removed, added, counts, steps), removed, added, steps)
    accepted = [*_in_classes(candidates, removed, added, counts, old, new, steps)]
    renamed = {candidate[0]: candidate[1] for candidate in accepted}
    if len(renamed) == len(candidates):
        return renamed
    general = [candidate for candidate in candidates if candidate.change.kind is not _Kind.REPLACED]
    count = explained + len(renamed.keys() | {candidate.old for candidate in general})
    are_most = count >= MOST_OF_REMOVED * (explained + len(old)) and count >= MOST_OF_NEW * (explained + len(new))
    if are_most and len(general) >= MANY and _have_same_results(general, old, new):
        renamed |= {
            candidate.old: candidate.new
            for candidate in general
            if _is_same_result(old[candidate.old], new[candidate.new])
        }
    return renamed


def _with_changes(
    pairs: Iterable[tuple[str, str]],
    removed: Mapping[str, SplitName],
    added: Mapping[str, SplitName],
    steps: StepBudget,
) -> list[_Candidate]:
    """Return pairs of names with their change: mostly of the beginning, which hundreds of names share."""
    candidates = []
    step_count = 0
    changes: dict[tuple[str, str], tuple[_Change, frozenset[str], int]] = {}
    changes_of_words: dict[tuple[Parts, Parts], _Change] = {}
    for old_name, new_name in pairs:
        old, new = removed[old_name], added[new_name]
        parts, words, _, beginning = old
        new_parts, new_words, _, new_beginning = new
        step_count += len(words) + len(new_words)
        if parts[-1] != new_parts[-1]:
            change = _change_of_words(old, new, changes_of_words)
        else:
            key = beginning[0], new_beginning[0]
            if (change_of_beginnings := changes.get(key)) is None:
                change = _change_of_beginning(old, new, beginning.words, new_beginning.words)
                changed = frozenset(beginning.words).symmetric_difference(new_beginning.words)
                change_of_beginnings = changes[key] = change, changed, len(beginning.words)
            change, changed, at_last = change_of_beginnings
            if changed and not changed.isdisjoint(words[at_last:]):
                change = _change_of_beginning(old, new, words, new_words)
        candidates.append(new_tuple(_Candidate, (old_name, new_name, change)))
    steps.take(step_count)
    return candidates


def _change_of_beginning(old: SplitName, new: SplitName, old_words: Parts, new_words: Parts) -> _Change:
    """Return the change of the parts before the common end of two names; its kind follows from the given words."""
    end = common_end(old.parts, new.parts)
    if end > 1 and end in (len(old.parts), len(new.parts)):
        end -= 1  # every name begins with the empty beginning
    left_out, added = set(old_words).difference(new_words), set(new_words).difference(old_words)
    return _Change(_KINDS[bool(left_out)][bool(added)], old.parts[:-end], new.parts[:-end])


def _change_of_words(old: SplitName, new: SplitName, changes_of_words: dict[tuple[Parts, Parts], _Change]) -> _Change:
    """Return the change of two names whose last parts differ; `changes_of_words` caches changes by their words."""
    words, new_words, shared_count = old.words, new.words, 0
    if old.beginning.words == new.beginning.words:
        shared_count = len(old.beginning.words)  # only later words can be missing on one side
    left_out = tuple(sorted(set(words[shared_count:]).difference(new_words)))
    added = tuple(sorted(set(new_words[shared_count:]).difference(words)))
    if not (left_out or added):
        places = {word: str(place) for place, word in enumerate(words)}
        return _Change(_Kind.REORDERED, (), tuple(places[word] for word in new_words), WORDS)
    if (change := changes_of_words.get((left_out, added))) is None:
        change = _Change(_KINDS[bool(left_out)][bool(added)], left_out, added, WORDS)
        changes_of_words[left_out, added] = change
    return change


def _in_classes(
    candidates: Iterable[_Candidate],
    removed: Mapping[str, SplitName],
    added: Mapping[str, SplitName],
    counts: WordCounts,
    old: StatusByTest,
    new: StatusByTest,
    steps: StepBudget,
) -> Iterator[_Candidate]:
    """Yield the candidates of classes with at least SMALL_CLASS members."""
    # By identity first: most candidates share a change, and hashing changes would take most of the time.
    by_identity: dict[int, list[_Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_identity[id(candidate[2])].append(candidate)
    classes: dict[_Change, list[_Candidate]] = defaultdict(list)
    for members in by_identity.values():
        classes[members[0].change] += members
    for change, members in list(classes.items()):
        inner = _without_shared_ends(change)
        if inner != change:
            classes[inner] += members
    applicable = _Applicable(
        removed, added, counts, {change: len(members) for change, members in classes.items()}, steps
    )
    accepted = set[str]()
    for change, members in classes.items():
        if (
            len(members) >= SMALL_CLASS
            and not accepted.issuperset(candidate.old for candidate in members)
            and applicable.renamed_most(change, members)
            and _have_same_results(members, old, new)
        ):
            accepted.update(candidate.old for candidate in members)
            yield from members


def _without_shared_ends(change: _Change) -> _Change:
    """Return a change without the parts that both names begin with: they may differ within a class."""
    if change.inside:
        return change
    old_parts, new_parts = change.old, change.new
    if end := common_end(old_parts, new_parts):
        old_parts, new_parts = old_parts[:-end], new_parts[:-end]
    beginning = common_end(old_parts[::-1], new_parts[::-1])
    return _Change(change.kind, old_parts[beginning:], new_parts[beginning:], PARTS)


class _Applicable:
    """Counts the names to which a change could apply, to compare them with the names that it renamed."""

    def __init__(
        self,
        removed: Mapping[str, SplitName],
        added: Mapping[str, SplitName],
        counts: WordCounts,
        renamed_counts: Mapping[_Change, int],
        steps: StepBudget,
    ) -> None:
        self._renamed_counts = renamed_counts
        self._removed, self._counts, self._steps = removed, counts, steps
        places: list[Counter[Parts]] = [Counter(), Counter()]
        for change, count in renamed_counts.items():
            if not change.inside:
                places[0][change.old] += count
                places[1][change.new] += count
        self._places = places
        beginning_counts = [Counter([name[3][0] for name in side.values()]) for side in (removed, added)]
        self._beginning_counts = beginning_counts[0]
        self._below = [
            _below(of_side, {name[3][0]: name[3] for name in side.values()}, places_of_side.keys(), steps)
            for side, of_side, places_of_side in zip((removed, added), beginning_counts, places, strict=True)
        ]

    def renamed_most(self, change: _Change, candidates: Collection[_Candidate]) -> bool:
        """Return whether a change renamed most names that have its beginning, or its word, on each side.

        `candidates` are the names that it renamed.
        """
        renamed_count, least_share = self._renamed_counts[change], MOST_OF_CLASS
        if change.inside:
            if change.kind is _Kind.REORDERED:
                return change.inside == WORDS
            counts_of_sides = self._counts.of_words if change.inside == WORDS else self._counts.of_parts
            sides = zip(counts_of_sides, (change.old, change.new), strict=True)
            applicable_counts = [of_side[word] for of_side, side in sides for word in side]
            if change.kind is _Kind.ADDED:  # could have been added to every removed name with these beginnings
                self._steps.take(len(candidates))
                beginnings = {self._removed[candidate.old].beginning.text for candidate in candidates}
                applicable_counts.append(sum(map(self._beginning_counts.__getitem__, beginnings)))
            if change.inside == WORDS:
                applicable_counts.append(MANY)
            return renamed_count >= least_share * max(applicable_counts)
        for place, places, below in zip((change.old, change.new), self._places, self._below, strict=True):
            # If parts were left out or added, several classes may have become one, or one may have become several.
            of_place = renamed_count if change.kind is _Kind.REPLACED else places[place]
            if place and of_place < least_share * below[place]:
                return False
        return True


def _below(
    counts: Mapping[str, int], beginnings: Mapping[str, Beginning], places: Collection[Parts], steps: StepBudget
) -> Counter[Parts]:
    """Count the names below each of the places; `counts` has the number of names with each beginning."""
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


def _have_same_results(candidates: Collection[_Candidate], old: StatusByTest, new: StatusByTest) -> bool:
    """Return whether enough of the tests had the same results before and after the rename."""
    changed_results = [candidate for candidate in candidates if old[candidate[0]] is not new[candidate[1]]]
    different_count = sum(
        not _is_same_result(old[old_name], new[new_name]) for old_name, new_name, _ in changed_results
    )
    return len(candidates) - different_count >= ALIKE * len(candidates)


def _is_same_result(old_status: Status | None, new_status: Status | None) -> bool:
    return (
        old_status is new_status
        or old_status is None
        or new_status is None
        or _rough_status(old_status) is _rough_status(new_status)
    )


def _rough_status(status: Status) -> Status:
    if status in BAD:
        return Status.FAILED
    return Status.SKIPPED if status is Status.SKIPPED else Status.PASSED
