"""Find tests that were renamed between two runs, by rules that renamed many at once. No I/O.

The work is bounded: the names that a lab uses determine how long the search takes, and other labs wait meanwhile.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import groupby, islice

from bot.results.compare.name_parts import SIGNS, common_end
from bot.results.compare.restructured import SMALL_CLASS, StatusByTest, search_restructured
from bot.results.compare.steps import StepBudget, TooManyStepsError

RENAMED_TOGETHER = 10
"""A rule must rename so many tests; fewer may be a coincidence."""
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
MAX_EXTRA_COMPONENTS = 2
"""A move may be described with so many components more than necessary. `contrib/moved` is now `extras/moved` has one
more than `contrib` is now `extras`, which does not count if too many other tests of `contrib` are removed."""
MAX_STEPS = 40_000_000
"""Characters of names, and components of locations, that one search handles: two or three seconds at worst. It takes
900,000 to find that ten thousand tests moved from one folder to another."""


Location = tuple[str, ...]


def search_renames(removed: Iterable[str], new: Iterable[str], *, most_steps: int = MAX_STEPS) -> dict[str, str] | None:
    """Pair removed tests with new ones if one rule renamed many at once; return old IDs with new IDs.

    Either side may be a mapping with the status of each test. Three kinds of rule are known. A move: the beginning of
    the location (folders, file, classes) is another, and the rest and the test's own name are the same. Another
    structure (`restructured.py`): parts of names were left out, added or reordered. A rewording: the location is the
    same, and one word of the name or of its parameters was replaced, added or removed; a number for a number is another
    value, not another name. A move or rewording counts if it pairs RENAMED_TOGETHER tests and RENAMED_SHARE of what it
    could concern, and a pair counts if no other rule has another partner for one of the two.

    Returns None if the search would take more than `most_steps`.
    """
    old, added = statuses_of(removed), statuses_of(new)
    unchanged = old.keys() & added.keys()
    old, added = (
        {test: side[test] for test in sorted(side.keys() - unchanged if unchanged else side)} for side in (old, added)
    )
    if min(len(old), len(added)) < SMALL_CLASS:
        return {}
    steps, in_order = StepBudget(most_steps), old
    try:
        renamed: dict[str, str] = {}
        for search in (_find_moves, search_restructured, _find_rewordings):
            new_pairs = search(old, added, len(renamed), steps)
            renamed |= new_pairs
            if len(new_pairs) == min(len(old), len(added)):
                break  # nothing is left to pair
            if new_pairs:
                paired = set(new_pairs.values())
                old = {test: status for test, status in old.items() if test not in new_pairs}
                added = {test: status for test, status in added.items() if test not in paired}
    except TooManyStepsError:
        return None
    return {test: renamed[test] for test in in_order if test in renamed}


def statuses_of(tests: Iterable[str]) -> StatusByTest:
    """Return the status of each test; None for all tests if `tests` is no mapping."""
    return tests if isinstance(tests, Mapping) else dict.fromkeys(tests)


def _located(tests: Iterable[str]) -> Tests:
    """Return each test's location and its own name with the parameters. Thousands of tests may share a location.

    `tests/ir/test_a.py::TestAdd::test_add[int8]` has the location `("tests", "ir", "test_a", "TestAdd")` and the name
    `test_add[int8]`.
    """
    located: dict[str, tuple[Location, str]] = {}
    locations: dict[str, Location | None] = {}
    for test in tests:
        outside = test.partition("[")[0]
        text, colons, name = outside.rpartition("::")
        text, name = (text, name + test[len(outside) :]) if colons else (test, "")
        if text not in locations:
            locations[text] = _location(text)
        if (location := locations[text]) is not None:
            located[test] = location, name
    return located


def _location(text: str) -> Location | None:
    """Return the components of a test's location, without the `.py` of a file.

    None for a location of more than MAX_PARTS components: as tuples, such IDs would take many times their own length.

    A dotted location has the same components as the path that it stands for. So if the list of files was missing in one
    run, the different form of the names is recognized as a move.
    """
    file, *classes = text.split("::", MAX_PARTS)
    separator = "/" if "/" in file or file.endswith(".py") else "."
    if file.count(separator) + len(classes) >= MAX_PARTS:
        return None
    return (*file.removesuffix(".py").split(separator), *classes)


Tests = Mapping[str, tuple[Location, str]]


def _find_moves(removed: StatusByTest, new: StatusByTest, _explained: int, steps: StepBudget) -> dict[str, str]:
    if not _may_share_names(removed, new):
        return {}
    old, added = _located(removed), _located(new)
    if min(len(old), len(added)) < RENAMED_TOGETHER:
        return {}
    rules = sorted(
        (move for move, votes in _count_moves(old, added, steps).items() if votes >= RENAMED_TOGETHER),
        key=lambda move: len(move[0]),
    )
    if not rules:
        return {}
    below = _below(old, {old_place for old_place, _ in rules}, steps)
    new_tests_below = {
        place: len(tests) for place, tests in _below(added, {new_place for _, new_place in rules}, steps).items()
    }
    test_by_split = {split: test for test, split in added.items()}
    pairs = []
    accepted_rules = set[tuple[Location, Location]]()
    for old_place, new_place in rules:
        if old_place[-1:] == new_place[-1:] and (old_place[:-1], new_place[:-1]) in accepted_rules:
            accepted_rules.add((old_place, new_place))  # its pairs are among the pairs of that rule
            continue
        candidates = below[old_place]
        least = max(RENAMED_TOGETHER, RENAMED_SHARE * len(candidates))
        if new_tests_below.get(new_place, 0) < least:
            continue  # thousands of rules may begin with one folder: trying each would take too long
        steps.take(len(candidates) * (len(new_place) + 1))
        moved_pairs = [
            (test, test_by_split[key])
            for test in candidates
            if (key := ((*new_place, *old[test][0][len(old_place) :]), old[test][1])) in test_by_split
        ]
        if len(moved_pairs) >= least:
            pairs += moved_pairs
            accepted_rules.add((old_place, new_place))
    return _unambiguous(pairs)


def _may_share_names(removed: Iterable[str], new: Iterable[str]) -> bool:
    """Return False if no removed test has the same own name as a new one. This check costs half of the search."""
    if any("[" in "".join(side) for side in (removed, new)):
        return True  # in brackets, a double colon is no separator
    old, added = (
        {name if colons else "" for _, colons, name in [test.rpartition("::") for test in side]}
        for side in (removed, new)
    )
    return not old.isdisjoint(added)


def _below(tests: Tests, places: set[Location], steps: StepBudget) -> dict[Location, list[str]]:
    """Return the tests below each of the places: those whose location begins with it."""
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


def _count_moves(old: Tests, added: Tests, steps: StepBudget) -> Counter[tuple[Location, Location]]:
    """Return the possible moves, each an old and a new beginning of locations, and how many tests each explains.

    Tests are paired by their name and up to CONTEXT components before it, which must be unique on both sides. A pair
    counts for the move of its whole location, for the shortest move that explains it, and for those with up to
    MAX_EXTRA_COMPONENTS more: a test of `a/x/test_t.py` that is now in `b/x/test_t.py` counts for `a/x/test_t` to
    `b/x/test_t`, `a` to `b`, and `a/x` to `b/x`. Raises `TooManyStepsError`.
    """
    moves: Counter[tuple[Location, Location]] = Counter()
    shared_names = {name for _, name in old.values()} & {name for _, name in added.values()}
    old_tests, new_tests = (
        {test: split for test, split in side.items() if split[1] in shared_names} for side in (old, added)
    )
    for context in range(CONTEXT, -1, -1):
        old_by_key, new_by_key = (_by_unique_name(side, context) for side in (old_tests, new_tests))
        steps.take((CONTEXT + 1) * (len(old_tests) + len(new_tests)))
        for key in old_by_key.keys() & new_by_key.keys():
            old_location, new_location = old_tests.pop(old_by_key[key])[0], new_tests.pop(new_by_key[key])[0]
            steps.take((1 + MAX_EXTRA_COMPONENTS) * (len(old_location) + len(new_location)))
            moves[old_location, new_location] += 1
            common = common_end(old_location, new_location)
            for omitted in range(common, max(common - MAX_EXTRA_COMPONENTS - 1, 0), -1):
                moves[old_location[:-omitted], new_location[:-omitted]] += 1
    return moves


def _by_unique_name(tests: Tests, context: int) -> dict[tuple[Location, str], str]:
    """Return each test whose name, with the last `context` components of the location, is unique, by these two."""
    test_by_key: dict[tuple[Location, str], str] = {}
    for test, (location, name) in tests.items():
        key = location[-context:] if context else (), name
        test_by_key[key] = "" if key in test_by_key else test
    return {key: test for key, test in test_by_key.items() if test}


def _find_rewordings(removed: StatusByTest, new: StatusByTest, _explained: int, steps: StepBudget) -> dict[str, str]:
    if min(len(removed), len(new)) < RENAMED_TOGETHER:
        return {}
    old, added = _located(removed), _located(new)
    if not RENAMED_TOGETHER <= min(len(old), len(added)) <= max(len(old), len(added)) <= MAX_REWORDED:
        return {}
    # A rewording does not change the location, so tests in other locations need no comparison.
    places = {location for location, _ in old.values()} & {location for location, _ in added.values()}
    old, added = ({test: split for test, split in side.items() if split[0] in places} for side in (old, added))
    if not places:
        return {}
    paired: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    sums = (_sums_of_tests(side, steps) for side in (old, added))
    shared = set[int].intersection(*sums)
    if not shared:
        return {}
    old_by_hash, new_by_hash = (_without_a_word(side, shared, steps) for side in (old, added))
    for key in old_by_hash.keys() & new_by_hash.keys():
        old_test, new_test = old_by_hash[key], new_by_hash[key]
        if old_test and new_test and not (old_test[1].isdecimal() and new_test[1].isdecimal()):
            paired[old_test[1], new_test[1]].add((old_test[0], new_test[0]))
    rules = {rule: pairs for rule, pairs in paired.items() if len(pairs) >= RENAMED_TOGETHER}
    if not rules:
        return {}
    count_by_word: Counter[tuple[Location, str]] = Counter()
    for location, name in old.values():
        count_by_word.update((location, word) for word in {"", *(name[start:end] for start, end in _words(name))})
    renamed: list[tuple[str, str]] = []
    for (word, _), pairs in rules.items():
        applicable = sum(count_by_word[place, word] for place in {old[test][0] for test, _ in pairs})
        if len(pairs) >= RENAMED_SHARE * applicable:
            renamed += pairs
    return _unambiguous(renamed)


def _sums_of_tests(tests: Tests, steps: StepBudget) -> set[int]:
    """Return the sums of all tests. Two tests share one if their locations and all words except one are the same."""
    sums = set[int]()
    for location, name in tests.values():
        steps.take(len(name))
        sums |= _sums(location, name)
    return sums


def _sums(location: Location, name: str) -> set[int]:
    """Return hashes of a name: of all its words, and of its words without each one of them."""
    words = [hash(name[start:end]) for start, end in islice(_words(name), MAX_WORDS + 1)]
    total = hash(location) + sum(words)
    return {total, *(total - word for word in words)}


def _without_a_word(tests: Tests, shared: Set[int], steps: StepBudget) -> dict[int, tuple[str, str] | None]:
    """Return tests by hashes of their name with one word blanked, with one word removed, and with all words.

    Tests that have none of the `shared` sums are left out, because no other test is like them. The keys are hashes,
    because the names would take a thousand times the memory of the input. None: several tests have the hash.
    """
    test_by_hash: dict[int, tuple[str, str] | None] = {}
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
            test_by_hash[key] = None if key in test_by_hash else (test, word)
    return test_by_hash


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
    prefix, suffix = name[:start], name[end:]
    if prefix.endswith("[") and suffix.startswith("]"):
        return prefix[:-1] + suffix[1:]
    if prefix and not prefix.endswith("["):
        return prefix[:-1] + suffix
    return prefix + suffix[1:]


def _unambiguous(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the pairs whose tests are in no other pair."""
    renamed_tests = set(pairs)
    olds, news = Counter(old for old, _ in renamed_tests), Counter(new for _, new in renamed_tests)
    return {old: new for old, new in renamed_tests if olds[old] == 1 and news[new] == 1}
