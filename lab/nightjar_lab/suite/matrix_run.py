"""Run a matrix: each selected suite on each selected flow that takes its models, with one summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from nightjar_formats.items import counted
from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli.errors import BadSettings, CommandFailed
from nightjar_lab.suite import texts
from nightjar_lab.suite.listing import ListedFlow, list_flows, list_suites
from nightjar_lab.suite.matrix import MatrixSelection, select_matrix
from nightjar_lab.suite.options import failures
from nightjar_lab.suite.result_file import FileUnusable
from nightjar_lab.suite.run_request import end_record, job_summary, print_end, request_of, run_with_progress
from nightjar_lab.suite.runner import CannotRun
from nightjar_lab.suite.suite_run import NoCases, SuiteReports
from nightjar_lab.suite.summary import MatrixRow, matrix_summary

OF_A_PAIR = ("jsonl", "report", "upload")
"""Options for one suite on one flow."""


class MatrixRun:
    """A matrix while it runs: the rows of its summary, and the faults of runs without results."""

    def __init__(self, unavailable: tuple[ListedFlow, ...]) -> None:
        self.rows: list[MatrixRow] = []
        self.records: list[dict[str, Any]] = []
        self.not_run = [(entry.name, entry.reason) for entry in unavailable]
        self.faults: list[str] = []
        self.stopped = False

    def run(self, options: Mapping[str, Any], flow: ListedFlow, suite: ListedFlow) -> None:
        """Run one suite on one flow. A suite without a selected case is left out."""
        request = request_of(options, flow.name, suite.name)
        try:
            end = run_with_progress(request)
        except NoCases:
            return
        except (CannotRun, FileUnusable) as error:
            name = texts.MATRIX_ROW.format(suite=suite.name, flow=flow.name)
            self.not_run.append((name, str(error)))
            self.faults.append(texts.FAILED_RUN.format(run=name, reason=error))
            return
        results = end.results
        self.rows.append(MatrixRow(flow.backend, flow.quantization, flow.name, suite.name, results, end.missing))
        names = {"backend": flow.backend, "quantization": flow.quantization, "flow": flow.name, "suite": suite.name}
        self.records.append({**names, **end_record(end, request)})
        self.stopped = end.stopped
        if not options["as_json"]:
            print_end(end, request, as_json=False)


def run_matrix(options: Mapping[str, Any]) -> None:
    """Run a matrix and print its counts. Raises BadSettings, and CommandFailed if cases have no result."""
    for option in OF_A_PAIR:
        if options[option]:
            raise BadSettings(texts.ONE_RUN.format(option=option))
    reports = SuiteReports(None, options["summary"], job_summary())
    with failures():
        reports.check()
        selection = MatrixSelection(options["flows"], options["backends"], options["suites"])
        matrix = select_matrix(selection, list_flows, list_suites)
    matrix_run = MatrixRun(matrix.unavailable)
    names: dict[str, list[str]] = {}
    for name, reason in matrix_run.not_run:
        names.setdefault(reason, []).append(name)
    for reason, unavailable in names.items():
        text = texts.NOT_RUN if len(unavailable) == 1 else texts.SEVERAL_NOT_RUN
        click.echo(escape_controls(text.format(name=", ".join(unavailable), reason=reason)), err=True)
    if not matrix.runs:
        raise CommandFailed(texts.NOTHING_AVAILABLE if matrix.unavailable else texts.NO_PAIR)
    for flow, suite in matrix.runs:
        if not matrix_run.stopped:
            matrix_run.run(options, flow, suite)
    if not matrix_run.rows and not matrix_run.faults:
        suites = sorted({suite.name for _, suite in matrix.runs})
        raise CommandFailed(texts.NO_CASES.format(suite=", ".join(suites)))
    with failures():
        reports.write_summary(matrix_summary(matrix_run.rows, matrix_run.not_run))
    if options["as_json"]:
        not_run = [{"name": name, "reason": reason} for name, reason in matrix_run.not_run]
        click.echo(json.dumps({"runs": matrix_run.records, "not_run": not_run}, indent=2))
    missing = sum(row.missing for row in matrix_run.rows)
    faults = [*matrix_run.faults, *([texts.STOPPED.format(cases=counted(missing, texts.CASE))] if missing else [])]
    if faults:
        raise CommandFailed("\n".join(faults))
