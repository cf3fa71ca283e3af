"""When a pause applies, and what the words of the command mean."""

from __future__ import annotations

from dataclasses import replace

from handlers.device_tests.paused import texts
from handlers.device_tests.paused.rule import (
    DAY,
    MOST_PAUSES,
    PauseWords,
    TargetPause,
    TargetPauses,
    end_of_pause,
    read_pause,
)

NEVER = TargetPauses((), "")


def test_a_pause_applies_until_its_end_and_is_continued_or_ended() -> None:
    first = NEVER.paused(TargetPause(10.0, 30.0, "octocat", 1, "it moves"), "1")
    assert [bool(first.at(moment)) for moment in (10.0, 29.9, 30.0)] == [True, True, False]
    longer = first.paused(TargetPause(20.0, 50.0, "hubot", 2), "2")
    assert longer.pauses == (TargetPause(10.0, 50.0, "hubot", 2),)
    ended = longer.resumed(40.0, "3")
    assert ended == TargetPauses((TargetPause(10.0, 40.0, "hubot", 2),), "3")
    assert ended.at(40.0) is None
    assert ended.resumed(60.0, "4").pauses == ended.pauses
    many = NEVER
    for number in range(MOST_PAUSES + 1):
        many = many.paused(TargetPause(10.0 * number, 10.0 * number + 5, "octocat", 1), "")
    assert (len(many.pauses), many.pauses[0].since) == (MOST_PAUSES, 10.0)


def test_the_words_of_the_command_are_targets_a_day_and_a_reason() -> None:
    cases = {
        "a lab/b until 2026-12-01 because the the end": PauseWords(("a", "lab/b"), "2026-12-01", "the the end"),
        "a UNTIL 2026-12-01": PauseWords(("a",), "2026-12-01", ""),
        "a until 2026-12-01 power work": PauseWords(("a",), "2026-12-01", "power work"),
        "a": PauseWords(("a",), "", ""),
        "until 2026-12-01": PauseWords((), "2026-12-01", ""),
    }
    assert {words: read_pause(words.split()) for words in cases} == cases


def test_a_pause_ends_with_the_beginning_of_a_day_within_ninety_days() -> None:
    moment = 1_796_000_000.0  # 2026-11-30T00:53:20Z
    days = ("2026-11-30", "2026-12-01", "2027-02-28", "2027-03-01", "30.11.2026", "")
    midnight = moment + 83_200
    assert [end_of_pause(day, moment) for day in days] == [None, midnight, midnight + 89 * DAY, None, None, None]


def test_texts_about_a_pause_say_until_when_by_whom_and_why() -> None:
    pause = TargetPause(0.0, 1_796_083_200.0, "octocat", 1, "it *moves*")
    silent = TargetPause(0.0, 1_796_083_200.0, "hubot", 2)
    assert texts.paused_refusal("lab/a", pause) == (
        "`lab/a` accepts no requests now: `octocat` paused it until 2026-12-01, because `it *moves*`."
    )
    assert texts.paused_refusal("lab/a", silent) == (
        "`lab/a` accepts no requests now: `hubot` paused it until 2026-12-01."
    )
    assert texts.paused_notice(pause) == ("This target is paused until 2026-12-01, by `octocat`, because `it *moves*`.")
    assert texts.paused_notice(silent) == "This target is paused until 2026-12-01, by `hubot`."
    assert texts.paused_text({"lab/a": pause, "lab/b": silent}) == (
        "Paused: `lab/a` until 2026-12-01, `lab/b` until 2026-12-01."
    )
    assert (texts.paused_notice(None), texts.paused_text({})) == ("", "")
    longest = TargetPause(0.0, 1.0, "octocat", 1, "x" * texts.MOST_REASON)
    assert texts.reason_text(longest) == f", because `{'x' * 200}`"
    assert texts.reason_text(replace(longest, reason=f"{longest.reason}x")) == f", because `{'x' * 199}…`"


def test_a_wrong_day_is_quoted_with_an_example() -> None:
    assert texts.bad_date("tomorrow", "2026-12-01") == (
        "`tomorrow` is not a day in the next 90 days. Write it as in `2026-12-01`."
    )
    assert f"`{'1' * 39}…` is" in texts.bad_date("1" * 41, "2026-12-01")
    assert f"`{'1' * 40}` is" in texts.bad_date("1" * 40, "2026-12-01")
