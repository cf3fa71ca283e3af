"""The bot's reports about 25 simulated labs are as good as docs/signal.md promises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.signal.generate import GAPS, lab_of
from tests.signal.lab import FAILED, NEVER_PASSED, SILENT, UNRELIABLE, LabFault, TruthClass
from tests.signal.measure import measure
from tests.signal.names import DECOYS, RENAMINGS
from tests.signal.score import Count, Score

SEEDS, PARTS = 25, 5
"""The labs that are simulated, and how many tests share them: they may run side by side."""

PRECISION, RECALL = 1.0, 1.0
"""What is promised of every class that has no entry below."""
PROMISED: dict[str, tuple[float, float]] = {TruthClass.FLAKY_REGRESSION: (0.7, RECALL)}
WRONG_OF_SILENT = {TruthClass.FLAKY: 15}
"""How many reports there may be of tests of which there should be none."""


def classes(score: Score) -> Iterator[tuple[str, Count]]:
    """Yield all classes with a promise, with their counts."""
    yield from ((truth, score.failures[truth]) for truth in TruthClass if truth not in SILENT | UNRELIABLE)
    yield from ((name, score.renames[name]) for name in RENAMINGS)
    yield from score.faults.items()
    yield from ((f"commits {least} to {most}", count) for (least, most), count in score.baselines.items())
    yield from score.others.items()


@pytest.mark.exhaustive("0")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_class_has_the_promised_precision_and_recall(part: int) -> None:
    score, broken = measure(range(part, SEEDS, PARTS)), {}
    for name, count in classes(score):
        precision, recall = PROMISED.get(name, (PRECISION, RECALL))
        measured = (count.precision, count.recall)
        if any(share is not None and share < least for share, least in zip(measured, (precision, recall), strict=True)):
            broken[name] = measured
    assert broken == {}
    wrong = {truth: score.failures[truth].wrong for truth in SILENT}
    assert {truth: count for truth, count in wrong.items() if count > WRONG_OF_SILENT.get(truth, 0)} == {}
    assert {name: score.renames[name].wrong for name in DECOYS} == dict.fromkeys(DECOYS, 0)


def test_a_seed_always_gives_the_same_lab_and_another_seed_another_one() -> None:
    assert lab_of(3) == lab_of(3)
    assert replace(lab_of(4), seed=3) != lab_of(3)


def test_labs_have_the_simulators_promised_properties() -> None:
    labs = [lab_of(seed) for seed in range(SEEDS)]
    gaps = {later.position - earlier.position for lab in labs for earlier, later in pairwise(lab.runs)}
    assert (min(gaps), max(gaps) >= GAPS[-1][1]) == (1, True)
    assert any(lab.arrivals != list(lab.runs) for lab in labs)
    assert any(run.received_at - run.committed_at > 7 * 86400 for lab in labs for run in lab.runs)
    assert any(run.interrupted for lab in labs for run in lab.runs)
    assert any(run.incomplete for lab in labs for run in lab.runs)
    assert {test.of_class for lab in labs for test in lab.tests} == set(TruthClass) - UNRELIABLE
    assert {event.kind for lab in labs for event in lab.renames} == RENAMINGS.keys() | DECOYS.keys()
    assert {run.fault for lab in labs for run in lab.runs} >= set(LabFault)
    for lab in labs:
        assert len(lab.tests_by_name()) == sum(len(set(test.names)) for test in lab.tests), (
            "two tests have the same name"
        )
        for test in lab.tests:
            for first, last in test.episodes:
                assert test.letters[first] == test.letters[last] == FAILED
                assert test.of_class in NEVER_PASSED or first > 0
