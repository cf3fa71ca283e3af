"""Only comparisons that take milliseconds run outside the processes with limits."""

from __future__ import annotations

from nightjar_formats.model import SeenTest, Status

from bot.results.compare.diff import MOST_CHEAP_MESSAGES, MOST_CHEAP_TESTS, is_cheap

PASSED = SeenTest(Status.PASSED)


def named(prefix: str, count: int) -> dict[str, SeenTest]:
    return {f"{prefix}{number}": PASSED for number in range(count)}


def test_two_runs_of_the_same_tests_are_cheap_to_compare() -> None:
    baseline = named("test_", 1000)
    assert is_cheap(baseline, baseline)
    assert is_cheap(baseline, None)
    assert is_cheap({**baseline, **named("test_new_", 500)}, baseline)


def test_a_search_for_renamed_tests_is_not_cheap() -> None:
    assert not is_cheap(named("new_", 1000), named("old_", 1000))


def test_many_tests_or_many_messages_are_not_cheap() -> None:
    assert not is_cheap(named("test_", MOST_CHEAP_TESTS + 1), None)
    failed = {f"test_{n}": SeenTest(Status.FAILED, message=f"{n}") for n in range(MOST_CHEAP_MESSAGES + 1)}
    assert not is_cheap(failed, None)
