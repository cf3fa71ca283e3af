"""Compare two runs, and decide whether a run is usable at all. No I/O."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from nightjar_formats.model import BAD, GOOD, Counts, SeenTest, Status, Trouble
from nightjar_formats.runs.infra import could_not_be_collected, file_of, infra_of, is_skipped
from nightjar_formats.runs.shared_outcomes import Outcomes, only_in, shared

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare import texts
from bot.results.compare.renames import MAX_STEPS, search_renames
from bot.results.compare.restructured import SMALL_CLASS

INTERRUPTED = (2, 3, 4, 124)
"""Exit statuses of a run that ended early: pytest's for an interrupt, an internal error, a wrong call; timeout(1)'s."""
KILLED = 125
"""From this exit status on, and below 0, the command could not be run or was killed."""
MASS_TESTS = 20
MASS_SHARE = 0.1
"""So many new failures, if they are more than this share of the tests that ran, are a mass failure."""
CONFIRMED_RUNS = 2
"""A failure in so many runs in a row is confirmed."""
MOST_CHEAP_TESTS = 100_000
MOST_CHEAP_MESSAGES = 1_000


_SKIPPED = Status.SKIPPED


@dataclass(frozen=True, slots=True)
class Comparison:
    """A suite's run compared with its baseline: sorted test IDs by what happened to them.

    `new` are all tests that the baseline does not have, including failing ones (which are new failures too). `removed`
    are tests that only the baseline has, except `precluded` ones, whose result is unknown: their file could not be
    collected, the process died in it, or the run ended early. `renamed` are pairs of (old name, new name). Without a
    baseline (`has_baseline` is False) only `counts`, `failing`, `flaky` and `known_flaky` are meaningful.
    """

    counts: Counts
    has_baseline: bool
    failing: tuple[str, ...] = ()
    new_failures: tuple[str, ...] = ()
    still_failing: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    precluded: tuple[str, ...] = ()
    newly_skipped: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    newly_flaky: tuple[str, ...] = ()
    known_flaky: tuple[str, ...] = ()
    """Failures that the known flakiness of the tests explains: they are neither new nor still failing.

    Without the history of the tests, these are the failures of tests that also passed.
    """
    renamed: tuple[tuple[str, str], ...] = ()
    unsearched: bool = False
    """The search for renamed tests was skipped because too many names changed: they count in `removed` and `new`."""
    infra: str = ""
    """The reason for people why this run has no usable results; then no test is new, removed or fixed."""
    mass: bool = False
    """So many tests failed at once that one cause is likelier than many."""


def compare(
    current: Mapping[str, SeenTest],
    baseline: Mapping[str, SeenTest] | None,
    *,
    exit_status: int | None,
    most_steps: int = MAX_STEPS,
    aliases: Aliases = NO_ALIASES,
) -> Comparison:
    """Compare one suite's merged results with those of its baseline, which must not be infra itself.

    `exit_status` is that of the lab's test command, if known; if it says that the run did not finish, missing tests are
    precluded. If a file has its own ID, because of a collection error or a skip, that applies to its tests: they are
    precluded or newly skipped, not removed. Once they run again, the file's ID is fixed, not removed. `most_steps`
    bounds the search for renamed tests; it leaves out tests that `aliases` name.
    """
    outcomes = shared(current)
    failing, flaky = _sorted(outcomes.which(_is_bad)), _sorted(outcomes.which(_is_flaky))
    known_flaky = _sorted(set(failing).intersection(flaky)) if flaky else ()
    result = Comparison(_counts(outcomes), baseline is not None, failing=failing, flaky=flaky, known_flaky=known_flaky)
    if infra_reason := infra_of(current, outcomes, baseline, exit_status):
        return replace(result, infra=infra_reason)
    if baseline is None:
        return result
    return _compared(result, current, outcomes, baseline, exit_status, most_steps, aliases)


def is_cheap(current: Mapping[str, SeenTest], baseline: Mapping[str, SeenTest] | None) -> bool:
    """Return whether a comparison of two runs takes only milliseconds, whatever their names and messages are.

    It does if few messages differ, and so few names were added or removed that no search for renamed tests is made.
    """
    if len(current) + len(baseline or ()) > MOST_CHEAP_TESTS:
        return False
    if sum(bool(seen.message) for seen, _ in shared(current).counted) > MOST_CHEAP_MESSAGES:
        return False
    return (
        baseline is None
        or len(only_in(baseline, current)) < SMALL_CLASS
        or len(only_in(current, baseline)) < SMALL_CLASS
    )


def untested(current: Mapping[str, SeenTest]) -> str:
    """Return the reason why a run tested nothing (everything was skipped), or "". Such a run is valid but no baseline.

    If a run without its device were a baseline, the next run would look as if nothing had changed.
    """
    return _untested(current, shared(current))


def _untested(current: Mapping[str, SeenTest], outcomes: Outcomes) -> str:
    return texts.UNTESTED.format(skipped=len(current)) if outcomes.all(is_skipped) else ""


def unusable(current: Mapping[str, SeenTest]) -> str:
    """Return why the results of a commit cannot be compared with others, from these results alone; "" if they can."""
    outcomes = shared(current)
    # The exit status of the command of the tests would only change the words.
    return infra_of(current, outcomes, None, exit_status=None) or _untested(current, outcomes)


def _compared(
    result: Comparison,
    current: Mapping[str, SeenTest],
    outcomes: Outcomes,
    baseline: Mapping[str, SeenTest],
    exit_status: int | None,
    most_steps: int,
    aliases: Aliases,
) -> Comparison:
    precluded, skipped, returned, removed = _sort_missing(current, baseline, exit_status)
    added_tests = only_in(current, baseline)
    renamed = aliases.pairs(removed, added_tests)
    missing = {test: baseline[test].status for test in removed if test not in renamed}
    added = {test: current[test].status for test in added_tests.difference(renamed.values())}
    renamed_by_rule = search_renames(missing, added, most_steps=most_steps)
    renamed |= renamed_by_rule or {}
    baseline_by_new_name = {renamed.get(test, test): seen for test, seen in baseline.items()} if renamed else baseline
    outcomes_before = shared(baseline_by_new_name)
    was_bad, was_flaky = set(outcomes_before.which(_is_bad)), set(outcomes_before.which(_is_flaky))
    was_skipped = set(outcomes_before.which(is_skipped))
    known_flaky = set(result.known_flaky)
    failing = [test for test in result.failing if test not in known_flaky]
    new_failures = _sorted(test for test in failing if test not in was_bad)
    newly_skipped = [
        test for test in outcomes.which(is_skipped) if test not in was_skipped and test in baseline_by_new_name
    ]
    fixed = [test for test in was_bad if (seen := current.get(test)) and seen.status in GOOD]
    ran_count = len(current) - outcomes.count(is_skipped)
    return replace(
        result,
        new_failures=new_failures,
        still_failing=_sorted(test for test in failing if test in was_bad),
        fixed=_sorted([*fixed, *(test for test in returned if test in was_bad)]),
        new=_sorted(only_in(current, baseline_by_new_name)),
        removed=_sorted(removed - renamed.keys()),
        precluded=_sorted(precluded),
        newly_skipped=_sorted([*newly_skipped, *(test for test in skipped if test not in was_skipped)]),
        newly_flaky=tuple(test for test in result.flaky if test not in was_flaky),
        renamed=tuple(sorted(renamed.items())),
        unsearched=renamed_by_rule is None,
        mass=len(new_failures) >= MASS_TESTS and len(new_failures) > MASS_SHARE * ran_count,
    )


def _sort_missing(
    current: Mapping[str, SeenTest], baseline: Mapping[str, SeenTest], exit_status: int | None
) -> tuple[set[str], set[str], set[str], set[str]]:
    """Sort the tests that only the baseline has: precluded, skipped with their file, files that run again, removed."""
    precluded, skipped, returned, removed = set[str](), set[str](), set[str](), set[str]()
    missing = only_in(baseline, current)
    if not missing:
        return precluded, skipped, returned, removed
    files = {test for test in missing if "::" not in test}
    places_with_tests = Places(file_of(test) for test in current if files and "::" in test)
    stopped_places = Places(place for test, seen in current.items() if (place := _stopped_place(test, seen)))
    skipped_places = Places(test for test, seen in current.items() if _is_skipped_file(test, seen))
    is_cut_short = _ended_early(current, exit_status)
    for test in missing:
        file = file_of(test)
        if test in files and places_with_tests.any_inside(test):
            returned.add(test)
        elif skipped_places.contain(file):
            skipped.add(test)
        elif is_cut_short or stopped_places.contain(file):
            precluded.add(test)
        elif baseline[test].trouble is Trouble.INTERNAL:
            returned.add(test)
        else:
            removed.add(test)
    return precluded, skipped, returned, removed


def absent(
    current: Mapping[str, SeenTest], tests: Iterable[str], *, exit_status: int | None
) -> tuple[set[str], set[str]]:
    """Return which absent tests run again under other IDs, and which were removed; `tests` failed and are absent here.

    Those that run again are files that could not be collected before. The result of all other tests is unknown, as in
    `Comparison`.
    """
    _, _, returned, removed = _sort_missing(current, dict.fromkeys(tests, SeenTest(Status.FAILED)), exit_status)
    return returned, removed


def _stopped_place(test: str, seen: SeenTest) -> str:
    """Return the file or folder in which other tests may not have run because of this one."""
    if could_not_be_collected(seen):
        return test
    return file_of(test) if seen.trouble is Trouble.CRASH else ""


def _ended_early(current: Mapping[str, SeenTest], exit_status: int | None) -> bool:
    """Return whether the run ended before all tests had run.

    If a file could not be collected, pytest ends after the collection, unless an option makes it continue.
    """
    if exit_status is not None and (exit_status in INTERRUPTED or not 0 <= exit_status < KILLED):
        return True
    if any(seen.trouble is Trouble.INTERNAL for seen in current.values()):
        return True
    unread = sum(could_not_be_collected(seen) for seen in current.values())
    return unread > 0 and unread + sum(_is_skipped_file(test, seen) for test, seen in current.items()) == len(current)


def _is_skipped_file(test: str, seen: SeenTest) -> bool:
    """Return whether this is a file that was skipped as a whole."""
    return "::" not in test and seen.status is _SKIPPED


def _is_bad(seen: SeenTest) -> bool:
    return seen.status in BAD


def _is_flaky(seen: SeenTest) -> bool:
    return seen.flaky


def _counts(outcomes: Outcomes) -> Counts:
    count_by_status = Counter[str]()
    for seen, count in outcomes.counted:
        count_by_status[seen.status.value] += count
    return Counts(**count_by_status, flaky=outcomes.count(_is_flaky))


def _sorted(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(tests))


_FOLDER, _PACKAGE = "\x01", "\x02"
_SEPARATORS = str.maketrans({"/": _FOLDER, ".": _PACKAGE})
"""The separator of a place's name sorts before all other characters, so that its content follows right after it."""


class Places:
    """A set of files, folders and packages, as test IDs begin: `tests/ir`, `tests/ir/test_a.py`, `ctypes.tests.ir`.

    It takes memory in proportion to the names, and a lookup takes time in proportion to its name. A set that has all
    parent folders too would take memory in proportion to their depth as well.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._all = sorted({name.translate(_SEPARATORS) for name in names})
        self._outermost: list[str] = []
        for place in self._all:
            if not (self._outermost and _lies_in(place, self._outermost[-1])):
                self._outermost.append(place)

    def contain(self, name: str) -> bool:
        """Return whether `name` is one of the places, or lies inside of one."""
        place = name.translate(_SEPARATORS)
        index = bisect_right(self._outermost, place)
        return index > 0 and _lies_in(place, self._outermost[index - 1])

    def any_inside(self, name: str) -> bool:
        """Return whether one of the places is `name`, or lies inside of it."""
        place = name.translate(_SEPARATORS)
        index = bisect_left(self._all, place)
        return index < len(self._all) and _lies_in(self._all[index], place)


def _lies_in(place: str, outer: str) -> bool:
    return place == outer or place.startswith((outer + _FOLDER, outer + _PACKAGE))
