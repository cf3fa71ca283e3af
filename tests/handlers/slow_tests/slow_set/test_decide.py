"""Which tests are slow: a planted truth, whose cost and misses are computed here again."""

from __future__ import annotations

import random
from itertools import combinations

from handlers.slow_tests.slow_set.decide import HEADROOM, SlowCandidate, choose_slow_set

MINUTE = 60.0


def names(candidates: tuple[SlowCandidate, ...]) -> list[str]:
    return [candidate.test for candidate in candidates]


def test_what_caught_nothing_is_marked_first_and_a_useful_test_stays() -> None:
    planted = [
        SlowCandidate("ssd", 20 * MINUTE, 0),
        SlowCandidate("broadcast", 15 * MINUTE, 0),
        SlowCandidate("elemwise", 12 * MINUTE, 9),
        SlowCandidate("upsampling", 10 * MINUTE, 1),
        SlowCandidate("quick", 9.0, 0),
    ]
    chosen = choose_slow_set(planted, 10 * MINUTE, 30 * MINUTE)
    # 67 minutes: without the first two, 32 are left, so the one that caught least must go too.
    assert names(chosen.marked) == ["ssd", "broadcast", "upsampling"]
    assert (chosen.seconds_before, chosen.seconds_after) == (67 * MINUTE + 9, 22 * MINUTE + 9)
    # Three minutes more of a budget are enough for it.
    assert names(choose_slow_set(planted, 10 * MINUTE, 33 * MINUTE).marked) == ["ssd", "broadcast"]


def test_marks_are_removed_where_there_is_room_and_where_main_broke() -> None:
    broken = SlowCandidate("broken", 8 * MINUTE, 4, is_slow=True)
    quiet = SlowCandidate("quiet", 8 * MINUTE, 0)
    chosen = choose_slow_set([broken, quiet], 20 * MINUTE, 30 * MINUTE)
    assert (names(chosen.marked), names(chosen.unmarked)) == (["quiet"], ["broken"])
    slow = SlowCandidate("slow", 8 * MINUTE, 0, is_slow=True)
    assert choose_slow_set([slow], 20 * MINUTE, 30 * MINUTE).unmarked == (), "it would fit, but only just"
    assert names(choose_slow_set([slow], 18 * MINUTE, 30 * MINUTE).unmarked) == ["slow"]
    fixed = SlowCandidate("fixed", 2.0, 0, is_slow=True)
    assert names(choose_slow_set([fixed], 60 * MINUTE, 30 * MINUTE).unmarked) == ["fixed"]


def test_a_small_test_needs_no_mark_after_a_large_one() -> None:
    candidates = [SlowCandidate("small", 20.0, 0, is_slow=True), SlowCandidate("large", 30 * MINUTE, 1)]
    chosen = choose_slow_set(candidates, 0.0, 10 * MINUTE)
    assert (names(chosen.marked), names(chosen.unmarked)) == (["large"], ["small"])


def test_the_budget_is_met_with_few_misses_and_the_next_week_changes_nothing() -> None:
    generator = random.Random(36)
    for _ in range(60):
        planted = [
            SlowCandidate(
                f"test_{number}",
                float(generator.randint(10, 600)),
                generator.choice([0, 0, 0, 1, 2, 5]),
                is_slow=generator.random() < 0.3,
            )
            for number in range(9)
        ]
        budget = float(generator.randint(100, 2500))
        chosen = choose_slow_set(planted, 50.0, budget)
        slow = {test.test for test in planted if test.is_slow} - {*names(chosen.unmarked)} | {*names(chosen.marked)}
        total = 50.0 + sum(test.seconds for test in planted if test.test not in slow)
        assert total == chosen.seconds_after <= budget
        # No smaller set that keeps the budget has much fewer misses: the last mark may have been one too many.
        misses = sum(test.misses for test in planted if test.test in slow)
        fewest = min(
            sum(test.misses for test in planted if test not in kept)
            for size in range(len(planted) + 1)
            for kept in combinations(planted, size)
            if 50.0 + sum(test.seconds for test in kept) <= HEADROOM * budget
        )
        assert misses <= fewest + max(test.misses for test in planted)
        merged = [SlowCandidate(test.test, test.seconds, test.misses, test.test in slow) for test in planted]
        next_week = choose_slow_set(merged, 50.0, budget)
        assert (next_week.marked, next_week.unmarked) == ((), ()), "what was merged stays"
