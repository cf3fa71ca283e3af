"""When a target is ready for another tier: below each bound, at it, and above it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers.device_tests.degraded.promotion import LEAST_RUNS, MONTH, SLOWEST, Lacking, PromotionEvidence

READY = PromotionEvidence(
    age=MONTH,
    seconds=SLOWEST,
    missing=1,
    expected=LEAST_RUNS + 1,
    infra=1,
    infra_of=20,
    unsteady=1,
    unsteady_of=20,
)


def test_at_every_bound_the_target_is_ready() -> None:
    assert READY.lacking() == []


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"age": MONTH - 1}, [Lacking.HISTORY]),
        ({"age": None}, [Lacking.HISTORY]),
        ({"expected": LEAST_RUNS, "missing": 0}, []),
        ({"expected": LEAST_RUNS - 1, "missing": 0}, [Lacking.RUNS]),
        ({"seconds": SLOWEST + 1}, [Lacking.SPEED]),
        ({"seconds": None}, [Lacking.SPEED]),
        ({"expected": 40, "missing": 2}, []),
        ({"expected": 40, "missing": 3}, [Lacking.PRESENCE]),
        ({"infra": 2}, [Lacking.DEVICES]),
        ({"infra": 0, "infra_of": 0}, []),
        ({"unsteady": 2}, [Lacking.STEADINESS]),
        ({"age": None, "unsteady": 2}, [Lacking.HISTORY, Lacking.STEADINESS]),
    ],
)
def test_beyond_a_bound_the_target_is_not_ready_and_the_reason_is_named(
    changes: dict[str, float | None], lacking: list[Lacking]
) -> None:
    assert replace(READY, **changes).lacking() == lacking  # type: ignore[arg-type]  # fields of two types
