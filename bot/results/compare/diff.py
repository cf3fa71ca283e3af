"""What changed between two runs, and whether a run says anything about the code at all: no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from nightjar_formats.model import BAD, GOOD, Counts, SeenTest, Status, Trouble
from nightjar_formats.runs.infra import could_not_be_collected, file_of, infra_of, is_skipped
from nightjar_formats.runs.shared_outcomes import SharedOutcomes

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare import texts
from bot.results.compare.places import Places
from bot.results.compare.renames import MAX_STEPS, search_renames

INTERRUPTED = (2, 3, 4, 124)
"""Exit statuses of a run that ended early: pytest's for an interrupt, an internal error, a wrong call; timeout(1)'s."""
KILLED = 125
"""Exit statuses from here on, and negative ones, are those of a command that could not be run or was killed."""
MASS_TESTS = 20
MASS_SHARE = 0.1
"""So many new failures, and more than this share of the tests that ran, are a mass."""
CONFIRMED_RUNS = 2
"""A failure that is seen in so many runs in a row is no chance any more."""


_SKIPPED = Status.SKIPPED


@dataclass(frozen=True, slots=True)
class Comparison:
    """One suite's run beside its baseline: sorted test IDs by what happened to them.

    `new` are all tests that the baseline does not have, those that fail (which are new failures too) included.
    `removed` are all that only the baseline has, but for `precluded`: nobody knows of those, for this time their file
    could not be collected, the process died in it, or the whole run ended early. `renamed` are pairs of (before, now).
    Without a baseline (`has_baseline` false) only `counts`, `failing` and `flaky` say anything.
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
    """Failures that the baseline does not have, but that the known flakiness of the tests explains."""
    renamed: tuple[tuple[str, str], ...] = ()
    unsearched: bool = False
    """Renamed tests were not searched for, as so many names changed: they count among `removed` and `new`."""
    infra: str = ""
    """Why this run says nothing about the code, for people to read; then no test is new, removed or fixed."""
    mass: bool = False
    """So much failed at once that one cause is likelier than many."""


def compare(
    now: Mapping[str, SeenTest],
    baseline: Mapping[str, SeenTest] | None,
    *,
    exit_status: int | None,
    most_steps: int = MAX_STEPS,
    aliases: Aliases = NO_ALIASES,
) -> Comparison:
    """Compare one suite's merged results with those of its baseline, which must not be infra itself.

    `exit_status` is that of the lab's test command, as far as it is known: one that no finished run of tests has makes
    tests that are missing precluded. A file's own ID, for a collection error or a skip of all of it, speaks for its
    tests: they are precluded or newly skipped, not removed, and it is fixed, not removed, when they are back.
    `most_steps` bounds the search for renamed tests; those that `aliases` name are not searched for.
    """
    outcomes = SharedOutcomes(now)
    failing, flaky = _sorted(outcomes.which(_is_bad)), _sorted(outcomes.which(_is_flaky))
    result = Comparison(_counts(outcomes), baseline is not None, failing=failing, flaky=flaky)
    if why := infra_of(now, outcomes, baseline, exit_status):
        return replace(result, infra=why)
    return result if baseline is None else _compared(result, now, baseline, exit_status, most_steps, aliases)


def untested(now: Mapping[str, SeenTest]) -> str:
    """Say that nothing was tested, for everything was skipped, or "": that may well be, but compares with nothing.

    As a baseline, a run without its device would make the next run look like one in which nothing changed.
    """
    skipped = SharedOutcomes(now).all(is_skipped)
    return texts.UNTESTED.format(skipped=len(now)) if skipped else ""


def _compared(
    result: Comparison,
    now: Mapping[str, SeenTest],
    baseline: Mapping[str, SeenTest],
    exit_status: int | None,
    most_steps: int,
    aliases: Aliases,
) -> Comparison:
    precluded, skipped, returned, removed = _unseen(now, baseline, exit_status)
    renamed = aliases.pairs(removed, now.keys() - baseline.keys())
    missing = {test: baseline[test].status for test in removed if test not in renamed}
    added = {test: now[test].status for test in (now.keys() - baseline.keys()).difference(renamed.values())}
    found = search_renames(missing, added, most_steps=most_steps)
    renamed |= found or {}
    before = {renamed.get(test, test): seen for test, seen in baseline.items()} if renamed else baseline
    outcomes, outcomes_before = SharedOutcomes(now), SharedOutcomes(before)
    was_bad, was_flaky = set(outcomes_before.which(_is_bad)), set(outcomes_before.which(_is_flaky))
    was_skipped = set(outcomes_before.which(is_skipped))
    new_failures = _sorted(test for test in result.failing if test not in was_bad)
    newly_skipped = [test for test in outcomes.which(is_skipped) if test in before and test not in was_skipped]
    fixed = [test for test in was_bad if (seen := now.get(test)) and seen.status in GOOD]
    ran = len(now) - outcomes.count(is_skipped)
    return replace(
        result,
        new_failures=new_failures,
        still_failing=_sorted(test for test in result.failing if test in was_bad),
        fixed=_sorted([*fixed, *(test for test in returned if test in was_bad)]),
        new=_sorted(now.keys() - before.keys()),
        removed=_sorted(removed - renamed.keys()),
        precluded=_sorted(precluded),
        newly_skipped=_sorted([*newly_skipped, *(test for test in skipped if test not in was_skipped)]),
        newly_flaky=tuple(test for test in result.flaky if test not in was_flaky),
        renamed=tuple(sorted(renamed.items())),
        unsearched=found is None,
        mass=len(new_failures) >= MASS_TESTS and len(new_failures) > MASS_SHARE * ran,
    )


def _unseen(
    now: Mapping[str, SeenTest], baseline: Mapping[str, SeenTest], exit_status: int | None
) -> tuple[set[str], set[str], set[str], set[str]]:
    """Sort the tests that only the baseline has: precluded, skipped with their file, files that run again, removed."""
    precluded, skipped, returned, removed = set[str](), set[str](), set[str](), set[str]()
    unseen = baseline.keys() - now.keys()
    if not unseen:
        return precluded, skipped, returned, removed
    files = {test for test in unseen if "::" not in test}
    inside = Places(file_of(test) for test in now if files and "::" in test)
    stopped = Places(place for test, seen in now.items() if (place := _stopped(test, seen)))
    left_out = Places(test for test, seen in now.items() if _left_out(test, seen))
    ended = _ended_early(now, exit_status)
    for test in unseen:
        file = file_of(test)
        if test in files and inside.lie_in(test):
            returned.add(test)
        elif left_out.hold(file):
            skipped.add(test)
        elif ended or stopped.hold(file):
            precluded.add(test)
        elif baseline[test].trouble is Trouble.INTERNAL:
            returned.add(test)
        else:
            removed.add(test)
    return precluded, skipped, returned, removed


def absent(now: Mapping[str, SeenTest], tests: Iterable[str], *, exit_status: int | None) -> tuple[set[str], set[str]]:
    """Return which of some tests that failed, and are not in this run, run again under other IDs, which are removed.

    The first are files that could not be collected. Of all others nobody knows, as in `Comparison`.
    """
    _, _, returned, removed = _unseen(now, dict.fromkeys(tests, SeenTest(Status.FAILED)), exit_status)
    return returned, removed


def _stopped(test: str, seen: SeenTest) -> str:
    """Return the place whose other tests may not have run because of this one."""
    if could_not_be_collected(seen):
        return test
    return file_of(test) if seen.trouble is Trouble.CRASH else ""


def _ended_early(now: Mapping[str, SeenTest], exit_status: int | None) -> bool:
    """Return whether the run ended before it had come to all tests.

    pytest ends after collection if a file could not be collected, unless an option says that it continues.
    """
    if exit_status is not None and (exit_status in INTERRUPTED or not 0 <= exit_status < KILLED):
        return True
    if any(seen.trouble is Trouble.INTERNAL for seen in now.values()):
        return True
    unread = sum(could_not_be_collected(seen) for seen in now.values())
    return unread > 0 and unread + sum(_left_out(test, seen) for test, seen in now.items()) == len(now)


def _left_out(test: str, seen: SeenTest) -> bool:
    """Return whether this is a file that was skipped as a whole."""
    return "::" not in test and seen.status is _SKIPPED


def _is_bad(seen: SeenTest) -> bool:
    return seen.status in BAD


def _is_flaky(seen: SeenTest) -> bool:
    return seen.flaky


def _counts(outcomes: SharedOutcomes) -> Counts:
    ended = Counter[str]()
    for seen, count in outcomes.counted:
        ended[seen.status.value] += count
    return Counts(**ended, flaky=outcomes.count(_is_flaky))


def _sorted(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(tests))
