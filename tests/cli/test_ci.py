"""`nightjar ci`: its usage, and builds without a pull request. The conversations test which server it asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bot.cli.main import cli

NOBODY: dict[str, str | None] = dict.fromkeys(
    ("NIGHTJAR_URL", "NIGHTJAR_REPOSITORY", "GITHUB_REPOSITORY", "GITHUB_TOKEN")
)
EVERYTHING = "SKIP_CI=false\nDOCS_ONLY=false\nSKIP_SLOW_TESTS=false\nREBUILD_DOCKER=true\n"


def decide(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(cli, ["ci", "decide", *arguments], env={**NOBODY, **env})


@pytest.mark.parametrize("number", ["", " ", "null", "false", "None"])
def test_a_build_of_no_pull_request_runs_everything_and_asks_nobody(number: str) -> None:
    """Pushes to main and the like; CIs leave the number empty, or write null."""
    result = decide("--pr", number)
    assert (result.exit_code, result.stdout) == (0, EVERYTHING)
    assert "# skip_ci=false: This build is not for a pull request, so CI runs." in result.stderr.splitlines()


@pytest.mark.parametrize("arguments", [["--pr", "", "--branch", ""], ["--branch", ""], ["--branch", "null"]])
def test_a_build_of_neither_pull_request_nor_branch_runs_everything_and_asks_nobody(arguments: list[str]) -> None:
    result = decide(*arguments, "--sha", "a" * 40)
    assert (result.exit_code, result.stdout) == (0, EVERYTHING)


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
def test_invalid_usage_ends_with_2_and_prints_no_values(arguments: list[str]) -> None:
    result = decide(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr
    assert "sesame" not in result.stderr


@pytest.mark.parametrize("text", ["", "repositories: {octocat/a: , octocat/b: }", "repositories: {a: }"])
def test_a_missing_repository_is_asked_for(tmp_path: Path, text: str) -> None:
    (tmp_path / "app.yaml").write_text(text)
    result = decide("--pr", "1", "--config", str(tmp_path / "app.yaml"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "name the repository: --repo OWNER/NAME" in result.stderr
