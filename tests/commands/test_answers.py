"""The answers to commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands import answers
from bot.commands.grammar import BadCommand, Command, CommandSpec, parse
from bot.config.types import Role
from handlers.rerun.config import Rerun
from tests.commands.test_grammar import MENTIONS, REGISTRY, RERUN, RUN_SLOW, read
from tests.gfm import rendered
from tests.settings import MODEL, repository_config


def typo(text: str) -> BadCommand:
    [command] = read(text)
    assert isinstance(command, BadCommand)
    return command


def test_a_typo_is_answered_with_the_nearest_command() -> None:
    bad = typo("@ci rerunn")
    assert answers.command_as_code(bad) == "`@ci rerunn`"
    assert answers.bad_command(bad) == (
        "I don't know this command. Did you mean `@ci rerun`? `@ci help` lists all commands."
    )


def test_answers_use_the_mention_that_the_person_used() -> None:
    bad = typo("@tvm-bot nonsense")
    assert answers.bad_command(bad).endswith("`@tvm-bot help` lists all commands.")
    assert answers.command_as_code(Command(RERUN, names=("a b",), mention="@tvm-bot")) == '`@tvm-bot rerun "a b"`'


def test_the_list_of_commands_is_a_link_if_the_bot_has_an_address() -> None:
    bad = BadCommand("rerunn", "I don't know this command.", "rerun", mention="@ci")
    answer = answers.bad_command(bad, "https://ci.example.org/help")
    assert answer.endswith("[`@ci help`](https://ci.example.org/help) lists all commands.")


@pytest.mark.parametrize(
    ("allowed", "words"),
    [
        (("author", "triage"), "the pull request's author and people with triage access"),
        (("maintain", "write"), "people with write access"),
        (("admin",), "people with admin access"),
        (("author",), "the pull request's author"),
    ],
)
def test_roles_are_written_in_words(allowed: tuple[Role, ...], words: str) -> None:
    assert answers.who_may(allowed) == words


@pytest.mark.parametrize(
    ("allowed", "answer"),
    [
        (("write", "admin"), "You need write access for this. Ask a maintainer to comment `@ci rerun`."),
        (("author",), "Only the pull request's author can do this. Ask one of them to comment `@ci rerun`."),
        ((), "Nobody may use this command here: `app.yaml` allows no role."),
    ],
)
def test_a_refusal_says_who_can_run_the_command(allowed: tuple[Role, ...], answer: str) -> None:
    assert answer == answers.not_allowed(Command(RERUN, mention="@ci"), allowed)


def test_a_disabled_command_is_answered_with_where_to_switch_it_on() -> None:
    answer = answers.switched_off(RUN_SLOW, "octocat/compiler", repository_config())
    assert "`octocat/compiler`" in answer
    assert "add `slow_tests` to `.github/nightjar.yaml` or `app.yaml`" in answer


def test_the_answer_to_a_disabled_command_names_only_files_that_can_switch_it_on() -> None:
    merge = CommandSpec(name="merge", summary="Merge.", example="merge", feature="merge")
    for spec, reads_own in ((merge, True), (merge, False), (RUN_SLOW, False)):
        answer = answers.switched_off(spec, "octocat/compiler", repository_config(repository_file=reads_own))
        assert answer.endswith(f"add `{spec.feature}` to `app.yaml`.")


def test_help_lists_what_is_enabled_here_and_who_may_use_it_here() -> None:
    config = MODEL.model_validate({"rerun": Rerun(allow=("write",)), "slow_tests": False})
    answer = answers.help_text(REGISTRY, MENTIONS, config, {})
    assert "`@ci`, `@tvm-bot`" in answer
    page = rendered(answer)
    assert page.count("<tr>") == 3
    assert "<code>@ci rerun [failed | all | NAME…]</code>" in rendered(answer, raw_html=True)
    assert "people with write access" in page
    assert "slow" not in page


def test_the_table_of_all_commands_has_a_row_for_each() -> None:
    rows = answers.commands_table(REGISTRY).splitlines()
    assert len(rows) == 2 + 5
    assert all(row.startswith("| ") and row.count(" | ") == 3 for row in rows[2:])


def test_the_help_mentions_nobody() -> None:
    helped = answers.help_text(REGISTRY, MENTIONS, repository_config(), {})
    assert parse(helped, registry=REGISTRY, mentions=MENTIONS) == []


@given(st.text(max_size=40))
def test_no_answer_mentions_the_bot_or_anybody_else(text: str) -> None:
    bad = BadCommand(f"@octocat {text} @ci rerun", "Reason.", "rerun", "@ci", 1)
    texts_of_answers = f"{answers.command_as_code(bad)}\n{answers.bad_command(bad)}\n"
    assert parse(texts_of_answers, registry=REGISTRY, mentions=MENTIONS) == []
    answer = rendered(f"{answers.command_as_code(bad)}: {answers.bad_command(bad)}")
    outside_code = "".join(part.split("</code>")[-1] for part in answer.split("<code>"))
    assert "@" not in outside_code.replace("@\u200b", "")
