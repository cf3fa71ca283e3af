"""What a comment's author reads once its commands have ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.commands.conclusion import Item, answer_lines, answer_text
from bot.commands.texts import CUT
from bot.effects.comments import REPLY_LIMIT
from bot.effects.remember import StoreRecord
from bot.engine.processor import EffectState
from bot.plan.outcome import EffectOutcome, EffectOutcomes
from tests.gfm import rendered

SLOW = Item("`@ci run slow tests`", "", done=True, targets=("record:status", "record:slow"))
RERUN = Item("`@ci rerun`", "Running `build` again.", done=True, targets=("record:1", "record:2"))
TYPO = Item("`@ci rerunn`", "Unknown command.", done=False)


def ended(name: str, failed: bool = False, text: str = "") -> EffectOutcome:
    return EffectOutcome(StoreRecord(name, None), EffectState.STOPPED if failed else EffectState.APPLIED, text)


@pytest.mark.parametrize(
    ("items", "outcomes", "lines", "done"),
    [
        ([SLOW], [ended("status")], [], True),
        ([RERUN], [ended("1")], ["- `@ci rerun`: Running `build` again."], True),
        (
            [SLOW],
            [ended("slow", True, "GitHub refused.")],
            ["- 😕 `@ci run slow tests`: GitHub refused."],
            False,
        ),
        (
            [RERUN],
            [ended("1", True, "`build` is removed."), ended("2", True, "`docs` is removed.")],
            ["- 😕 `@ci rerun`: Running `build` again. `build` is removed. `docs` is removed."],
            False,
        ),
        ([TYPO], [], ["- 😕 `@ci rerunn`: Unknown command."], False),
        (
            [SLOW, TYPO],
            [ended("status")],
            ["- `@ci run slow tests`: done.", "- 😕 `@ci rerunn`: Unknown command."],
            False,
        ),
    ],
)
def test_the_verdict_follows_from_the_outcomes(
    items: list[Item], outcomes: list[EffectOutcome], lines: list[str], done: bool
) -> None:
    assert answer_lines(items, EffectOutcomes(tuple(outcomes))) == (lines, done)


def test_a_failure_after_a_list_has_its_own_lines() -> None:
    """Otherwise it would seem to belong to the last item."""
    listed = replace(RERUN, say="Running again:\n- `build`\n- `docs`")
    failed = [ended("1", True, "`build` is removed."), ended("2", True, "`docs` is removed.")]
    lines, _ = answer_lines([listed], EffectOutcomes(tuple(failed)))
    assert lines[0].splitlines()[-3:] == ["  ", "  `build` is removed.", "  `docs` is removed."]
    page = rendered(answer_text("https://github.example/7", lines))
    assert "<li><code>docs</code></li>" in page.replace("<p>", "").replace("</p>", "").replace("\n", "")


def test_an_effect_of_another_command_does_not_count() -> None:
    assert answer_lines([SLOW], EffectOutcomes((ended("1", True, "dead"),))) == ([], True)


def test_an_answer_of_several_lines_stays_in_its_bullet() -> None:
    item = Item("`@ci help`", "These:\n\n| a | b |\n|---|---|", done=True)
    lines, _ = answer_lines([item], EffectOutcomes())
    assert lines == ["- `@ci help`: These:\n  \n  | a | b |\n  |---|---|"]


def test_the_answer_links_the_comment_and_mentions_nobody() -> None:
    text = answer_text("https://github.example/octocat/compiler/pull/1#issuecomment-7", ["- `@ci rerun`: done."])
    assert text.startswith("About [your comment](https://github.example/octocat/compiler/pull/1#issuecomment-7):\n\n- ")


def test_a_long_answer_still_links_the_page_with_the_rest() -> None:
    text = answer_text("https://github.example/7", ["- x"] * 40_000, page="https://ci.example.org/pulls/7")
    assert len(text) <= REPLY_LIMIT
    assert text.endswith("[Everything I did on this pull request, and why](https://ci.example.org/pulls/7)")


def test_the_answer_names_what_it_answers() -> None:
    assert answer_text("https://github.example/7", [], "your review").startswith("About [your review](")


def test_a_truncated_answer_ends_with_a_whole_line() -> None:
    lines = [f"- `@octocat {number} {'x' * 200}`: done." for number in range(1000)]
    text = answer_text("https://github.example/7", lines)
    assert len(text) <= REPLY_LIMIT
    assert text.endswith(CUT)
    assert text.removesuffix(CUT).endswith("xxx`: done.")
