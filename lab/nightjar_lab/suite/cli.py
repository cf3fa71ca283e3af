"""`nightjar-lab suite`: lists flows and suites, runs cases, makes and compares reports."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli.errors import BadSettings, CommandFailed
from nightjar_lab.cli.options import json_option
from nightjar_lab.suite import texts
from nightjar_lab.suite.csv_report import ReportInvalid, ReportRow, read_report
from nightjar_lab.suite.listing import list_suites_and_flows
from nightjar_lab.suite.options import (
    MEMORY,
    failures,
    flow_option,
    memory_option,
    report_option,
    suite_option,
    summary_option,
    timeout_option,
)
from nightjar_lab.suite.report_diff import ReportDiff, compare_reports
from nightjar_lab.suite.result import SuiteResult
from nightjar_lab.suite.result_file import FileUnusable, read_results, refuse_device
from nightjar_lab.suite.run_command import run
from nightjar_lab.suite.run_request import job_summary
from nightjar_lab.suite.runner import MB, SuiteLimits, SuiteRunner
from nightjar_lab.suite.suite_run import SuiteReports
from nightjar_lab.suite.summary import MatrixRow, matrix_summary, summary_text

REPRO_OUTPUT = 1 << 20


@click.group()
def suite() -> None:
    """Test a compiler or a backend as a black box: flows x suites of models.

    A flow takes each model through quantize, lower, load, run and a comparison of its outputs. The result of a case is
    the stage at which it fails.
    """


suite.add_command(run)


@suite.command("list")
@click.argument("names", nargs=-1)
@click.option("--count", is_flag=True, help="Count the cases of suites, which may take seconds.")
@json_option
def list_command(names: tuple[str, ...], *, count: bool, as_json: bool) -> None:
    """List suites and flows, or only NAMES. The line of one that cannot be loaded says why."""
    entries = list_suites_and_flows(names, count=count)
    if as_json:
        click.echo(json.dumps([entry.as_json() for entry in entries], indent=2))
        return
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        click.echo(escape_controls(f"{entry.name:{width}}  {entry.kind:5}  {entry.line}"))
    if not entries:
        click.echo(texts.NOTHING_LISTED, err=True)


@suite.command()
@click.argument("files", metavar="JSONL...", nargs=-1, required=True, type=click.Path(path_type=Path))
@report_option
@summary_option
def report(files: tuple[Path, ...], report: Path | None, summary: Path | None) -> None:
    """Write reports of a run or of all its shards; without --report and --summary, print the summary.

    Files of several flows or suites have one summary, as that of a matrix. GitHub Actions shows it on the job's page.
    """
    runs: dict[tuple[str, str], tuple[dict[str, Any], dict[str, SuiteResult]]] = {}
    with failures():
        for file in files:
            header, file_results = read_results(file)
            names = str(header["flow"]["name"]), str(header["suite"]["name"])
            first, results = runs.setdefault(names, (header, {}))
            if any(header.get(key) != first.get(key) for key in ("flow", "suite", "commit")):
                raise BadSettings(texts.MIXED)
            results.update({result.test_id: result for result in file_results})
        if len(runs) == 1:
            ((flow, suite), (_, results)) = runs.popitem()
            text = summary_text(list(results.values()), flow=flow, suite=suite)
            SuiteReports(report).write(list(results.values()), flow=flow, suite=suite)
        elif report is not None:
            raise BadSettings(texts.ONE_REPORT)
        else:
            text = matrix_summary([matrix_row(header, results.values()) for header, results in runs.values()])
        SuiteReports(summary=summary, job_summary=job_summary()).write_summary(text)
        if summary is None and report is None:
            click.echo(text, nl=False)


def matrix_row(header: Mapping[str, Any], results: Iterable[SuiteResult]) -> MatrixRow:
    """Return the row of a file's run in the summary of a matrix."""
    flow = header["flow"]
    quantization = str(header.get("quantization") or "")
    return MatrixRow(
        str(flow.get("backend")), quantization, str(flow["name"]), str(header["suite"]["name"]), [*results]
    )


@suite.command()
@click.argument("earlier", type=click.Path(path_type=Path))
@click.argument("later", type=click.Path(path_type=Path))
@json_option
def diff(earlier: Path, later: Path, *, as_json: bool) -> None:
    """Compare two CSV reports. The exit status is 1 if there are new failures."""
    report_diff = compare_reports(rows_of(earlier), rows_of(later))
    if as_json:
        click.echo(json.dumps(report_diff.as_json(), indent=2))
    else:
        print_diff(report_diff)
    sys.exit(1 if report_diff.new_failures else 0)


@suite.command()
@flow_option
@suite_option
@timeout_option
@memory_option
@click.argument("case")
def repro(flow: str, suite: str, timeout: float | None, memory: int, case: str) -> None:
    """Run one case, by its name or its test ID, and print every detail. The exit status is 1 if it fails."""
    limits = SuiteLimits(timeout, memory * MB)
    with (
        failures(),
        SuiteRunner(
            flow, suite, limits=limits, half_output=REPRO_OUTPUT, notice=lambda text: click.echo(text, err=True)
        ) as runner,
    ):
        info = runner.start()
        names = runner.names()
        name = next(
            (candidate for candidate in names if candidate == case or case.startswith(f"{candidate}[{info.flow}")), None
        )
        if name is None:
            raise CommandFailed(texts.NO_SUCH_CASE.format(case=case, suite=info.suite))
        click.echo(texts.REPRO_COMMAND.format(command=repro_command(flow, suite, name, timeout, memory)))
        (result,) = runner.run([name])
        runner.finish()
    print_result(result)
    sys.exit(1 if result.outcome.is_failure else 0)


def rows_of(path: Path) -> list[ReportRow]:
    """Read a report. Raises CommandFailed."""
    try:
        refuse_device(path)
        return read_report(path.read_text(encoding="utf-8-sig", errors="replace"))
    except FileUnusable as error:
        raise CommandFailed(str(error)) from error
    except (OSError, ReportInvalid) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CommandFailed(texts.CANNOT_READ.format(path=path, reason=reason)) from error


def repro_command(flow: str, suite: str, case: str, timeout: float | None = None, memory: int | None = None) -> str:
    """Return the command that runs one case again, for a POSIX shell; with control characters, for bash."""
    words = ["nightjar-lab", "suite", "repro", "--flow", flow, "--suite", suite]
    words += ["--timeout", f"{timeout:g}"] if timeout is not None else []
    words += ["--memory", str(memory)] if memory not in (None, MEMORY) else []
    return " ".join(map(shell_word, [*words, "--", case]))


def shell_word(text: str) -> str:
    """Quote a word for a shell, with escapes for what a terminal would obey."""
    if escape_controls(text) == text:
        return shlex.quote(text)
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{escape_controls(quoted)}'"


def print_diff(report_diff: ReportDiff) -> None:
    """Print a comparison, one line for each test."""
    for title, tests in (
        (texts.NEW_FAILURES, report_diff.new_failures),
        (texts.FIXED, report_diff.fixed),
        (
            texts.STAGE_CHANGED,
            [
                f"{test}: {earlier_stage} -> {later_stage}"
                for test, earlier_stage, later_stage in report_diff.stage_changed
            ],
        ),
        (texts.NEWLY_SKIPPED, report_diff.newly_skipped),
        (texts.NEW_TESTS, report_diff.new_tests),
        (texts.REMOVED, report_diff.removed),
    ):
        click.echo(f"{title}: {len(tests)}")
        for test in tests:
            click.echo(f"  {escape_controls(test)}")
    click.echo(texts.STILL_FAILING.format(count=report_diff.still_failing))


def print_result(result: SuiteResult) -> None:
    """Print a result with all its details."""
    rows = [
        ("Result", result.outcome.value),
        ("Stage", result.stage.value if result.stage else ""),
        ("Error", result.error),
        ("Params", json.dumps(dict(result.params)) if result.params else ""),
        ("Seconds", "" if result.seconds is None else f"{result.seconds:.3f}"),
    ]
    rows += [
        (
            f"Output {number}",
            texts.OUTPUT_ERROR.format(largest=output_error.largest, mean=output_error.mean, snr=output_error.snr),
        )
        for number, output_error in enumerate(result.outputs)
    ]
    for name, value in rows:
        if value:
            click.echo(f"{name + ':':10} {escape_controls(value)}")
    for title, text in ((texts.TRACEBACK, result.traceback), (texts.WORKER_OUTPUT, result.output)):
        if text:
            click.echo(f"{title}\n" + "\n".join(f"  {escape_controls(line)}" for line in text.splitlines()))
