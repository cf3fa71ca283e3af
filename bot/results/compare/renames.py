"""Find tests that were renamed between two runs, by rules that renamed many at once. No I/O.

The work is bounded, because a lab's names decide how much there is to compare, and other labs wait meanwhile.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import groupby, islice

from bot.results.compare.name_parts import SIGNS, common_end
from bot.results.compare.restructured import SMALL_CLASS, Ended, search_restructured
from bot.results.compare.steps import StepBudget, TooManyStepsError

RENAMED_TOGETHER = 10
"""A rule must rename so many tests, otherwise it may be chance."""
RENAMED_SHARE = 0.8
"""A rule must have renamed this share of the tests that it could apply to."""
MAX_REWORDED = 5_000
"""Up to so many tests, names are compared word by word; with more, only moves are searched."""
MAX_WORDS = 40
"""Words of a name that is compared word by word."""
MAX_PARTS = 64
"""Components of a location, at most; tests with longer ones are ignored."""
CONTEXT = 4
"""Components next to the test's name that may distinguish a moved test from others of its name."""
NARROWER = 2
"""Components that a move may need more than the shortest way to say it: `contrib/moved` is now `extras/moved`, while
other tests of `contrib` are removed."""
MAX_STEPS = 40_000_000
"""Characters of names, and components of locations, that one search handles: two or three seconds at worst. It takes
900,000 to find that ten thousand tests moved from one folder to another."""


Location = tuple[str, ...]


def search_renames(removed: Iterable[str], new: Iterable[str], *, most_steps: int = MAX_STEPS) -> dict[str, str] | None:
    """Pair removed tests with new ones if one rule renamed many at once; return old IDs with new IDs.

    Either side may be a mapping that tells how each test ended. Three kinds of rule are known. A move: the beginning of
    the location (folders, file, classes) is another, and the rest and the test's own name are the same. Another
    structure (`restructured.py`): parts of names were left out, added or reordered. A rewording: the location is the
    same, and one word of the name or of its parameters was replaced, added or removed; a number for a number is another
    value, not another name. A move or rewording counts if it pairs RENAMED_TOGETHER tests and RENAMED_SHARE of what it
    could concern, and a pair counts if no other rule has another partner for one of the two.

    Returns None if the search takes more than `most_steps`.
    """
    old, fresh = ended_of(removed), ended_of(new)
    both = old.keys() & fresh.keys()
    old, fresh = ({test: side[test] for test in sorted(side.keys() - both if both else side)} for side in (old, fresh))
    if min(len(old), len(fresh)) < SMALL_CLASS:
        return {}
    steps, in_order = StepBudget(most_steps), old
    try:
        found: dict[str, str] = {}
        for search in (_moved, search_restructured, _reworded):
            made = search(old, fresh, len(found), steps)
            found |= made
            if len(made) == min(len(old), len(fresh)):
                break  # nothing is left to pair
            if made:
                known = set(made.values())
                old = {test: ended for test, ended in old.items() if test not in made}
                fresh = {test: ended for test, ended in fresh.items() if test not in known}
    except TooManyStepsError:
        return None
    return {test: found[test] for test in in_order if test in found}


def ended_of(tests: Iterable[str]) -> Ended:
    """Return the results of tests, if a mapping has them."""
    return tests if isinstance(tests, Mapping) else dict.fromkeys(tests)


def _located(tests: Iterable[str]) -> Tests:
    """Return each test's location, which thousands of tests may share, and its own name with the parameters."""
    found: dict[str, tuple[Location, str]] = {}
    locations: dict[str, Location | None] = {}
    for test in tests:
        outside = test.partition("[")[0]
        text, inside, name = outside.rpartition("::")
        text, name = (text, name + test[len(outside) :]) if inside else (test, "")
        if text not in locations:
            locations[text] = _location(text)
        if (location := locations[text]) is not None:
            found[test] = location, name
    return found


def _location(text: str) -> Location | None:
    """Return the components of a test's location, without the `.py` of a file.

    None for a location of more than MAX_PARTS components: as tuples, such IDs would take many times their own length.

    A dotted location has the same components as the path that it stands for. So if the list of files was missing in one
    run, the different form of the names is recognized as a move.
    """
    file, *classes = text.split("::", MAX_PARTS)
    parted_by = "/" if "/" in file or file.endswith(".py") else "."
    if file.count(parted_by) + len(classes) >= MAX_PARTS:
        return None
    return (*file.removesuffix(".py").split(parted_by), *classes)


Tests = Mapping[str, tuple[Location, str]]


def _moved(removed: Ended, new: Ended, _explained: int, steps: StepBudget) -> dict[str, str]:
    if not _may_share_names(removed, new):
        return {}
    old, fresh = _located(removed), _located(new)
    if min(len(old), len(fresh)) < RENAMED_TOGETHER:
        return {}
    rules = sorted(
        (move for move, votes in _moves(old, fresh, steps).items() if votes >= RENAMED_TOGETHER),
        key=lambda move: len(move[0]),
    )
    if not rules:
        return {}
    below = _below(old, {before for before, _ in rules}, steps)
    room = {after: len(tests) for after, tests in _below(fresh, {after for _, after in rules}, steps).items()}
    named = {split: test for test, split in fresh.items()}
    pairs = []
    made_by = set[tuple[Location, Location]]()
    for before, after in rules:
        if before[-1:] == after[-1:] and (before[:-1], after[:-1]) in made_by:
            made_by.add((before, after))  # its pairs are among those
            continue
        concerned = below[before]
        enough = max(RENAMED_TOGETHER, RENAMED_SHARE * len(concerned))
        if room.get(after, 0) < enough:
            continue  # so many rules may begin with one folder that to try each would never end
        steps.take(len(concerned) * (len(after) + 1))
        made = [
            (test, named[key])
            for test in concerned
            if (key := ((*after, *old[test][0][len(before) :]), old[test][1])) in named
        ]
        if len(made) >= enough:
            pairs += made
            made_by.add((before, after))
    return _one_to_one(pairs)


def _may_share_names(removed: Iterable[str], new: Iterable[str]) -> bool:
    """Return False if no removed test has the own name of a new one; to find that out here costs half."""
    if any("[" in "".join(side) for side in (removed, new)):
        return True  # in brackets, a double colon parts nothing
    old, fresh = (
        {name if inside else "" for _, inside, name in [test.rpartition("::") for test in side]}
        for side in (removed, new)
    )
    return not old.isdisjoint(fresh)


def _below(tests: Tests, places: set[Location], steps: StepBudget) -> dict[Location, list[str]]:
    """Return for each of some locations the tests whose location begins with it."""
    below: dict[Location, list[str]] = defaultdict(list)
    lengths = sorted({len(place) for place in places})
    for test, (location, _) in tests.items():
        for length in lengths:
            if length > len(location):
                break
            steps.take(1 + length)
            if (place := location[:length]) in places:
                below[place].append(test)
    return below


def _moves(old: Tests, fresh: Tests, steps: StepBudget) -> Counter[tuple[Location, Location]]:
    """Count the moves of tests that are recognized by their name and, if necessary, by the part before it."""
    moves: Counter[tuple[Location, Location]] = Counter()
    shared = {name for _, name in old.values()} & {name for _, name in fresh.values()}
    left, right = ({test: split for test, split in side.items() if split[1] in shared} for side in (old, fresh))
    for context in range(CONTEXT, -1, -1):
        known, others = (_alone(side, context) for side in (left, right))
        steps.take((CONTEXT + 1) * (len(left) + len(right)))
        for key in known.keys() & others.keys():
            before, after = left.pop(known[key])[0], right.pop(others[key])[0]
            steps.take((1 + NARROWER) * (len(before) + len(after)))
            moves[before, after] += 1
            common = common_end(before, after)
            for end in range(common, max(common - NARROWER - 1, 0), -1):
                moves[before[:-end], after[:-end]] += 1
    return moves


def _alone(tests: Tests, context: int) -> dict[tuple[Location, str], str]:
    """Return the tests whose name, with the last `context` components of the location, is unique."""
    found: dict[tuple[Location, str], str] = {}
    for test, (location, name) in tests.items():
        key = location[-context:] if context else (), name
        found[key] = "" if key in found else test
    return {key: test for key, test in found.items() if test}


def _reworded(removed: Ended, new: Ended, _explained: int, steps: StepBudget) -> dict[str, str]:
    if min(len(removed), len(new)) < RENAMED_TOGETHER:
        return {}
    old, fresh = _located(removed), _located(new)
    if not RENAMED_TOGETHER <= min(len(old), len(fresh)) <= max(len(old), len(fresh)) <= MAX_REWORDED:
        return {}
    # A rewording does not change the location, so tests in other locations need no comparison.
    places = {location for location, _ in old.values()} & {location for location, _ in fresh.values()}
    old, fresh = ({test: split for test, split in side.items() if split[0] in places} for side in (old, fresh))
    if not places:
        return {}
    paired: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    sums = (_sums_without_a_word(side, steps) for side in (old, fresh))
    shared = set[int].intersection(*sums)
    if not shared:
        return {}
    before, after = (_without_a_word(side, shared, steps) for side in (old, fresh))
    for key in before.keys() & after.keys():
        one, other = before[key], after[key]
        if one and other and not (one[1].isdecimal() and other[1].isdecimal()):
            paired[one[1], other[1]].add((one[0], other[0]))
    rules = {rule: made for rule, made in paired.items() if len(made) >= RENAMED_TOGETHER}
    if not rules:
        return {}
    having: Counter[tuple[Location, str]] = Counter()
    for location, name in old.values():
        having.update((location, word) for word in {"", *(name[start:end] for start, end in _words(name))})
    pairs: list[tuple[str, str]] = []
    for (word, _), made in rules.items():
        could = sum(having[place, word] for place in {old[test][0] for test, _ in made})
        if len(made) >= RENAMED_SHARE * could:
            pairs += made
    return _one_to_one(pairs)


def _sums_without_a_word(tests: Tests, steps: StepBudget) -> set[int]:
    """Return hashes for each test; tests share one if their locations and all words except one are the same."""
    sums = set[int]()
    for location, name in tests.values():
        steps.take(len(name))
        sums |= _sums(location, name)
    return sums


def _sums(location: Location, name: str) -> set[int]:
    words = [hash(name[start:end]) for start, end in islice(_words(name), MAX_WORDS + 1)]
    whole = hash(location) + sum(words)
    return {whole, *(whole - word for word in words)}


def _without_a_word(tests: Tests, shared: Set[int], steps: StepBudget) -> dict[int, tuple[str, str] | None]:
    """Return tests by hashes of their name with one word blanked, with one word removed, and with all words.

    Tests that have none of the `shared` sums are left out, for nothing is like them.

    The keys are hashes, because the names would take a thousand times the input. None: several tests have the hash.
    """
    found: dict[int, tuple[str, str] | None] = {}
    for test, (location, name) in tests.items():
        words = list(islice(_words(name), MAX_WORDS + 1))
        if not name or len(words) > MAX_WORDS or shared.isdisjoint(_sums(location, name)):
            continue
        steps.take((2 * len(words) + 1) * len(name))
        place = hash(location)
        rests = [(name, "")]
        for start, end in words:
            word = name[start:end]
            rests += (f"{name[:start]}\0{name[end:]}", word), (_without(name, start, end), word)
        for rest, word in rests:
            key = hash((place, rest))
            found[key] = None if key in found else (test, word)
    return found


def _words(name: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each word."""
    position = 0
    if name.isascii():
        for word in name.translate(SIGNS).split():
            start = name.index(word, position)
            position = start + len(word)
            yield start, position
        return
    for is_word, characters in groupby(name, str.isalnum):
        end = position + sum(1 for _ in characters)
        if is_word:
            yield position, end
        position = end


def _without(name: str, start: int, end: int) -> str:
    """Remove a word from a name, with brackets that would become empty, or with one separator."""
    before, after = name[:start], name[end:]
    if before.endswith("[") and after.startswith("]"):
        return before[:-1] + after[1:]
    if before and not before.endswith("["):
        return before[:-1] + after
    return before + after[1:]


def _one_to_one(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the pairs whose tests are in no other pair."""
    renamed_tests = set(pairs)
    olds, news = Counter(old for old, _ in renamed_tests), Counter(new for _, new in renamed_tests)
    return {old: new for old, new in renamed_tests if olds[old] == 1 and news[new] == 1}
