"""Find the tests that are skipped but ran before, and the required tests that did not run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from nightjar_formats.strict_json import read_json

from bot.core.errors import UserError
from bot.results.compare.renames import MAX_STEPS, search_renames
from handlers.ci_reports.outcomes import HeadAndBase, SuiteOutcomes
from handlers.skipped_tests import texts


@dataclass(frozen=True, slots=True)
class SkipChanges:
    """The differences between a suite and its base; test IDs are sorted."""

    newly_skipped: tuple[str, ...] = ()
    """They ran at the base and are skipped here."""
    running_again: tuple[str, ...] = ()
    """They were skipped at the base and run here."""
    removed: int = 0
    """How many ran at the base and are missing here: neither skipped nor renamed."""
    unsearched: bool = False
    """Too many names changed to search for renamed tests: they count as removed."""

    def __bool__(self) -> bool:
        """Say whether anything differs."""
        return bool(self.newly_skipped or self.running_again or self.removed)


def compare_skips(head: SuiteOutcomes, base: SuiteOutcomes, *, most_steps: int = MAX_STEPS) -> SkipChanges:
    """Compare a suite with its base. A test that the base does not have did not run there.

    No test counts as removed while more results of the suite may come.
    """
    newly_skipped = [test for test in base.seen if base.ran(test) and head.skipped(test)]
    running_again = [test for test in head.seen if head.ran(test) and base.skipped(test)]
    removed = {test for test in base.seen if base.ran(test) and test not in head.seen and not head.skipped(test)}
    renamed = search_renames(removed, head.seen.keys() - base.seen.keys(), most_steps=most_steps)
    removed -= (renamed or {}).keys()
    removed_count = len(removed) if head.complete else 0
    return SkipChanges(
        tuple(sorted(newly_skipped)), tuple(sorted(running_again)), removed_count, unsearched=renamed is None
    )


@dataclass(frozen=True, slots=True)
class Required:
    """The required tests by suite; `problem` says in words for people why they could not be read."""

    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str = ""


def read_required(raw: bytes) -> Mapping[str, tuple[str, ...]]:
    """Read `{suite: [test ID, …]}`. Raise `UserError` for anything else, and for a file that requires no test."""
    try:
        document = read_json(raw)
    except ValueError as error:
        raise UserError(texts.NO_JSON.format(why=error)) from None
    if not isinstance(document, dict):
        raise UserError(texts.WRONG_SHAPE)
    if not all(isinstance(tests, list) and all(isinstance(test, str) for test in tests) for tests in document.values()):
        raise UserError(texts.WRONG_SHAPE)
    # TVM's list was empty in production, and nobody noticed that it required nothing (TVM #13368).
    if not any(document.values()):
        raise UserError(texts.NO_TEST)
    return {suite: tuple(dict.fromkeys(tests)) for suite, tests in document.items()}


@dataclass(frozen=True, slots=True)
class NotRun:
    """A required test that did not run: it was skipped, or is not part of the suite.

    `test` is empty if the whole suite has no results.
    """

    suite: str
    test: str
    was_skipped: bool = False


def not_run(required: Mapping[str, Iterable[str]], tested: HeadAndBase) -> list[NotRun]:
    """Return the required tests that did not run. A test whose results may still come is left out.

    An ID without parameters, or the ID of a class or a file, stands for all tests inside it; one of them has to run.
    """
    missing = []
    for suite, tests in sorted(required.items()):
        suite_outcomes = tested.suites.get(suite)
        if suite_outcomes is None:
            missing += [NotRun(suite, "")] if tested.has_all_suites else []
            continue
        ran, present = _matching_ids(suite_outcomes, set(tests))
        for test in tests:
            if test not in ran:
                skipped = test in present or suite_outcomes.skipped(test)
                missing += [NotRun(suite, test, skipped)] if skipped or suite_outcomes.complete else []
    return missing


def _matching_ids(suite: SuiteOutcomes, required: set[str]) -> tuple[set[str], set[str]]:
    """Return the required IDs that stand for a test that ran, and those that stand for any test of the suite."""
    ran, present = set[str](), set[str]()
    for test in suite.seen:
        for prefix in _enclosing_ids(test):
            if prefix in required:
                present.add(prefix)
                if suite.ran(test):
                    ran.add(prefix)
    return ran, present


def _enclosing_ids(test: str) -> Iterator[str]:
    """Yield the ID of a test, then that without parameters, and those of its classes and its file.

    From `tests/test_add.py::TestAdd::test_ints[1]`: the same, then `…::test_ints`, `…::TestAdd`, `tests/test_add.py`.
    """
    yield test
    place, bracket, _ = test.partition("[")
    if bracket:
        yield place
    while "::" in place:
        place = place.rpartition("::")[0]
        yield place
