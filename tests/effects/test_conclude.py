"""What a comment's author is told when its commands have ended."""

from __future__ import annotations

import pytest

from bot.effects.base import Sibling
from bot.effects.conclude import Item, answer_text, verdict

SLOW = Item("`@ci run slow tests`", "", done=True, targets=("status:abc", "record:slow"))
RERUN = Item("`@ci rerun`", "Running `build` again.", done=True, targets=("rerun:1", "rerun:2"))
TYPO = Item("`@ci rerunn`", "I know no such command.", done=False)


def ended(target: str, failed: bool = False, text: str = "") -> Sibling:
    return Sibling(target=target, failed=failed, text=text)


@pytest.mark.parametrize(
    ("items", "siblings", "lines", "done"),
    [
        ([SLOW], [ended("status:abc")], [], True),
        ([RERUN], [ended("rerun:1")], ["- `@ci rerun`: Running `build` again."], True),
        ([SLOW], [ended("record:slow", True, "GitHub refused.")], ["- 😕 `@ci run slow tests`: GitHub refused."], False),
        (
            [RERUN],
            [ended("rerun:1", True, "`build` is gone."), ended("rerun:2", True, "`docs` is gone.")],
            ["- 😕 `@ci rerun`: Running `build` again. `build` is gone. `docs` is gone."],
            False,
        ),
        ([TYPO], [], ["- 😕 `@ci rerunn`: I know no such command."], False),
        (
            [SLOW, TYPO],
            [ended("status:abc")],
            ["- `@ci run slow tests`: done.", "- 😕 `@ci rerunn`: I know no such command."],
            False,
        ),
    ],
)
def test_the_verdict(items: list[Item], siblings: list[Sibling], lines: list[str], done: bool) -> None:
    assert verdict(items, siblings) == (lines, done)


def test_an_effect_of_another_command_does_not_count() -> None:
    assert verdict([SLOW], [ended("rerun:1", True, "dead")]) == ([], True)


def test_an_answer_of_several_lines_stays_in_its_bullet() -> None:
    item = Item("`@ci help`", "These:\n\n| a | b |\n|---|---|", done=True)
    lines, _ = verdict([item], [])
    assert lines == ["- `@ci help`: These:\n  \n  | a | b |\n  |---|---|"]


def test_the_answer_links_what_it_answers_and_mentions_nobody() -> None:
    text = answer_text("https://github.example/octocat/compiler/pull/1#issuecomment-7", ["- `@ci rerun`: done."])
    assert text.startswith("About [your comment](https://github.example/octocat/compiler/pull/1#issuecomment-7):\n\n- ")
