"""What all commands have in common: names of options, and answers to typos."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from nightjar_lab.main import kit

from bot.cli.main import cli


def all_commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from all_commands(command, f"{path} {name}")


def test_a_repository_has_the_same_option_everywhere() -> None:
    commands = [*all_commands(cli, "nightjar"), *all_commands(kit, "nightjar-lab")]
    options = {
        path: parameter.opts
        for path, command in commands
        for parameter in command.params
        if isinstance(parameter, click.Option) and {"--repo", "--repository"} & set(parameter.opts)
    }
    assert len(options) > 8
    assert {path: names for path, names in options.items() if "--repo" not in names} == {}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("servee", "Did you mean 'serve'?"),
        ("doctr", "Did you mean 'doctor'?"),
        ("results chek", "Did you mean 'check'?"),
        ("token crate", "Did you mean 'create'?"),
        ("serve --prt 1", "'--port'"),
    ],
)
def test_a_typo_gets_a_suggestion(arguments: str, expected: str) -> None:
    """Also for commands whose modules are not imported yet."""
    result = CliRunner().invoke(cli, arguments.split())
    assert (result.exit_code, expected in result.output) == (2, True), result.output


def test_check_config_says_whom_the_default_name_notifies(tmp_path: Path) -> None:
    file = tmp_path / "app.yaml"
    for text, is_said in (("", True), ('mentions: ["/ci"]\n', False)):
        file.write_text(f"{text}repositories:\n  octocat/compiler:\n")
        result = CliRunner().invoke(cli, ["check-config", str(file)])
        assert result.exit_code == 0
        assert ("GitHub notifies the person whose login is" in result.stderr) is is_said
        assert "notifies" not in result.stdout
