"""The rate limit of log lines."""

from __future__ import annotations

from bot.core.rarely import SECONDS, Rarely


def test_the_first_line_is_written_and_after_a_second_the_next_one_with_the_number_suppressed() -> None:
    clock = [5.0]
    rarely = Rarely(lambda: clock[0])
    assert rarely.ready() == 0
    clock[0] += SECONDS - 0.25
    assert [rarely.ready(), rarely.ready()] == [None, None]
    clock[0] += 0.25
    assert rarely.ready() == 2
    clock[0] += SECONDS
    assert rarely.ready() == 0


def test_one_kind_does_not_suppress_another() -> None:
    rarely = Rarely(lambda: 5.0)
    assert [rarely.ready(401), rarely.ready(400), rarely.ready(401)] == [0, 0, None]
