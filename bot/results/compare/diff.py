"""What changed between two runs, and whether a run says anything about the code at all: no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from nightjar_formats.model import BAD, SeenTest, Status, Trouble

from bot.core.aliases import NO_ALIASES, Aliases
from bot.core.patterns import SPACE, Pattern
from bot.results.compare import texts
from bot.results.compare.places import Places
from bot.results.compare.renames import MAX_STEPS, search_renames
from bot.results.compare.shared_outcomes import SharedOutcomes

FINISHED = (None, 0, 5)
"""Exit statuses with which a run may end well without a test; 5 is pytest's for none selected."""
INTERRUPTED = (2, 3, 4, 124)
"""Exit statuses of a run that ended early: pytest's for an interrupt, an internal error, a wrong call; timeout(1)'s."""
KILLED = 125
"""Exit statuses from here on, and negative ones, are those of a command that could not be run or was killed."""
MASS_COLLECTION_FILES = 3
MASS_COLLECTION_SHARE = 0.75
"""So many files, and so much of all files, must have failed at collection. Real runs reach 0.57, a broken lab 1.
Files are counted, not tests: a file that could not be collected may stand for hundreds."""
ONE_CAUSE_TESTS = 10
ONE_CAUSE_SHARE = 0.8
"""More than this share of the tests that ran, so many at least, must have failed with one cause (Trunk's rule too)."""
ALL_SKIPPED_TESTS = 3
"""So many tests must have ended well in the baseline before it is odd that all are skipped."""
MASS_TESTS = 20
MASS_SHARE = 0.1
"""So many new failures, and more than this share of the tests that ran, are a mass."""
CONFIRMED_RUNS = 2
"""A failure that is seen in so many runs in a row is no chance any more."""


GOOD = frozenset({Status.PASSED, Status.XFAILED, Status.XPASSED})
_SKIPPED = Status.SKIPPED

_PART_OF_WORD = rf"[^{SPACE}'\"`(),;<>/\\]"
_PATH = Pattern(rf"{_PART_OF_WORD}*[/\\](?:{_PART_OF_WORD}|[/\\])*")
_NUMBER = Pattern(r"0x[0-9a-fA-F]+|\p{Nd}+")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many tests ended in which way; `flaky` are counted among the others too."""

    passed: int = 0
    failed: int = 0
    errored: int = 0
    skipped: int = 0
    xfailed: int = 0
    xpassed: int = 0
    flaky: int = 0


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
    if why := _infra(now, outcomes, baseline, exit_status):
        return replace(result, infra=why)
    return result if baseline is None else _compared(result, now, baseline, exit_status, most_steps, aliases)


def infra(now: Mapping[str, SeenTest], baseline: Mapping[str, SeenTest] | None, *, exit_status: int | None) -> str:
    """Say why a run tells nothing about the code, what to look at included, or ""; none of a lab's words is in it."""
    return _infra(now, SharedOutcomes(now), baseline, exit_status)


def _infra(
    now: Mapping[str, SeenTest],
    outcomes: SharedOutcomes,
    baseline: Mapping[str, SeenTest] | None,
    exit_status: int | None,
) -> str:
    if not now:
        return texts.NO_TESTS if exit_status in FINISHED else texts.CRASHED.format(status=exit_status)
    if outcomes.all(lambda seen: seen.trouble in (Trouble.INTERNAL, Trouble.CRASH)):
        return texts.ONLY_CRASHES
    return _mass_collection(now, outcomes) or _all_skipped(outcomes, baseline or {}) or _one_cause(outcomes)


def untested(now: Mapping[str, SeenTest]) -> str:
    """Say that nothing was tested, for everything was skipped, or "": that may well be, but compares with nothing.

    As a baseline, a run without its device would make the next run look like one in which nothing changed.
    """
    skipped = SharedOutcomes(now).all(_is_skipped)
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
    was_skipped = set(outcomes_before.which(_is_skipped))
    new_failures = _sorted(test for test in result.failing if test not in was_bad)
    newly_skipped = [test for test in outcomes.which(_is_skipped) if test in before and test not in was_skipped]
    fixed = [test for test in was_bad if (seen := now.get(test)) and seen.status in GOOD]
    ran = len(now) - outcomes.count(_is_skipped)
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
    inside = Places(_file(test) for test in now if files and "::" in test)
    stopped = Places(place for test, seen in now.items() if (place := _stopped(test, seen)))
    left_out = Places(test for test, seen in now.items() if _left_out(test, seen))
    ended = _ended_early(now, exit_status)
    for test in unseen:
        file = _file(test)
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


def _file(test: str) -> str:
    """Return the file, or the dotted name, that a test's ID begins with."""
    return test.partition("::")[0]


def _stopped(test: str, seen: SeenTest) -> str:
    """Return the place whose other tests may not have run because of this one."""
    if _unread(seen):
        return test
    return _file(test) if seen.trouble is Trouble.CRASH else ""


def _ended_early(now: Mapping[str, SeenTest], exit_status: int | None) -> bool:
    """Tell whether the run ended before it had come to all tests.

    pytest ends after collection if a file could not be collected, unless an option says that it continues.
    """
    if exit_status is not None and (exit_status in INTERRUPTED or not 0 <= exit_status < KILLED):
        return True
    if any(seen.trouble is Trouble.INTERNAL for seen in now.values()):
        return True
    unread = sum(_unread(seen) for seen in now.values())
    return unread > 0 and unread + sum(_left_out(test, seen) for test, seen in now.items()) == len(now)


def _unread(seen: SeenTest) -> bool:
    """Tell whether this is a file that could not be collected."""
    return seen.trouble is Trouble.COLLECTION and seen.status in BAD


def _left_out(test: str, seen: SeenTest) -> bool:
    """Tell whether this is a file that was skipped as a whole."""
    return "::" not in test and seen.status is _SKIPPED


def _is_bad(seen: SeenTest) -> bool:
    return seen.status in BAD


def _is_flaky(seen: SeenTest) -> bool:
    return seen.flaky


def _is_skipped(seen: SeenTest) -> bool:
    return seen.status is _SKIPPED


def _counts(outcomes: SharedOutcomes) -> Counts:
    ended = Counter[str]()
    for seen, count in outcomes.counted:
        ended[seen.status.value] += count
    return Counts(**ended, flaky=outcomes.count(_is_flaky))


def _mass_collection(now: Mapping[str, SeenTest], outcomes: SharedOutcomes) -> str:
    broken = set(outcomes.which(_unread))
    if len(broken) < MASS_COLLECTION_FILES:
        return ""
    files = broken | {_file(test) for test, seen in now.items() if seen.trouble is not Trouble.INTERNAL}
    much = len(broken) >= MASS_COLLECTION_SHARE * len(files)
    return texts.MASS_COLLECTION.format(broken=len(broken), files=len(files)) if much else ""


def _all_skipped(outcomes: SharedOutcomes, baseline: Mapping[str, SeenTest]) -> str:
    if not outcomes.all(_is_skipped):
        return ""
    good = sum(seen.status in GOOD for seen in baseline.values())
    skipped = outcomes.count(_is_skipped)
    return texts.ALL_SKIPPED.format(skipped=skipped, good=good) if good >= ALL_SKIPPED_TESTS else ""


def _one_cause(outcomes: SharedOutcomes) -> str:
    ran, messages = 0, Counter[str]()
    for seen, count in outcomes.counted:
        ran += 0 if _is_skipped(seen) else count
        if seen.status in BAD and seen.message:
            messages[seen.message] += count
    if ran < ONE_CAUSE_TESTS or messages.total() <= ONE_CAUSE_SHARE * ran:
        return ""
    causes = Counter[str]()
    for message, count in messages.items():
        causes[failure_cause(message)] += count
    failed = max(causes.values())
    return texts.ONE_CAUSE.format(failed=failed, ran=ran) if failed > ONE_CAUSE_SHARE * ran else ""


def failure_cause(message: str) -> str:
    """Fold what differs between failures of one cause: paths and node IDs, numbers, addresses, workers' names."""
    return _NUMBER.sub("0", _PATH.sub("/", message))


def _sorted(tests: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(tests))
