"""`nightjar ci`: its usage, and builds without a pull request. The conversations test which server it asks."""

from __future__ import annotations

import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from nightjar_lab.main import kit

from bot.cli.main import cli

NOBODY: dict[str, str | None] = dict.fromkeys(
    ("NIGHTJAR_URL", "NIGHTJAR_REPOSITORY", "GITHUB_REPOSITORY", "GITHUB_TOKEN")
)
EVERYTHING = "SKIP_CI=false\nDOCS_ONLY=false\nSKIP_SLOW_TESTS=false\nREBUILD_DOCKER=true\nNIGHTJAR_LEVEL=main\n"


def decide(*arguments: str, program: click.Command = cli, **env: str) -> Result:
    return CliRunner().invoke(program, ["ci", "decide", *arguments], env={**NOBODY, **env})


of_both = pytest.mark.parametrize("program", [cli, kit], ids=["nightjar", "nightjar-lab"])
"""For what is the same in the command of the lab kit, which asks only the bot."""


@of_both
@pytest.mark.parametrize("number", ["", " ", "null", "false", "None"])
def test_a_build_of_no_pull_request_runs_everything_and_asks_nobody(number: str, program: click.Command) -> None:
    """Pushes to main and the like; CIs leave the number empty, or write null."""
    result = decide("--pr", number, program=program)
    assert (result.exit_code, result.stdout) == (0, EVERYTHING)
    assert "# skip_ci=false: This build is not for a pull request, so CI runs." in result.stderr.splitlines()


@of_both
@pytest.mark.parametrize("arguments", [["--pr", "", "--branch", ""], ["--branch", ""], ["--branch", "null"]])
def test_a_build_of_neither_pull_request_nor_branch_runs_everything_and_asks_nobody(
    arguments: list[str], program: click.Command
) -> None:
    result = decide(*arguments, "--sha", "a" * 40, program=program)
    assert (result.exit_code, result.stdout) == (0, EVERYTHING)


@of_both
@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--sha", "a" * 40],
        ["--branch", "main", "--repo", "octocat/compiler"],
        ["--branch", "a b", "--sha", "a" * 40, "--repo", "octocat/compiler"],
        ["--pr", "x"],
        ["--pr", "-1"],
        ["--pr", "0"],
        ["--pr", "1.5"],
        ["--pr", "٤٢"],
        ["--pr", "99999999999"],
        ["--pr", "9" * 5000],
        ["--pr", "1", "--repo", "compiler"],
        ["--pr", "1", "--repo", "octocat/compiler", "--sha", "main"],
        ["--pr", "1", "--repo", "octocat/compiler", "--format", "xml"],
        ["--pr", "1", "--repo", "octocat/compiler", "--api", "ci.example.org"],
        ["--pr", "1", "--repo", "octocat/compiler", "--api", "https://me:sesame@ci.example.org"],
    ],
)
def test_invalid_usage_ends_with_2_and_prints_no_values(arguments: list[str], program: click.Command) -> None:
    result = decide(*arguments, program=program)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert "sesame" not in result.stderr


@pytest.mark.parametrize(
    ("env", "reason"),
    [
        ({}, "neither --api nor NIGHTJAR_URL is set"),
        ({"NIGHTJAR_URL": "http://127.0.0.1:9"}, "the bot did not answer (no connection to 127.0.0.1:9)"),
        ({"NIGHTJAR_URL": "http://ci.example.org", "NIGHTJAR_TOKEN": "sesame"}, "NIGHTJAR_TOKEN is not sent to http:"),
    ],
)
def test_the_kit_runs_everything_if_it_cannot_ask(
    env: dict[str, str], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)
    result = decide("--pr", "1", "--repo", "octocat/compiler", program=kit, **env)
    assert (result.exit_code, result.stdout) == (0, EVERYTHING)
    assert f"# run_slow_tests=true: Fallback: {reason}" in result.stderr
    assert "sesame" not in result.stderr


@pytest.mark.parametrize("text", ["", "repositories: {octocat/a: , octocat/b: }", "repositories: {a: }"])
def test_a_missing_repository_is_asked_for(tmp_path: Path, text: str) -> None:
    (tmp_path / "app.yaml").write_text(text)
    result = decide("--pr", "1", "--config", str(tmp_path / "app.yaml"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "name the repository: --repo OWNER/NAME" in result.stderr
