"""The commit message of a merge, as tables of descriptions and messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.events import Person
from bot.github.text.commit_message import AuthoredCommit, co_authors, message, rejoined, title, without_template

AUTHOR = Person(1, "octocat", False)
TEMPLATE = """\
<!-- Thanks! Please fill this in, and ask somebody for a review: @octocat/reviewers. -->
## What does this change?

Please refer to the [guide](https://docs.example.org/contribute) for   useful information and tips. After that,
please request reviews from [reviewers](https://docs.example.org/reviewers) by @ them in the thread.

- [ ] I have read the guide
- [ ] There are tests

```
Paste the output here
```
"""


def commit(name: str, email: str = "", *, number: int = 0, says: str = "Improve it") -> AuthoredCommit:
    return AuthoredCommit(number, name, email or f"{name.lower()}@example.org", says)


# Titles


@pytest.mark.parametrize(
    ("cut_title", "body", "expected_title", "expected_rest"),
    [
        (
            "Update it to the v…",
            "…ectorized schedule\r\n\r\nIt is faster.",
            "Update it to the vectorized schedule",
            None,
        ),
        ("Update it to …", "…the schedule", "Update it to the schedule", ""),
        ("Update it to… ", "\n… the schedule\n", "Update it to the schedule", ""),
        ("Update it to the v...", "...ectorized schedule", "Update it to the vectorized schedule", ""),
        ("Wait for it…", "It takes long.", "Wait for it…", "It takes long."),
        ("Wait for it", "…and more", "Wait for it", "…and more"),
        ("Wait for it…", "…", "Wait for it…", "…"),
        ("Wait for it…", "", "Wait for it…", ""),
    ],
)
def test_a_title_that_github_cut_is_joined_with_its_end(
    cut_title: str, body: str, expected_title: str, expected_rest: str | None
) -> None:
    assert rejoined(cut_title, body) == (expected_title, "\nIt is faster." if expected_rest is None else expected_rest)


@given(
    st.text(st.sampled_from("ab \N{LATIN SMALL LETTER U WITH DIAERESIS}[](#1).…"), min_size=73, max_size=200),
    st.text(st.sampled_from("ab \r\n…"), max_size=20),
)
def test_a_first_line_is_the_same_whether_github_cut_it_or_not(line: str, text: str) -> None:
    line = " ".join(f"Update {line} it".split())
    cut = line[:69]
    joined, rest = rejoined(f"{cut}…", f"…{line[69:]}\n\n{text}")
    assert (joined, rest.replace("\n", "")) == (line, text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", ""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Faster", "Faster (#12)"),
        ("Faster (#12)", "Faster (#12)"),
        ("Reverts #11 (#11)", "Reverts #11 (#11) (#12)"),
        ("  Two\nlines ", "Two lines (#12)"),
        ("Thanks @hubot: keep `@hubot`", "Thanks hubot: keep `@hubot` (#12)"),
        ("", "(#12)"),
    ],
)
def test_the_first_line_is_the_title_with_the_number(text: str, expected: str) -> None:
    assert title(text, 12) == expected


# Descriptions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("\r\n\r\n  \nText\r\n", "Text"),
        ("One\r\n\r\n\r\n\r\nTwo\rThree", "One\n\nTwo\nThree"),
        # TVM's bot missed (@paren), and changed decorators and e-mail addresses.
        (
            "@start hi @mid (@paren) `@code`\n@T.prim_func\na@b.com\tcc @x\r\nline",
            "start hi mid (paren) `@code`\n@T.prim_func\na@b.com\tcc x\nline",
        ),
    ],
)
def test_line_endings_are_plain_and_blank_lines_neither_start_the_text_nor_pile_up(text: str, expected: str) -> None:
    assert without_template(text, ()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cc @hubot, @octo-org/compilers and @mona_acme.", "cc hubot, octo-org/compilers and mona_acme."),
        ('(@hubot) [@hubot] "@hubot" *@hubot* @hubot\'s', '(hubot) [hubot] "hubot" *hubot* hubot\'s'),
        ("@hubot", "hubot"),
        ("- @hubot\n> @hubot\n# @hubot", "- hubot\n> hubot\n# hubot"),
        ("| a | b |\n|---|---|\n| @hubot | `@hubot` |", "| a | b |\n|---|---|\n| hubot | `@hubot` |"),
        (r"\@hubot", "hubot"),
        ("<b>@hubot</b>\n\n<div>\n@hubot\n</div>", "<b>hubot</b>\n\n<div>\nhubot\n</div>"),
        ("hubot@example.org, 5 @ 3, @, @-x, @a_b", "hubot@example.org, 5 @ 3, @, @-x, @a_b"),
        ("https://social.example/@hubot @hubot", "https://social.example/@hubot hubot"),
        ("@tvm.testing.slow and @T.prim_func", "@tvm.testing.slow and @T.prim_func"),
    ],
)
def test_mentions_lose_their_at_and_nothing_else_does(text: str, expected: str) -> None:
    assert without_template(text, ()) == expected


@pytest.mark.parametrize(
    "code",
    [
        "`@hubot`",
        "``@hubot ` @hubot``",
        "`two\n@lines`",
        "```python\n@pytest\ndef test(): ...\n```",
        "~~~\n<!-- @hubot -->\n\n\n\n@hubot\n~~~",
        "    @hubot\n\n\n    @hubot",
        "- item\n\n  ```\n  @hubot\n  ```",
        "> ```\n> @hubot\n> ```",
        "1. item\n\n       @hubot",
        "```\n@hubot, never closed",
    ],
)
def test_code_stays_as_it_is(code: str) -> None:
    """TVM's bot removed the `@` of decorators in code."""
    assert without_template(f"Before\n\n{code}\n\nafter `x`", ()).startswith(f"Before\n\n{code}")
    assert without_template(code, ()) == code


def test_an_unmatched_back_tick_makes_no_code() -> None:
    assert without_template("a ` b @hubot\n\nc ` @hubot", ()) == "a ` b hubot\n\nc ` hubot"
    assert without_template(r"\`@hubot`", ()) == r"\`hubot`"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <!-- b --> c", "a  c"),
        ("a <!-- b --> c <!-- d --> e", "a  c  e"),
        ("<!-- a\n\nb `c\n-->\nText", "Text"),
        ("<!--\n```\nno code\n```\n-->\nText", "Text"),
        ("Text\n\n<!-- never closed\n\nhidden", "Text"),
        ("Text <!-- never closed", "Text <!-- never closed"),
        ("`<!-- code -->`", "`<!-- code -->`"),
        ("<!-- `a --> b` @hubot", "b` hubot"),
        ("`a <!-- b` --> @hubot", "`a <!-- b` --> hubot"),
        ("<!--> <!---> Text", "Text"),
        ("```\n<!-- code -->\n```", "```\n<!-- code -->\n```"),
    ],
)
def test_comments_are_removed_unless_they_are_visible(text: str, expected: str) -> None:
    assert without_template(text, ()).strip() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEMPLATE, ""),
        (TEMPLATE.replace("\n", "\r\n"), ""),
        (TEMPLATE.replace("- [ ]", "- [x]"), ""),
        (f"It is faster.\n\n{TEMPLATE}", "It is faster."),
        (f"It is faster.\n{TEMPLATE}\nMuch.", "It is faster.\n\nMuch."),
        # Wrapped and indented differently, with the author's own text directly above and below.
        (
            "Faster.\n  Please refer to the [guide](https://docs.example.org/contribute)\n for useful information and "
            "tips. After that, please request reviews from [reviewers](https://docs.example.org/reviewers) by @ them\n"
            "in the thread.\nMuch.",
            "Faster.\nMuch.",
        ),
        (
            "## What does this change?\nThe cache.\n\n- [x] There are tests\n- [x] Measured",
            "The cache.\n\n- [x] Measured",
        ),
        ("Please refer to the old guide.", "Please refer to the old guide."),
        ("- [ ] There are tests, @hubot", "- [ ] There are tests, hubot"),
        ("```\nI have read the guide\n```", "```\nI have read the guide\n```"),
        ("    - [ ] There are tests", "    - [ ] There are tests"),
        ("```\nPaste the output here\n```\n\nText", "Text"),
        ("```\nPaste the output here\nok\n```", "```\nPaste the output here\nok\n```"),
    ],
)
def test_template_text_is_removed(text: str, expected: str) -> None:
    assert without_template(text, [TEMPLATE]) == expected


def test_all_of_several_templates_are_recognized() -> None:
    assert without_template("## A\nfirst\n## B\nsecond", ["## A", "## B"]) == "first\nsecond"


# Authors


def test_whoever_updates_the_branch_with_its_base_is_not_credited() -> None:
    update = AuthoredCommit(5, "hubot", "hubot@example.org", "Merge main\n\nCo-authored-by: M <m@example.org>", True)
    assert co_authors([commit("octocat", number=1), update], [], AUTHOR) == []
    assert co_authors([update, commit("Hubot", number=5)], [], AUTHOR) == ["Co-authored-by: Hubot <hubot@example.org>"]


def test_everybody_but_the_author_is_credited_once_in_the_order_of_first_appearance() -> None:
    """TVM's bot wrote its lines in the order of a set, and never credited the sole author of a later commit."""
    commits = [
        commit("Octo Cat", number=1),
        commit("Mona", says="Fix\n\nCo-Authored-By:  Zed  <zed@example.org>\r\nco-authored-by: Octo <octo cat@x>"),
        commit("Hubot", number=2),
        commit("MONA", "Mona@Example.org"),
        commit("Octo Cat", "octo cat@example.org", number=1),
    ]
    assert co_authors(commits, [("Zed", "ZED@example.org"), ("Ann", "ann@example.org")], AUTHOR) == [
        "Co-authored-by: Mona <mona@example.org>",
        "Co-authored-by: Zed <zed@example.org>",
        "Co-authored-by: Hubot <hubot@example.org>",
        "Co-authored-by: Ann <ann@example.org>",
    ]


@pytest.mark.parametrize(
    "email",
    [
        "1+octocat@users.noreply.github.com",
        "1+formerly-octocat@users.noreply.github.com",
        "Octocat@users.noreply.github.com",
        "CAT@example.org",
    ],
)
def test_the_author_is_recognized_by_their_commits_and_by_github_s_addresses(email: str) -> None:
    commits = [commit("Octo", "cat@example.org", number=1), commit("Octo", email)]
    assert co_authors(commits, (), AUTHOR) == []


def test_another_persons_github_address_is_theirs() -> None:
    commits = [commit("Two", "2+octocat@users.noreply.github.com")]
    assert co_authors(commits, (), AUTHOR) == ["Co-authored-by: Two <2+octocat@users.noreply.github.com>"]


def test_a_name_cannot_end_its_line_or_its_address() -> None:
    crooked = commit("A\nSigned-off-by: B <b@example.org>", "a@example.org>\nx")
    assert co_authors([crooked], (), AUTHOR) == ["Co-authored-by: A Signed-off-by: B b@example.org <a@example.org x>"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Text", "Text\n\nCo-authored-by: Hubot <hubot@example.org>"),
        # TVM's bot began such a message with two blank lines.
        ("", "Co-authored-by: Hubot <hubot@example.org>"),
        ("<!-- nothing -->", "Co-authored-by: Hubot <hubot@example.org>"),
        (
            "Text\n\nSigned-off-by: Octo <cat@example.org>",
            "Text\n\nSigned-off-by: Octo <cat@example.org>\nCo-authored-by: Hubot <hubot@example.org>",
        ),
        (
            "co-authored-by: Ann <ann@example.org>\n\nText",
            "Text\n\nCo-authored-by: Hubot <hubot@example.org>\nCo-authored-by: Ann <ann@example.org>",
        ),
        (
            "```\nCo-authored-by: Ann <ann@example.org>\n```",
            "```\nCo-authored-by: Ann <ann@example.org>\n```\n\nCo-authored-by: Hubot <hubot@example.org>",
        ),
    ],
)
def test_the_message_is_the_description_followed_by_one_block_of_trailers(body: str, expected: str) -> None:
    commits = [commit("Octo", "cat@example.org", number=1), commit("Hubot")]
    assert message(body, (), commits, AUTHOR) == expected


def test_a_sole_author_needs_no_trailer() -> None:
    assert message("Text", (), [commit("Octo", "cat@example.org", number=1)], AUTHOR) == "Text"
    assert message("", (), [], AUTHOR) == ""
