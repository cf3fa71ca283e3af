"""The people that a text names after `cc`, and those that GitHub notifies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.text.markdown import TEXT_LIMIT
from bot.github.text.mentions import Ccs, login_or_team, mentioned, parse_ccs


@pytest.mark.parametrize(
    ("body", "users"),
    [
        ("cc @octocat", ("octocat",)),
        ("cc @octocat, @hubot and @monalisa", ("octocat", "hubot", "monalisa")),
        ("cc @octocat, and @hubot & @monalisa", ("octocat", "hubot", "monalisa")),
        ("cc @octocat,@hubot;@monalisa", ("octocat", "hubot", "monalisa")),
        ("CC: @octocat @hubot", ("octocat", "hubot")),
        ("Fixes a crash, cc @octocat.", ("octocat",)),
        ("(cc @octocat)", ("octocat",)),
        ("- cc @octocat\n- cc @hubot", ("octocat", "hubot")),
        ("**cc** @octocat", ("octocat",)),
        ("/cc @octocat", ("octocat",)),
        ("text\r\ncc @octocat\r\n", ("octocat",)),
        ("cc\N{NO-BREAK SPACE}@octocat", ("octocat",)),
        ("cc @octo-cat", ("octo-cat",)),
        ("cc @octocat- and @hubot", ("octocat-", "hubot")),
        ("<details>\n\ncc @octocat\n\n</details>\n\ncc @hubot", ("octocat", "hubot")),
        ("<details>\ncc @octocat\n</details>", ("octocat",)),
        ("<details><summary>Who</summary>\ncc @octocat\n</details>", ("octocat",)),
        ("cc @mona_octo", ("mona_octo",)),
        ("cc @" + "a" * 39, ("a" * 39,)),
        ("cc @octocat (for the docs) and @hubot", ("octocat",)),
        ("cc @octocat\n@hubot", ("octocat",)),
        ("cc @octocat., @hubot", ("octocat",)),
        ("cc @octocat: fixed, @hubot", ("octocat",)),
        ("cc @octocat and thanks, @hubot", ("octocat",)),
        ("cc @octocat AND @hubot + @monalisa", ("octocat", "hubot", "monalisa")),
        (None, ()),
        ("", ()),
    ],
)
def test_names_after_a_cc_are_copied_in(body: str | None, users: tuple[str, ...]) -> None:
    assert parse_ccs(body) == Ccs(users=users, teams=())


# fmt: off
NOBODY = [
    "-octocat", "octo_cat-", "_octocat", "octocat_", "octo@cat", "T.prim", "a/b/c", "a" * 40, "octocat/",
    "@octocat", "octo_cats_cats", "octo_catcatcats", "öcto", "dependabot[bot]",
]
# fmt: on


@pytest.mark.parametrize("name", NOBODY)
def test_a_name_that_cannot_be_a_login_is_skipped_completely(name: str) -> None:
    assert parse_ccs(f"cc @hubot @{name} @monalisa").users == ("hubot", "monalisa")


def test_teams_are_distinguished_from_people() -> None:
    assert parse_ccs("cc @example-lab/reviewers, @octocat and @Example-Lab/Reviewers @example-lab/c_api") == Ccs(
        users=("octocat",), teams=("example-lab/reviewers", "example-lab/c_api")
    )


@pytest.mark.parametrize(
    "body",
    [
        "`cc @octocat`",
        "```\ncc @octocat\n```",
        "    cc @octocat",
        "> cc @octocat",
        "> words\ncc @octocat",
        "<!-- cc @octocat -->",
        "<!--\ncc @octocat\n-->",
        "~~cc @octocat~~",
        "[cc @octocat](https://example.org)",
        "cc `@octocat`",
        "cc \\@octocat",
        "acc @octocat",
        "gcc @octocat",
        "cc_lib @octocat",
        "cc'd @octocat",
        "@octocat",
        "cc octocat@example.org",
        "mail cc@octocat",
        "usr/bin/cc @octocat",
        "cc the author of this, @octocat",
    ],
)
def test_code_quotes_comments_and_parts_of_words_copy_in_nobody(body: str) -> None:
    assert parse_ccs(body) == Ccs(users=(), teams=())


@pytest.mark.parametrize(
    ("body", "users", "teams"),
    [
        # TVM's script found nobody: no colon, no capital, no second space.
        ("cc: @a", ("a",), ()),
        ("CC @a", ("a",), ()),
        ("Cc @a", ("a",), ()),
        ("cc  @a", ("a",), ()),
        # Nobody in both: names belong to the line of their cc, and `cc@a` looks like an address.
        ("cc\n@a", (), ()),
        ("cc@a", (), ()),
        # TVM's script stopped after the first name.
        ("cc @a, @b", ("a", "b"), ()),
        ("cc @a  @b", ("a", "b"), ()),
        ("cc @a and @b", ("a", "b"), ()),
        # TVM's script requested a user named like the organization.
        ("cc @apache/tvm-committers", (), ("apache/tvm-committers",)),
        # TVM's script requested another person, whose login is the beginning of the written one.
        ("cc @a_b", (), ()),
        # TVM's script matched the end of another word, code, and comments that nobody sees.
        ("acc @x", (), ()),
        ("`cc @a`", (), ()),
        ("<!-- cc @a -->", (), ()),
        # TVM's script requested a name that no account can have.
        ("cc @-a", (), ()),
        # TVM's script requested one person twice.
        ("cc @A @a", ("A",), ()),
        ("cc @a cc @b", ("a", "b"), ()),
        # TVM's script requested a user whose name is the beginning of the bot's.
        ("cc @a @b[bot]", ("a",), ()),
    ],
)
def test_differences_from_tvms_script(body: str, users: tuple[str, ...], teams: tuple[str, ...]) -> None:
    assert parse_ccs(body) == Ccs(users=users, teams=teams)


@pytest.mark.no_cover
@pytest.mark.parametrize("unit", [" ", "cc ", "cc @a ", "@a", "@a, ", " and", "cc @a and ", "@a-", "cc @a_", ",", "@"])
def test_the_longest_text_is_read(unit: str) -> None:
    text = "cc @octocat" + unit * ((TEXT_LIMIT - 20) // len(unit)) + "!"
    assert len(parse_ccs(text).users) <= 2


LOGINS = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,37}[A-Za-z0-9])?", fullmatch=True)


@pytest.mark.no_cover
@given(st.lists(LOGINS, min_size=1, max_size=5), st.sampled_from([", ", " ", " and ", ", and ", ","]))
def test_every_login_is_read_once_as_it_was_first_written(logins: list[str], separator: str) -> None:
    first = {login.lower(): login for login in reversed(logins)}
    users = parse_ccs("cc " + separator.join(f"@{login}" for login in logins)).users
    assert users == tuple(sorted(first.values(), key=logins.index))


@pytest.mark.no_cover
@given(
    st.lists(st.sampled_from(["cc ", "@a", "/t", ",", " and ", "`", ">", "\n", "<!--", "[bot]"]) | st.text(max_size=3))
)
def test_any_text_is_read_without_an_error(pieces: list[str]) -> None:
    ccs = parse_ccs("".join(pieces))
    assert all("/" not in user for user in ccs.users)
    assert all("/" in team for team in ccs.teams)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@octocat, look", ("octocat",)),
        ("(@octocat) **@hubot**", ("octocat", "hubot")),
        ("@Octocat and @octocat", ("Octocat",)),
        ("> @octocat wrote", ("octocat",)),
        ("| who |\n|---|\n| @octocat |", ("octocat",)),
        ("~~@octocat~~", ("octocat",)),
        ("# @octocat\n\n- @hubot", ("octocat", "hubot")),
        (r"\@octocat", ("octocat",)),
        ("&commat;octocat", ("octocat",)),
        ("<details>\n@octocat\n</details>", ("octocat",)),
        ("<b>@octocat</b> <br>@hubot", ("octocat", "hubot")),
        ("@octo-org/gpu @elsewhere/gpu and npm i @scope/package", ("octo-org/gpu",)),
        ("a\r\n@octocat\r\n", ("octocat",)),
    ],
)
def test_github_notifies_the_people_that_the_page_mentions(text: str, expected: tuple[str, ...]) -> None:
    assert mentioned(text, "Octo-Org") == expected


@pytest.mark.parametrize(
    "text",
    [
        "`@octocat`",
        "```python\n@octocat\n```",
        "    @octocat",
        "<pre>\n@octocat\n</pre>",
        "<code>@octocat</code>",
        "<div>\n<code>\n@octocat\n</div>",
        "<div>\n<code>@hubot\n<b>@octocat",
        "a <!-- @octocat --> b",
        "<!-- @octocat",
        "[@octocat](https://example.org)",
        '<a href="https://example.org">@octocat</a>',
        "![@octocat](a.png)",
        "octocat@example.org",
        "https://example.org/@octocat",
        "@T.prim_func and @tvm.testing.slow",
        "@octocat[bot]",
        "@-octocat",
        "@" + "a" * 40,
        "@octocat " * 10_000,
        "",
    ],
)
def test_code_comments_links_and_addresses_mention_nobody(text: str) -> None:
    """TVM #12840, #12848: decorators in code, and e-mail addresses, counted as mentions."""
    assert mentioned(text, "octo-org") == ()


@pytest.mark.parametrize(
    ("written", "expected"),
    [("@octocat", "octocat"), ("@octo-org/gpu", "octo-org/gpu"), ("octocat", None), ("@a.b", None), ("@a[bot]", None)],
)
def test_a_name_is_a_login_or_a_team(written: str, expected: str | None) -> None:
    assert login_or_team(written) == expected


@given(st.text())
def test_mentions_in_any_text_can_be_found(text: str) -> None:
    for name in mentioned(text, "octo-org"):
        assert login_or_team(f"@{name}") == name


@pytest.mark.parametrize("preceding", ["a", "Z", "9", "@", "/", ".", "+", "-", "_"])
def test_a_name_inside_of_a_word_an_address_or_a_path_notifies_nobody(preceding: str) -> None:
    assert mentioned(f"{preceding}@octocat", "octo-org") == ()
    assert mentioned(f"({preceding}@octocat)", "octo-org") == ()


@pytest.mark.parametrize("preceding", ["", "(", "é", ",", '"', "\n"])
def test_a_name_after_another_character_notifies_its_person(preceding: str) -> None:
    assert mentioned(f"{preceding}@octocat", "octo-org") == ("octocat",)
