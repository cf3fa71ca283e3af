"""The outcomes in a column are those of a dictionary, one by one, in conditions and in comparisons."""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping

import pytest
from nightjar_formats.columns import SEEN
from nightjar_formats.model import BAD, SeenTest, Trouble
from nightjar_formats.runs.infra import infra, is_skipped
from nightjar_formats.runs.shared_outcomes import ColumnOutcomes, SharedOutcomes, only_in, shared

from bot.results.compare.diff import compare, is_cheap
from bot.results.compare.lasting import newly_confirmed
from bot.results.store.tables.names import NamesAtMoment

TROUBLES = (Trouble.NONE, Trouble.COLLECTION, Trouble.CRASH, Trouble.SETUP)
BYTES = [byte for byte in range(1, len(SEEN)) if byte % 8]
CONDITIONS = (is_skipped, lambda seen: seen.status in BAD, lambda seen: seen.flaky, lambda seen: bool(seen.message))


def suite_names(count: int) -> NamesAtMoment:
    """Return names of tests and of files; a file has a name of its own if it could not be collected."""
    return NamesAtMoment(
        [f"tests/{place % 3}.py{'' if place % 7 == 0 else f'::test_{place}'}" for place in range(count)]
    )


def random_run(chance: random.Random, names: NamesAtMoment) -> ColumnOutcomes:
    """Return a run that has most tests; some outcomes have messages, and the newest names may be missing."""
    size = chance.randrange(len(names.ordered) + 1)
    usual = chance.choice(BYTES)
    statuses = bytes(chance.choice([0, usual, usual, usual, chance.choice(BYTES)]) for _ in range(size))
    explained = {
        ordinal: SEEN[byte]._replace(message=chance.choice(["", "a", "b"]), trouble=chance.choice(TROUBLES))
        for ordinal, byte in enumerate(statuses)
        if byte and chance.random() < 0.3
    }
    return ColumnOutcomes(names, statuses, explained)


def as_dictionary(run: ColumnOutcomes) -> dict[str, SeenTest]:
    """Return the outcomes of a run, each looked up on its own."""
    return {test: run[test] for test in run.names.ordered if test in run}


@pytest.mark.parametrize("seed", range(40))
def test_a_column_means_what_a_dictionary_does(seed: int) -> None:
    chance = random.Random(seed)
    names = NamesAtMoment(list(dict.fromkeys(suite_names(chance.randrange(1, 60)).ordered)))
    runs = [random_run(chance, chance.choice([names, NamesAtMoment(list(names.ordered))])) for _ in range(3)]
    plain = [as_dictionary(run) for run in runs]
    for run, tests in zip(runs, plain, strict=True):
        mapping: Mapping[str, SeenTest] = run
        assert mapping == tests
        assert (len(run), list(run), dict(run.items())) == (len(tests), list(tests), tests)
        assert pickle.loads(pickle.dumps(run)) == tests
        assert run.get("no test") is None
        outcomes = SharedOutcomes(tests)
        for condition in CONDITIONS:
            assert sorted(run.which(condition)) == sorted(outcomes.which(condition))
            assert (run.count(condition), run.all(condition)) == (outcomes.count(condition), outcomes.all(condition))
        assert infra(run, None, exit_status=0) == infra(tests, None, exit_status=0)
    (run, base, earlier), (tests, base_tests, earlier_tests) = runs, plain
    assert only_in(run, base) == only_in(tests, base_tests) == only_in(run, base_tests)
    assert is_cheap(run, base) == is_cheap(tests, base_tests)
    for status in (0, 1, 2):
        assert compare(run, base, exit_status=status) == compare(tests, base_tests, exit_status=status)
    assert newly_confirmed(run, base, earlier) == newly_confirmed(tests, base_tests, earlier_tests)


def test_outcomes_in_columns_are_searched_as_they_are_and_others_by_their_distinct_values() -> None:
    run = random_run(random.Random("shared"), suite_names(20))
    assert shared(run) is run
    assert isinstance(shared(dict(run)), SharedOutcomes)
