"""Declaring commands, and who may run them."""

import pytest

from bot.commands.spec import Arguments, CommandRegistry, CommandSpec
from bot.config.types import Role


def spec(
    name: str = "rerun",
    *,
    synonyms: tuple[str, ...] = (),
    phrases: tuple[str, ...] = (),
    allowed: tuple[Role, ...] = ("author", "triage"),
    arguments: Arguments | None = None,
) -> CommandSpec:
    return CommandSpec(name, "Does it.", name, "rerun", allowed, synonyms, phrases, arguments)


@pytest.mark.parametrize(
    ("allowed", "role", "is_author", "is_allowed"),
    [
        (("author", "triage"), "none", True, True),
        (("author", "triage"), "read", False, False),
        (("author", "triage"), "triage", False, True),
        (("author", "triage"), "admin", False, True),
        (("author",), "admin", False, False),
        (("author",), "read", True, True),
        (("write",), "triage", True, False),
        (("write",), "maintain", False, True),
        (("admin",), "maintain", False, False),
        (("maintain", "write"), "write", False, True),
        (("triage",), "a role of the organization's own", False, False),
    ],
)
def test_a_role_includes_lower_ones_and_authorship_is_separate(
    allowed: tuple[Role, ...], role: str, is_author: bool, is_allowed: bool
) -> None:
    assert spec(allowed=allowed).allows(role=role, is_author=is_author) is is_allowed
    assert spec(allowed=("admin",)).allows(role=role, is_author=is_author, override=allowed) is is_allowed


def test_settings_override_the_roles_that_the_command_declares() -> None:
    assert not spec(allowed=("author",)).allows(role="read", is_author=True, override=("write",))


@pytest.mark.parametrize(
    ("specs", "problem"),
    [
        ([spec("rerun"), spec("Rerun")], "'Rerun' of 'Rerun' already means 'rerun'"),
        (
            [spec("rerun"), spec("retest", synonyms=("re-test", "RERUN"))],
            "'RERUN' of 'retest' already means 'rerun'",
        ),
        ([spec("rerun", phrases=("run ci",)), spec("run ci")], "'run ci' of 'run ci' already means 'rerun'"),
        ([spec("rerun", synonyms=("rerun",))], "'rerun' of 'rerun' already means 'rerun'"),
        ([spec(" ")], "' ' of ' ' is empty"),
    ],
)
def test_two_commands_with_one_name_are_refused(specs: list[CommandSpec], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^the command {problem}$"):
        CommandRegistry(specs)


def test_usage_says_which_arguments_are_allowed() -> None:
    assert spec().usage == "rerun"
    assert spec(arguments=Arguments(("failed", "all"), "NAME…")).usage == "rerun [failed | all | NAME…]"


def test_only_commands_of_enabled_features_are_enabled() -> None:
    rerun, help_spec = spec(), CommandSpec("help", "Lists.", "help", feature="help")
    assert CommandRegistry([rerun, help_spec]).enabled({"help", "slow_tests"}) == [help_spec]


def test_an_empty_registry_has_no_commands() -> None:
    assert CommandRegistry([]).match(["rerun"]) is None
    assert CommandRegistry([]).nearest("rerun") is None
