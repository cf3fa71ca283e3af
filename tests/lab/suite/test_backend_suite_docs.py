"""docs/backend-suite.md is correct: its flow and its suite run, and its tables are complete."""

from __future__ import annotations

import csv
import os
import shlex
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from nightjar_lab.main import kit
from nightjar_lab.suite.discovery import FLOWS, SUITES
from nightjar_lab.suite.outcome import SuiteOutcome
from nightjar_lab.suite.run_command import run

GUIDE = Path(__file__).parents[3].joinpath("docs/backend-suite.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return [part.partition("```\n")[0] for part in GUIDE.split(f"```{language}\n")[1:]]


def rows(header: str) -> list[list[str]]:
    table = GUIDE.partition(header)[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_flow_and_the_suite_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, cases = blocks("python")
    assert sum(bool(line.strip()) for line in flow.splitlines()) <= 10
    (tmp_path / "my_backend.py").write_text(flow + cases)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.fspath(tmp_path))
    (command,) = (line for block in blocks("sh") for line in block.splitlines() if "my_backend" in line)
    done = CliRunner().invoke(kit, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    with Path("results.csv").open(newline="") as file:
        results = {row["Test ID"]: (row["Result"], row["Result Detail"], row["Error"]) for row in csv.DictReader(file)}
    assert results == {
        "test_double[python]": ("Pass", "", ""),
        "test_relu[python]": ("Fail", "PTE Run Failed", "NameError: name 'relu' is not defined"),
    }


def test_the_guide_names_the_entry_points_that_are_searched() -> None:
    (text,) = blocks("toml")
    assert tomllib.loads(text)["project"]["entry-points"] == {
        FLOWS: {"python": "my_backend:FLOW"},
        SUITES: {"expressions": "my_backend:SUITE"},
    }


def test_the_table_of_results_has_each_outcome() -> None:
    assert {(result, detail) for result, detail, _ in rows("| result | detail | meaning |")} == {
        (outcome.result, outcome.detail) for outcome in SuiteOutcome
    }


def test_the_options_of_the_guide_exist() -> None:
    options = {name for option in run.params for name in option.opts}
    stated = {row[0].strip("`").split()[0] for row in rows("| option | does |")}
    assert stated
    assert stated <= options
