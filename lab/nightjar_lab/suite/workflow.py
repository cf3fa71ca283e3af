"""Write a workflow of GitHub Actions with a job for each run of a matrix, for `nightjar-lab init --matrix`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import click
from click.core import ParameterSource

from nightjar_lab.cli.errors import BadSettings
from nightjar_lab.suite import texts
from nightjar_lab.suite.listing import ListedFlow, list_flows, list_suites
from nightjar_lab.suite.matrix import MatrixSelection, select_matrix
from nightjar_lab.suite.options import failures
from nightjar_lab.suite.run_command import run

FILE = ".github/workflows/nightjar-suite.yml"
COMMAND = ["nightjar-lab", "suite", "run"]
SELECTING = ("flows", "backends", "suites")
COPIED = ("patterns", "limit", "jobs", "timeout", "memory")
"""Options of the command that each job gets; the others are the workflow's own."""

_WORKFLOW = """\
# Runs backend suites, a job for each suite on each flow. Written by nightjar-lab init; edit it freely.
name: Nightjar suites
on:
  schedule:
    - cron: "17 6 * * *"
  workflow_dispatch:
permissions:
  contents: read
env:
@VARIABLES@
jobs:
  suite:
    name: ${{ matrix.suite }} on ${{ matrix.flow }}
    runs-on: self-hosted
    timeout-minutes: 720
    strategy:
      fail-fast: false
      matrix:
        include:
@ROWS@
    steps:
      # Install your backend here too, or one of nightjar-lab's extras: docs/backend-suite.md.
      - run: python3 -m venv .venv && .venv/bin/pip install --quiet @PACKAGE@ boto3
      - run: @COMMAND@
        env:
          FLOW: ${{ matrix.flow }}
          SUITE: ${{ matrix.suite }}
@SECRETS@
      - uses: actions/upload-artifact@ea165f8d65b6e75b540449e92b4886f43607fa02 # v4.6.2
        if: always()
        with:
          name: nightjar-suite-${{ strategy.job-index }}
          path: nightjar-suite/
  summary:
    needs: suite
    if: always()
    runs-on: self-hosted
    steps:
      - uses: actions/download-artifact@d3f86a106a0bac45b974a628896c90dbdf5c8093 # v4.3.0
        with:
          pattern: nightjar-suite-*
          path: results
      - run: python3 -m venv .venv && .venv/bin/pip install --quiet @PACKAGE@
      - run: find results -name '*.jsonl' -print0 | xargs -0 .venv/bin/nightjar-lab suite report
"""
_RUN = (
    'SHA=$(.venv/bin/nightjar-lab nightly) && .venv/bin/nightjar-lab suite run --flow "$FLOW" --suite "$SUITE" '
    '--upload --sha "$SHA"'
)


def matrix_workflow(
    command: Sequence[str], package: str, variables: Mapping[str, str], secrets: Iterable[str]
) -> dict[str, str]:
    """Return the file of a workflow for a command `nightjar-lab suite run …`, by its name.

    `variables` are those of the lab. Raises BadSettings for another command or an option that no job can have, and
    CommandFailed for a flow, a suite or a backend that does not exist.
    """
    words = [*command] if len(command) > 1 else shlex.split(" ".join(command))
    if words[: len(COMMAND)] != COMMAND:
        raise BadSettings(texts.NO_SUITE_COMMAND)
    context = run.make_context("nightjar-lab suite run", words[len(COMMAND) :])
    parts = {
        "@VARIABLES@": "\n".join(f"  {name}: {json.dumps(value)}" for name, value in variables.items() if value),
        "@ROWS@": "\n".join(f"          - {json.dumps(row)}" for row in _rows(context.params)),
        "@PACKAGE@": package,
        "@COMMAND@": json.dumps(" ".join([_RUN, *map(_argument, _copied_options(context))])),
        "@SECRETS@": "\n".join(f"          {name}: ${{{{ secrets.{name} }}}}" for name in secrets),
    }
    workflow = _WORKFLOW
    for placeholder, text in parts.items():
        workflow = workflow.replace(placeholder, text)
    return {FILE: workflow}


def _rows(options: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of the matrix. A flow or a suite that is named may run elsewhere, so it need not run here."""
    selection = MatrixSelection(*(options[name] for name in SELECTING))

    def as_available(entries: list[ListedFlow], names: Sequence[str]) -> list[ListedFlow]:
        return [replace(entry, reason="") if entry.name in names else entry for entry in entries]

    with failures():
        matrix = select_matrix(
            selection,
            lambda names: as_available(list_flows(names), selection.flows),
            lambda names: as_available(list_suites(names), selection.suites),
        )
    if not matrix.runs:
        raise BadSettings(texts.NOTHING_AVAILABLE if matrix.unavailable else texts.NO_PAIR)
    return [
        {"backend": flow.backend, "quantization": flow.quantization, "suite": suite.name, "flow": flow.name}
        for flow, suite in matrix.runs
    ]


def _copied_options(context: click.Context) -> list[str]:
    """Return the options of the command for each job. Raises BadSettings for one that the workflow has itself."""
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in SELECTING or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if name not in COPIED:
            raise BadSettings(texts.NOT_IN_MATRIX.format(option=parameter.opts[0]))
        value = context.params[name]
        values = [pattern.pattern for pattern in value] if name == "patterns" else [f"{value:g}"]
        words += [word for text in values for word in (parameter.opts[0], text)]
    return words


def _argument(word: str) -> str:
    """Quote a word for the shell. `${{` is quoted in two parts, because GitHub would take it for an expression."""
    return "'$''{{'".join(shlex.quote(part) if part else "" for part in word.split("${{")) or "''"
