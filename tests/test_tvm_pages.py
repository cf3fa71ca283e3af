"""What docs/tvm-scripts.md and docs/ci-layout.md name exists: commands, options, keys, and commands of the bot."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
from click.testing import CliRunner
from nightjar_lab.main import kit
from ruamel.yaml import YAML

from bot.app.features import REGISTRY
from bot.app.load import app_repository_model, parse_config
from bot.cli.main import cli
from tests.settings import own_file

DOCS = Path(__file__).parents[1] / "docs"
SCRIPTS, LAYOUT = ((DOCS / name).read_text(encoding="utf-8") for name in ("tvm-scripts.md", "ci-layout.md"))
REPLACED = """
    cmd_utils determine_docker_images github_cc_reviewers github_docs_comment github_tag_teams github_tvmbot
    git_skip_ci_globs git_skip_ci git_utils http_utils open_docker_update_pr ping_reviewers pytest_ids pytest_wrapper
    should_rebuild_docker should_run_slow_tests task_build update_branch
"""
PROGRAMS = {"nightjar": cli, "nightjar-lab": kit}


def command_of(words: list[str]) -> tuple[list[str], click.Command, list[str]]:
    """Return the words of a command, the command, and its arguments."""
    program, *rest = words
    command: click.Command = PROGRAMS[program]
    path = [program]
    while isinstance(command, click.Group):
        name, *rest = rest
        subcommand = command.get_command(click.Context(command), name)
        assert subcommand is not None, words
        path, command = [*path, name], subcommand
    return path, command, rest


def test_each_script_has_a_line() -> None:
    table = SCRIPTS.partition("## The eighteen scripts")[2].partition("\n## ")[0]
    scripts = re.findall(r"^\| `(\w+)\.py` \| (?:Nothing[,:] )?.{9,}\. \|$", table, re.MULTILINE)
    assert scripts == REPLACED.split()
    assert len(scripts) == 18


def test_the_commands_and_keys_of_the_pages_exist() -> None:
    spans = re.findall(r"`([^`\n]+)`", SCRIPTS + LAYOUT)
    spans += [line for block in re.findall(r"```sh\n(.*?)```", LAYOUT, re.DOTALL) for line in block.splitlines()]
    commands = [
        words
        for span in spans
        for part in re.sub(r"^\w+=\$\((.*)\)$", r"\1", span).split(" && ")
        if (words := shlex.split(part)) and words[0] in PROGRAMS
    ]
    assert len(commands) > 15
    helped = set()
    for words in commands:
        path, command, arguments = command_of(words)
        options = {option for parameter in command.params for option in parameter.opts}
        assert {argument for argument in arguments if argument.startswith("--")} <= options, words
        if tuple(path) not in helped:
            helped.add(tuple(path))
            assert CliRunner().invoke(PROGRAMS[path[0]], [*path[1:], "--help"]).exit_code == 0, path
    requests = [span.removeprefix("@ci ") for span in spans if span.startswith("@ci ")]
    assert len(requests) > 4
    assert [request for request in requests if REGISTRY.match(request.split()) is None] == []
    keys = re.findall(r"\bkeys? `(\w+)`", SCRIPTS + LAYOUT)
    assert len(keys) > 10
    assert set(keys) <= app_repository_model().model_fields.keys()


def test_the_example_is_valid_in_both_files() -> None:
    example = re.search(r"```yaml\n(.*?)```", LAYOUT, re.DOTALL)
    assert example is not None
    config = parse_config(example[1].encode(), "app.yaml").repository("octocat/compiler")
    assert config is not None
    assert "docker_update" in config.model_fields_set
    shared = YAML(typ="safe").load(example[1])["repositories"]["octocat/compiler"]
    del shared["docker_update"]
    steps = shared["ci"]["steps"]
    assert own_file(str(shared)).model_fields_set == {"skip_ci", "rebuild_docker", "ci"}
    assert set(shared["ci"]["images"]) == set(steps)
    local = re.findall(r"`(nightjar ci local [a-z][^`]*)`", LAYOUT)
    assert {command.split()[-1] for line in local for command in line.split(" && ")} <= set(steps)
