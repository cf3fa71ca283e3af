"""Times in the words of sections."""

from __future__ import annotations

from bot.effects.section_words import seconds_since_1970


def test_a_text_that_is_no_time_is_the_beginning_of_1970() -> None:
    texts = ("1970-01-01T00:01:00Z", "2026-11-20T05:26:40Z", "", "soon")
    assert [seconds_since_1970(text) for text in texts] == [60.0, 1_795_152_400.0, 0.0, 0.0]
