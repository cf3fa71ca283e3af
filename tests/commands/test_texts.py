"""What people read in answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import texts
from bot.commands.grammar import BadCommand, Command, parse
from bot.config.types import Role
from tests.commands.test_grammar import MENTIONS, REGISTRY, RERUN, RUN_SLOW, SHOW, read
from tests.gfm import rendered


def slip(text: str) -> BadCommand:
    [command] = read(text)
    assert isinstance(command, BadCommand)
    return command


def test_a_slip_is_answered_with_the_command_that_was_perhaps_meant() -> None:
    bad = slip("@ci rerunn")
    assert texts.shown(bad) == "`@ci rerunn`"
    assert texts.bad_command(bad) == (
        "I don't know this command. Did you mean `@ci rerun`? "
        "Nothing was done for this line. `@ci help` lists the commands."
    )


def test_answers_use_the_name_that_the_bot_was_called_by() -> None:
    bad = slip("@tvm-bot nonsense")
    assert texts.bad_command(bad).endswith("Nothing was done for this line. `@tvm-bot help` lists the commands.")
    assert texts.shown(Command(RERUN, names=("a b",), mention="@tvm-bot")) == '`@tvm-bot rerun "a b"`'


def test_the_listing_is_a_link_where_the_bot_has_an_address() -> None:
    bad = BadCommand("rerunn", "I don't know this command.", "rerun", mention="@ci")
    said = texts.bad_command(bad, "https://ci.example.org/help")
    assert said.endswith("[`@ci help`](https://ci.example.org/help) lists the commands.")


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        (("author", "triage"), "the pull request's author and people with the triage role or a higher one"),
        (("maintain", "write"), "people with the write role or a higher one"),
        (("admin",), "people with the admin role"),
        (("author",), "the pull request's author"),
    ],
)
def test_roles_are_said_in_words(allowed: tuple[Role, ...], words: str) -> None:
    assert texts.who_may(allowed) == words
    assert words in texts.not_allowed(RERUN, allowed)


def test_a_refusal_names_who_may() -> None:
    assert "people with the maintain role or a higher one" in texts.not_allowed(SHOW)


def test_a_command_that_is_off_says_where_it_is_switched_on() -> None:
    said = texts.switched_off(RUN_SLOW, "octocat/compiler")
    assert "`octocat/compiler`" in said
    assert "`slow_tests` in `.github/nightjar.yaml` or `app.yaml`" in said


def test_help_lists_what_is_on_here_and_who_may_here() -> None:
    said = texts.help_text(
        REGISTRY, {"rerun", "help"}, MENTIONS, lambda feature: ("write",) if feature == "rerun" else None
    )
    assert "`@ci`, `@tvm-bot`" in said
    page = rendered(said)
    assert page.count("<tr>") == 3
    assert "<code>@ci rerun [failed | all | NAME…]</code>" in rendered(said, raw_html=True)
    assert "people with the write role or a higher one" in page
    assert "slow" not in page


def test_the_table_of_all_commands_has_a_row_for_each() -> None:
    rows = texts.commands_table(REGISTRY).splitlines()
    assert len(rows) == 2 + 5
    assert all(row.startswith("| ") and row.count(" | ") == 3 for row in rows[2:])


@given(st.text(max_size=40))
def test_no_answer_calls_the_bot_or_anybody_else(text: str) -> None:
    bad = BadCommand(f"@octocat {text} @ci rerun", "Reason.", "rerun", "@ci", 1)
    said = f"{texts.shown(bad)}\n{texts.bad_command(bad)}\n{texts.help_text(REGISTRY, {'rerun'}, MENTIONS)}"
    assert parse(said, registry=REGISTRY, mentions=MENTIONS) == []
    answer = rendered(f"{texts.shown(bad)}: {texts.bad_command(bad)}")
    outside_code = "".join(part.split("</code>")[-1] for part in answer.split("<code>"))
    assert "@" not in outside_code.replace("@\u200b", "")
