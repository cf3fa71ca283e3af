"""What the bot reports about 50 simulated labs is as good as docs/signal.md promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.signal.generate import GAPS, lab_of
from tests.signal.lab import FAILED, NEVER_PASSED, SILENT, TruthClass
from tests.signal.measure import measure
from tests.signal.names import DECOYS, RENAMINGS
from tests.signal.score import PROVED, RECOVERY, Count, Score

SEEDS = 50

PRECISION, RECALL = 1.0, 1.0
"""What is promised of every class that has no entry below."""
PROMISED: dict[str, tuple[float, float]] = {
    TruthClass.RENAMED: (0.6, 0.95),
    TruthClass.FLAKY_REGRESSION: (0.75, RECALL),
    "another word left out in each class": (PRECISION, 0.0),
    "words reordered": (PRECISION, 0.0),
    "a dotted prefix dropped": (PRECISION, 0.9),
    "a dotted prefix restored": (PRECISION, 0.9),
    "a dotted prefix of names dropped": (PRECISION, 0.0),
    "a class of four tests renamed": (PRECISION, 0.0),
    RECOVERY: (0.9, RECALL),
}
WRONG_OF_SILENT = {TruthClass.FLAKY: 40}
"""How many reports there may be of tests of which there should be none."""


@pytest.fixture(scope="module")
def score() -> Score:
    return measure(range(SEEDS))


def classes(score: Score) -> Iterator[tuple[str, Count]]:
    """Yield all classes of which something is promised, with what was counted."""
    yield from ((one, score.failures[one]) for one in TruthClass if one not in SILENT)
    yield from ((name, score.renames[name]) for name in RENAMINGS)
    yield from score.faults.items()
    yield from ((f"commits {least} to {most}", count) for (least, most), count in score.baselines.items())
    yield from score.others.items()


def test_every_class_has_the_precision_and_the_recall_that_is_promised(score: Score) -> None:
    broken = {}
    for name, count in classes(score):
        precision, recall = PROMISED.get(name, (PRECISION, RECALL))
        measured = (count.precision, count.recall)
        if any(share is not None and share < least for share, least in zip(measured, (precision, recall), strict=True)):
            broken[name] = measured
    assert broken == {}
    wrong = {one: score.failures[one].wrong for one in SILENT}
    assert {one: count for one, count in wrong.items() if count > WRONG_OF_SILENT.get(one, 0)} == {}
    assert {name: score.renames[name].wrong for name in DECOYS} == dict.fromkeys(DECOYS, 0)
    assert score.others[PROVED].cases >= SEEDS / 5
    assert all(count.cases or name in (RECOVERY, PROVED) for name, count in classes(score)), "a class has no case"


def test_a_seed_makes_the_same_lab_each_time_and_another_seed_another() -> None:
    assert lab_of(3) == lab_of(3)
    assert replace(lab_of(4), seed=3) != lab_of(3)


def test_labs_have_what_the_simulator_promises() -> None:
    labs = [lab_of(seed) for seed in range(SEEDS)]
    gaps = {after.position - before.position for lab in labs for before, after in pairwise(lab.runs)}
    assert (min(gaps), max(gaps) >= GAPS[-1][1]) == (1, True)
    assert any(lab.arrivals != list(lab.runs) for lab in labs)
    assert any(run.received_at - run.committed_at > 7 * 86400 for lab in labs for run in lab.runs)
    assert any(run.interrupted for lab in labs for run in lab.runs)
    for lab in labs:
        for test in lab.tests:
            for first, last in test.episodes:
                assert test.letters[first] == test.letters[last] == FAILED
                assert test.of_class in NEVER_PASSED or first > 0
