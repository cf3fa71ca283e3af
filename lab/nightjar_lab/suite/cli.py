"""`nightjar-lab suite`: lists flows and suites, runs cases, makes and compares reports."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from nightjar_lab.cli.errors import BadSettings, CommandFailed, escape_controls
from nightjar_lab.cli.options import SHARD, json_option
from nightjar_lab.suite import texts
from nightjar_lab.suite.csv_report import ReportInvalid, ReportRow, read_report
from nightjar_lab.suite.listing import list_flows, list_suites
from nightjar_lab.suite.report_diff import ReportDiff, compare_reports
from nightjar_lab.suite.result import SuiteResult
from nightjar_lab.suite.result_file import FileUnusable, read_results, refuse_device
from nightjar_lab.suite.runner import MB, CannotRun, SuiteLimits, SuiteRunner
from nightjar_lab.suite.suite_run import (
    CaseSelection,
    SuiteProgress,
    SuiteReports,
    SuiteRequest,
    SuiteRunEnd,
    run_suite,
)
from nightjar_lab.suite.summary import summary_text

FOLDER = "nightjar-suite"
REPRO_OUTPUT = 1 << 20

flow_option = click.option("--flow", required=True, help="A flow of `suite list`, or MODULE:NAME.")
suite_option = click.option("--suite", required=True, help="A suite of `suite list`, or MODULE:NAME.")
timeout_option = click.option(
    "--timeout", type=click.FloatRange(min=0.001), help="Seconds that a case may take; the suite has a default."
)
memory_option = click.option(
    "--memory", type=click.IntRange(min=1), default=4096, show_default=True, help="MB that a case's process may use."
)
report_option = click.option("--report", type=click.Path(path_type=Path), help="Write a CSV report.")
summary_option = click.option("--summary", type=click.Path(path_type=Path), help="Write a summary as Markdown.")


@contextmanager
def failures() -> Iterator[None]:
    """Show what stops a run as one line."""
    try:
        yield
    except (CannotRun, FileUnusable) as error:
        raise CommandFailed(str(error)) from error


@click.group()
def suite() -> None:
    """Test a compiler or a backend as a black box: flows x suites of models.

    A flow takes each model through quantize, lower, load, run and a comparison of its outputs. The result of a case is
    the stage at which it fails.
    """


@suite.command("list")
@json_option
def list_command(*, as_json: bool) -> None:
    """List suites and flows, one a line, and those that cannot be loaded with the reason."""
    listed = [*list_suites(), *list_flows()]
    if as_json:
        click.echo(json.dumps([one.as_json() for one in listed], indent=2))
        return
    width = max((len(one.name) for one in listed), default=0)
    for one in listed:
        click.echo(escape_controls(f"{one.name:{width}}  {one.kind:5}  {one.words}"))
    if not listed:
        click.echo(texts.NOTHING_LISTED, err=True)


@suite.command()
@flow_option
@suite_option
@click.option("--shard", type=SHARD, default="1/1", help="Run one part of several, as 1/4.")
@click.option("--filter", "patterns", multiple=True, help="Run cases whose whole name matches, as '*conv*'.")
@click.option("--limit", type=click.IntRange(min=1), help="Run so many cases, taken evenly from the suite.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes at a time.")
@timeout_option
@memory_option
@click.option("--fresh", is_flag=True, help="Begin anew; otherwise the results in the JSONL file are continued.")
@click.option(
    "--jsonl", type=click.Path(path_type=Path), help=f"Where results go as they come.  [default: in {FOLDER}/]"
)
@report_option
@summary_option
@json_option
def run(
    flow: str, suite: str, shard: str, patterns: tuple[str, ...], limit: int | None, jobs: int, timeout: float | None,
    memory: int, jsonl: Path | None, report: Path | None, summary: Path | None, *, fresh: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run a suite on a flow. The same command continues a run that was stopped.

    The exit status is 0 when all cases have a result, whatever it is: `suite diff` says whether there are new failures.
    """
    request = SuiteRequest(
        flow,
        suite,
        jsonl or Path(FOLDER) / file_name(flow, suite, shard),
        CaseSelection(patterns, limit, shard_of(shard)),
        SuiteLimits(timeout, memory * MB),
        SuiteReports(report, summary),
        jobs,
        fresh,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    show = progress_line()
    with failures():
        end = run_suite(request, progress=show, notice=lambda text: click.echo(escape_controls(text), err=True))
    show(None)
    print_end(end, request, as_json=as_json)


@suite.command()
@click.argument("files", metavar="JSONL...", nargs=-1, required=True, type=click.Path(path_type=Path))
@report_option
@summary_option
def report(files: tuple[Path, ...], report: Path | None, summary: Path | None) -> None:
    """Make reports of the results of a run, or of its shards; without --report and --summary, print the summary."""
    headers: list[dict[str, Any]] = []
    results: dict[str, SuiteResult] = {}
    with failures():
        for file in files:
            header, found = read_results(file)
            headers.append({key: header[key] for key in ("flow", "suite")})
            results.update({result.test_id: result for result in found})
        if any(header != headers[0] for header in headers):
            raise BadSettings(texts.MIXED)
        flow, suite = (str(headers[0][key]["name"]) for key in ("flow", "suite"))
        if report is None and summary is None:
            click.echo(summary_text(list(results.values()), flow=flow, suite=suite), nl=False)
        SuiteReports(report, summary).write(list(results.values()), flow=flow, suite=suite)


@suite.command()
@click.argument("earlier", type=click.Path(path_type=Path))
@click.argument("later", type=click.Path(path_type=Path))
@json_option
def diff(earlier: Path, later: Path, *, as_json: bool) -> None:
    """Compare two CSV reports. The exit status is 1 if there are new failures."""
    found = compare_reports(rows_of(earlier), rows_of(later))
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
    else:
        print_diff(found)
    sys.exit(1 if found.new_failures else 0)


@suite.command()
@flow_option
@suite_option
@timeout_option
@memory_option
@click.argument("case")
def repro(flow: str, suite: str, timeout: float | None, memory: int, case: str) -> None:
    """Run one case, by its name or its test ID, and print all that is known. The exit status is 1 if it fails."""
    limits = SuiteLimits(timeout, memory * MB)
    with (
        failures(),
        SuiteRunner(
            flow, suite, limits=limits, half_output=REPRO_OUTPUT, notice=lambda text: click.echo(text, err=True)
        ) as runner,
    ):
        info = runner.start()
        names = runner.names()
        name = next((one for one in names if one == case or case.startswith(f"{one}[{info.flow}")), None)
        if name is None:
            raise CommandFailed(texts.NO_SUCH_CASE.format(case=case, suite=info.suite))
        click.echo(texts.REPRO_COMMAND.format(command=repro_command(flow, suite, name, timeout, memory)))
        (result,) = runner.run([name])
        runner.finish()
    print_result(result)
    sys.exit(1 if result.outcome.is_failure else 0)


def shard_of(shard: str) -> tuple[int, int]:
    """Return index and total. Raises BadSettings for 5/4."""
    index, total = map(int, shard.split("/"))
    if index > total:
        raise BadSettings(texts.NO_SUCH_SHARD.format(shard=shard))
    return index, total


def file_name(flow: str, suite: str, shard: str) -> str:
    """Return the name of the JSONL file of a run that names none."""
    parts = [suite, flow, *([] if shard == "1/1" else [shard.replace("/", "of")])]
    return "-".join("".join(one if one.isalnum() or one in "-_." else "_" for one in part) for part in parts) + ".jsonl"


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
    words += ["--memory", str(memory)] if memory is not None else []
    return " ".join(map(shell_word, [*words, "--", case]))


def shell_word(text: str) -> str:
    """Quote a word for a shell, with escapes for what a terminal would obey."""
    if escape_controls(text) == text:
        return shlex.quote(text)
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{escape_controls(quoted)}'"


def progress_line() -> Callable[[SuiteProgress | None], None]:
    """Return what shows the progress in one line of a terminal, and nothing elsewhere; None ends the line."""
    terminal = sys.stderr.isatty()
    shown = 0.0

    def show(progress: SuiteProgress | None) -> None:
        nonlocal shown
        if not terminal:
            return
        if progress is None:
            click.echo("", err=True)
        elif progress.seconds - shown >= 0.1 or progress.done == progress.total:
            shown = progress.seconds
            click.echo(f"\r\x1b[K{progress.line}", err=True, nl=False)

    return show


def print_end(end: SuiteRunEnd, request: SuiteRequest, *, as_json: bool) -> None:
    """Print the counts of a run. Raises CommandFailed if cases have no result."""
    if as_json:
        files: dict[str, Any] = {
            "jsonl": request.jsonl,
            "report": request.reports.csv,
            "summary": request.reports.summary,
        }
        paths = {name: os.fspath(path) for name, path in files.items() if path is not None}
        click.echo(json.dumps({"counts": end.counts, "missing": end.missing, **paths}, indent=2))
    else:
        click.echo(texts.RAN.format(count=len(end.results), suite=end.info.suite, flow=end.info.flow))
        for outcome, count in end.counts.items():
            click.echo(f"{count:7}  {outcome}")
        click.echo(texts.STORED.format(path=escape_controls(str(request.jsonl))))
    if end.missing:
        raise CommandFailed(texts.STOPPED.format(count=end.missing))


def print_diff(found: ReportDiff) -> None:
    """Print a comparison, one test a line."""
    for title, tests in (
        (texts.NEW_FAILURES, found.new_failures),
        (texts.FIXED, found.fixed),
        (texts.STAGE_CHANGED, [f"{test}: {before} -> {now}" for test, before, now in found.stage_changed]),
        (texts.NEWLY_SKIPPED, found.newly_skipped),
        (texts.NEW_TESTS, found.new_tests),
        (texts.REMOVED, found.removed),
    ):
        click.echo(f"{title}: {len(tests)}")
        for test in tests:
            click.echo(f"  {escape_controls(test)}")
    click.echo(texts.STILL_FAILING.format(count=found.still_failing))


def print_result(result: SuiteResult) -> None:
    """Print a result with all that is known of it."""
    rows = [
        ("Result", result.outcome.value),
        ("Stage", result.stage.value if result.stage else ""),
        ("Error", result.error),
        ("Params", json.dumps(dict(result.params)) if result.params else ""),
        ("Seconds", "" if result.seconds is None else f"{result.seconds:.3f}"),
    ]
    rows += [
        (f"Output {number}", texts.OUTPUT_ERROR.format(largest=one.largest, mean=one.mean, snr=one.snr))
        for number, one in enumerate(result.outputs)
    ]
    for name, value in rows:
        if value:
            click.echo(f"{name + ':':10} {escape_controls(value)}")
    for title, text in ((texts.TRACEBACK, result.traceback), (texts.WORKER_OUTPUT, result.output)):
        if text:
            click.echo(f"{title}\n" + "\n".join(f"  {escape_controls(line)}" for line in text.splitlines()))
