"""The hooks of .pre-commit-hooks.yaml run when a file of ours changes, and run a command that exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from bot.cli.main import cli
from tests.running import ROOT

HOOKS = {hook["id"]: hook for hook in YAML(typ="safe").load(ROOT / ".pre-commit-hooks.yaml")}


@pytest.mark.parametrize(
    ("file", "hooks"),
    [
        ("app.yaml", ["nightjar-app"]),
        ("nightjar.yaml", ["nightjar-app"]),
        ("app.d/octo-org.yaml", ["nightjar-app"]),
        (".github/nightjar.yaml", ["nightjar-repository"]),
        ("docs/app.yaml.md", []),
    ],
)
def test_a_changed_file_runs_its_hook(file: str, hooks: list[str]) -> None:
    assert [name for name, hook in HOOKS.items() if re.search(hook["files"], file)] == hooks


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_is_documented_and_finds_a_mistake(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"- id: {name}" in (ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    program, *words = shlex.split(HOOKS[name]["entry"])
    assert program == "nightjar"
    monkeypatch.chdir(tmp_path)
    finished = CliRunner().invoke(cli, words)
    assert finished.exit_code == 1
    assert finished.stdout.startswith((words[1:] or ["app.yaml"])[0] + ":1:1: ")
