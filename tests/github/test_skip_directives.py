"""Text that makes a CI skip a commit is removed; other text stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.events import Person
from bot.github.text.commit_message import AuthoredCommit, message, title
from bot.github.text.skip_directives import skips_ci, without_directives

AUTHOR = Person(7, "octocat", is_bot=False)
BRACKETED = (
    *["[skip ci]", "[ci skip]", "[no ci]", "[skip actions]", "[actions skip]", "[SKIP CI]", "[Skip-CI]", "[skip_ci]"],
    *["[ skip ci ]", "[skip  ci]", "[skipci]", "[skip travis]", "[travis skip]", "[skip azp]", "[skip azurepipelines]"],
    *["[azurepipelines skip]", "[skip appveyor]", "[skip netlify]", "[skip jenkins]", "[CF-Pages-Skip]", "[ci-skip]"],
)
DIRECTIVES = (*BRACKETED, "***NO_CI***", "***no_ci***")


@pytest.mark.parametrize("directive", DIRECTIVES)
def test_a_directive_is_removed_from_title_text_code_and_names(directive: str) -> None:
    assert title(f"Faster {directive} loops", 12) == "Faster loops (#12)"
    assert title(directive, 12) == "(#12)"
    text = message(f"It is fast.{directive}\n\n```\n{directive} x\n```", (), (), AUTHOR)
    assert text == "It is fast.\n\n```\n x\n```"
    credited = message("", (), [AuthoredCommit(0, f"Mona {directive}", "mona@example.org", "x")], AUTHOR)
    assert without_directives(credited) == credited


@pytest.mark.parametrize(
    "line", ["skip-checks: true", "skip-checks:true", "Skip-Checks: true", "  skip-checks: true", "skip-checks : true"]
)
def test_a_trailer_is_removed(line: str) -> None:
    assert message(f"It is fast.\n\n\n{line}", (), (), AUTHOR) == "It is fast."
    assert message(f"It is fast.\n\n```\n{line}\n```", (), (), AUTHOR) == "It is fast.\n\n```\n\n```"


@pytest.mark.parametrize(
    "text",
    [
        "Skip CI for drafts",
        "[skip tests] of the runtime",
        "[ci] Skip the build",
        "[CI][Docs] Faster",
        "array[skip]",
        "[no circles]",
        "**NO_CI**",
        "It must skip-checks: no",
    ],
)
def test_text_that_no_ci_reads_as_a_directive_stays(text: str) -> None:
    assert without_directives(text) == text


PIECES = st.lists(
    st.sampled_from(["[", "]", "skip", " ", "ci", "no", "***", "NO_CI", "skip-checks:", "\n", *DIRECTIVES])
)


@given(pieces=PIECES)
def test_nothing_that_is_left_is_a_directive(pieces: list[str]) -> None:
    """Even if one was hidden inside another."""
    stripped = without_directives("".join(pieces))
    assert without_directives(stripped) == stripped


@pytest.mark.parametrize("depth", [1, 2, 3, 50])
def test_nested_directives_are_removed_at_any_depth(depth: int) -> None:
    nested = "[skip " * depth + "[skip ci]" + "ci]" * depth
    stripped = without_directives(nested)
    assert without_directives(stripped) == stripped
    assert "[skip ci]" not in stripped


def test_a_message_with_a_directive_makes_a_ci_skip_its_commit() -> None:
    assert [skips_ci(text) for text in ("Faster loops", "Faster [skip ci] loops", "[skip]")] == [False, True, False]
