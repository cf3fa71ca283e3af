"""The description of a pull request that reverts another one."""

from __future__ import annotations

from bot.github.commits.required import Signal, State
from handlers.slow_tests.revert import texts

SHA = "a" * 40
COMMENT = "https://github.com/octocat/compiler/pull/7#issuecomment-1"
PAGE = "https://ci.example.org/octocat/compiler/pulls/7"


def body(*failures: Signal, page: str = PAGE) -> str:
    """Return the description after these failures."""
    return texts.revert_body(
        "<!-- marker -->", "octocat/compiler#7", SHA, failures, number=7, comment=COMMENT, page=page
    )


def test_the_description_says_what_is_reverted_why_and_what_failed() -> None:
    assert body(
        Signal("test [cpu]", State.RED, says="3 *tests* failed", url="https://example.org/?a=1&b=2"),
        Signal("lint", State.RED, url="javascript:alert(1)"),
    ) == (
        "<!-- marker -->\nReverts octocat/compiler#7\n\n"
        f"[A comment]({COMMENT}) asked for this, with slow tests.\n\n"
        f"These checks failed on its merge commit {SHA}:\n\n"
        "- `test [cpu]`: 3 \\*tests\\* failed ([details](<https://example.org/?a=1&amp;b=2>))\n"
        "- `lint`\n\n"
        f"[What the bot knows about #7]({PAGE})"
    )


def test_without_failures_and_a_page_the_description_is_short() -> None:
    assert body(page="") == (
        "<!-- marker -->\nReverts octocat/compiler#7\n\n"
        f"[A comment]({COMMENT}) asked for this, with slow tests.\n\n"
        f"No check failed on its merge commit {SHA}."
    )


def test_long_lists_and_names_are_cut() -> None:
    failures = [Signal(f"check {number}", State.RED) for number in range(1, texts.MOST_FAILURES + 3)]
    assert body(*failures[:20], page="").endswith("- `check 20`")
    assert body(*failures, page="").endswith("- `check 20`\n- and 2 more")
    long = Signal("n" * 141, State.RED, says="s" * 141)
    assert body(long, page="").endswith(f"- `{'n' * 139}…`: {'s' * 139}…")
    assert body(Signal("n" * 140, State.RED), page="").endswith(f"- `{'n' * 140}`")
