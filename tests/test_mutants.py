"""`make mutants` names existing files: a module or test that was moved must be updated there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MUTMUT = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mutmut"]


@pytest.mark.parametrize("setting", ["only_mutate", "pytest_add_cli_args_test_selection"])
def test_the_files_in_make_mutants_exist(setting: str) -> None:
    assert [file for file in MUTMUT[setting] if not (ROOT / file).is_file()] == []
