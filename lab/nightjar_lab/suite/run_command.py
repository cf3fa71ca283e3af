"""`nightjar-lab suite run`: the options of a run, its progress, and its upload."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli.errors import BadSettings, CommandFailed, needed, one_line_errors
from nightjar_lab.cli.options import SHA, TARGET, BotAddress, json_option
from nightjar_lab.cli.upload import UploadPlace, claim_options, place_options, upload_files, upload_place
from nightjar_lab.suite import texts
from nightjar_lab.suite.options import (
    failures,
    flow_option,
    memory_option,
    report_option,
    suite_option,
    summary_option,
    timeout_option,
)
from nightjar_lab.suite.runner import MB, SuiteLimits
from nightjar_lab.suite.suite_run import (
    CaseSelection,
    SuiteProgress,
    SuiteReports,
    SuiteRequest,
    SuiteRunEnd,
    run_suite,
)

FOLDER = "nightjar-suite"
FORMAT = "executorch-csv"
UPLOAD_SECONDS = 120.0
"""The most seconds to wait until the bot has stored an upload."""


@click.command()
@flow_option
@suite_option
@click.option("--filter", "patterns", multiple=True, help="Run cases whose whole name matches, as '*conv*'.")
@click.option("--limit", type=click.IntRange(min=1), help="Run only this many cases, spread evenly over the suite.")
@click.option("--jobs", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes at a time.")
@timeout_option
@memory_option
@click.option("--fresh", is_flag=True, help="Start over; without it, the run continues the results in the JSONL file.")
@click.option(
    "--jsonl",
    type=click.Path(path_type=Path),
    help=f"The file to which each result is appended. Default: in {FOLDER}/, with --sha in {FOLDER}/SHA/",
)
@report_option
@summary_option
@click.option("--upload", is_flag=True, help="Upload the CSV report as a run of your lab, once all cases have results.")
@click.option(
    "--sha",
    type=SHA,
    envvar="NIGHTJAR_SHA",
    show_envvar=True,
    help="The commit that is tested; --upload needs it.",
)
@click.option("--target", type=TARGET, help="With --upload: the target. Default: the flow.")
@place_options
@claim_options
@click.option("--url", type=BotAddress(), envvar="NIGHTJAR_URL", show_envvar=True, help="The bot's address.")
@json_option
def run(**options: Any) -> None:
    """Run a suite on a flow. The same command continues a run that was stopped.

    The exit status is 0 when all cases have a result, whatever it is: `suite diff` says whether there are new failures.
    """
    request = request_of(options)
    place = _upload_place(options) if options["upload"] else None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started_at = datetime.now(timezone.utc)
    show = progress_line()
    try:
        with failures():
            end = run_suite(request, progress=show, notice=lambda text: click.echo(escape_controls(text), err=True))
    finally:
        show(None)
    print_end(end, request, as_json=options["as_json"] and place is None)
    if place is not None:
        with one_line_errors():
            upload_files(place, upload_options_of(options, request, end, started_at))


def request_of(options: Mapping[str, Any]) -> SuiteRequest:
    """Return the request that the options describe; --upload includes a CSV report. Raises BadSettings."""
    shard = options["shard"] or "1/1"
    name = file_name(options["flow"], options["suite"], shard)
    # By commit, so that last night's results are never those of tonight's commit.
    folder = Path(FOLDER, options["sha"] or "")
    report = options["report"] or (folder / f"{name}.csv" if options["upload"] else None)
    return SuiteRequest(
        options["flow"],
        options["suite"],
        options["jsonl"] or folder / f"{name}.jsonl",
        CaseSelection(options["patterns"], options["limit"], shard_of(shard)),
        SuiteLimits(options["timeout"], options["memory"] * MB),
        SuiteReports(report, options["summary"]),
        options["jobs"],
        options["fresh"],
        options["sha"] or "",
    )


def _upload_place(options: Mapping[str, Any]) -> UploadPlace:
    """Return the destination of the upload. Raises BadSettings, before hours are spent on results."""
    needed(options["sha"], "--sha", "", texts.WHAT_SHA)
    return upload_place(options)


def upload_options_of(
    options: Mapping[str, Any], request: SuiteRequest, end: SuiteRunEnd, began: datetime
) -> dict[str, Any]:
    """Return the options of `nightjar-lab upload` for the report of a run."""
    return {
        **options,
        "paths": (request.reports.csv,),
        "suite": end.info.suite,
        "target": options["target"] or end.info.flow,
        "exit_status": int(any(result.outcome.is_failure for result in end.results)),
        "started_at": f"{began:%Y-%m-%dT%H:%M:%SZ}",
        "finished_at": f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        "format_name": FORMAT,
        "compress": None,
        "checks": True,
        "dry_run": False,
        "waits": None,
        # The suite's own `timeout` is the time limit of a case.
        "timeout": UPLOAD_SECONDS,
        "job": None,
    }


def shard_of(shard: str) -> tuple[int, int]:
    """Return index and total. Raises BadSettings for 5/4."""
    index, total = map(int, shard.split("/"))
    if index > total:
        raise BadSettings(texts.NO_SUCH_SHARD.format(shard=shard))
    return index, total


def file_name(flow: str, suite: str, shard: str) -> str:
    """Return the default name of a run's files, without suffix."""
    parts = [suite, flow, *([] if shard == "1/1" else [shard.replace("/", "of")])]
    return "-".join(
        "".join(character if character.isalnum() or character in "-_." else "_" for character in part) for part in parts
    )


def progress_line() -> Callable[[SuiteProgress | None], None]:
    """Return a function that shows the progress in one line of a terminal, else nothing; None ends the line."""
    terminal = sys.stderr.isatty()
    last_shown = 0.0

    def show(progress: SuiteProgress | None) -> None:
        nonlocal last_shown
        if not terminal:
            return
        if progress is None:
            click.echo("", err=True)
        elif progress.seconds - last_shown >= 0.1 or progress.done == progress.total:
            last_shown = progress.seconds
            click.echo(f"\r\x1b[K{progress.line}", err=True, nl=False)

    return show


def print_end(end: SuiteRunEnd, request: SuiteRequest, *, as_json: bool) -> None:
    """Print the counts of a run. Raises CommandFailed if cases have no result."""
    if as_json:
        reports = request.reports
        files: dict[str, Any] = {"jsonl": request.jsonl, "report": reports.csv, "summary": reports.summary}
        paths = {name: os.fspath(path) for name, path in files.items() if path is not None}
        click.echo(json.dumps({"counts": end.counts, "missing": end.missing, **paths}, indent=2))
    else:
        click.echo(texts.RAN.format(count=len(end.results), suite=end.info.suite, flow=end.info.flow))
        for outcome, count in end.counts.items():
            click.echo(f"{count:7}  {outcome}")
        click.echo(texts.STORED.format(path=escape_controls(str(request.jsonl))))
    if end.missing:
        raise CommandFailed(texts.STOPPED.format(count=end.missing))
