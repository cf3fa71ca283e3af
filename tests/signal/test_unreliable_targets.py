"""While the results of a target are unreliable, single failures are held back; nothing that lasts is lost."""

from __future__ import annotations

from tests.signal.lab import TruthClass
from tests.signal.unreliable import FLIPPING, measure_unreliable

LABS = 3
WRONG = 0.5
"""Reports of tests that flip by chance, for each of them: until three runs were unstable, nobody can know."""


def test_lasting_failures_are_reported_once_results_are_reliable_and_other_targets_are_not_affected() -> None:
    measured = measure_unreliable(range(LABS), without_rule=False)
    failures = measured.unreliable.failures
    for truth in (TruthClass.BEFORE_UNRELIABLE, TruthClass.WHILE_UNRELIABLE):
        assert (failures[truth].right, failures[truth].wrong, failures[truth].missing) == (2 * LABS, 0, 0), truth
    assert failures[TruthClass.STEADY].wrong == 0
    assert failures[TruthClass.BACK_AND_FORTH].wrong <= WRONG * FLIPPING * LABS
    assert {count.missing for count in measured.unreliable.others.values()} == {0}
    of_neighbors = measured.neighbors.failures[TruthClass.REGRESSION]
    assert (of_neighbors.right, of_neighbors.wrong, of_neighbors.missing) == (5 * LABS, 0, 0)
    assert set(of_neighbors.late) == {0}
