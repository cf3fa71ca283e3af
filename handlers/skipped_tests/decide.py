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
class Skips:
    """The differences between a suite and its base; test IDs are sorted."""

    newly: tuple[str, ...] = ()
    """They ran at the base and are skipped here."""
    again: tuple[str, ...] = ()
    """They were skipped at the base and run here."""
    removed: int = 0
    """How many ran at the base and are missing here: neither skipped nor renamed."""
    unsearched: bool = False
    """Too many names changed to search for renamed tests: they count as removed."""

    def __bool__(self) -> bool:
        """Say whether anything differs."""
        return bool(self.newly or self.again or self.removed)


def skips(here: SuiteOutcomes, base: SuiteOutcomes, *, most_steps: int = MAX_STEPS) -> Skips:
    """Compare a suite with its base. A test that the base does not have did not run there.

    No test counts as removed while more results of the suite may come.
    """
    newly = [test for test in base.seen if base.ran(test) and here.skipped(test)]
    again = [test for test in here.seen if here.ran(test) and base.skipped(test)]
    removed = {test for test in base.seen if base.ran(test) and test not in here.seen and not here.skipped(test)}
    renamed = search_renames(removed, here.seen.keys() - base.seen.keys(), most_steps=most_steps)
    removed -= (renamed or {}).keys()
    return Skips(tuple(sorted(newly)), tuple(sorted(again)), len(removed) if here.complete else 0, renamed is None)


@dataclass(frozen=True, slots=True)
class Required:
    """The required tests by suite; `problem` says in words for people why they could not be read."""

    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    problem: str = ""


def read_required(raw: bytes) -> Mapping[str, tuple[str, ...]]:
    """Read `{suite: [test ID, …]}`. Raise `UserError` for anything else, and for a file that requires no test."""
    try:
        written = read_json(raw)
    except ValueError as error:
        raise UserError(texts.NO_JSON.format(why=error)) from None
    if not isinstance(written, dict):
        raise UserError(texts.WRONG_SHAPE)
    if not all(isinstance(tests, list) and all(isinstance(test, str) for test in tests) for tests in written.values()):
        raise UserError(texts.WRONG_SHAPE)
    # TVM's list was empty in production, and nobody noticed that it required nothing (TVM #13368).
    if not any(written.values()):
        raise UserError(texts.NO_TEST)
    return {suite: tuple(dict.fromkeys(tests)) for suite, tests in written.items()}


@dataclass(frozen=True, slots=True)
class NotRun:
    """A required test that did not run: it was skipped (`there`), or is not part of the suite.

    `test` is empty if the whole suite has no results.
    """

    suite: str
    test: str
    there: bool = False


def not_run(required: Mapping[str, Iterable[str]], tested: HeadAndBase) -> list[NotRun]:
    """Return the required tests that did not run. A test whose results may still come is left out.

    An ID without parameters, or the ID of a class or a file, stands for all tests inside it; one of them has to run.
    """
    found = []
    for suite, wanted in sorted(required.items()):
        here = tested.suites.get(suite)
        if here is None:
            found += [NotRun(suite, "")] if tested.over else []
            continue
        ran, there = _met(here, set(wanted))
        for test in wanted:
            if test not in ran:
                skipped = test in there or here.skipped(test)
                found += [NotRun(suite, test, skipped)] if skipped or here.complete else []
    return found


def _met(suite: SuiteOutcomes, wanted: set[str]) -> tuple[set[str], set[str]]:
    """Return the wanted IDs that stand for a test that ran, and those that stand for any test of the suite."""
    ran, there = set[str](), set[str]()
    for test in suite.seen:
        for begin in _begins(test):
            if begin in wanted:
                there.add(begin)
                if suite.ran(test):
                    ran.add(begin)
    return ran, there


def _begins(test: str) -> Iterator[str]:
    """Yield the ID of a test, then the ID without parameters, and the IDs of its classes and its file."""
    yield test
    place, bracket, _ = test.partition("[")
    if bracket:
        yield place
    while "::" in place:
        place = place.rpartition("::")[0]
        yield place
