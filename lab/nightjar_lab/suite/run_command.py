"""`nightjar-lab suite run`: the options of a run, its progress, and its upload."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from nightjar_formats.items import counted
from nightjar_lab.cli.errors import CommandFailed, needed, one_line_errors
from nightjar_lab.cli.options import SHA, TARGET, BotAddress, json_option
from nightjar_lab.cli.upload import UploadPlace, claim_options, place_options, upload_files, upload_place
from nightjar_lab.suite import texts
from nightjar_lab.suite.matrix_run import run_matrix
from nightjar_lab.suite.options import (
    REGEX,
    backends_option,
    failures,
    flows_option,
    memory_option,
    report_option,
    suites_option,
    summary_option,
    timeout_option,
)
from nightjar_lab.suite.run_request import FOLDER, is_pair, print_end, request_of, run_with_progress
from nightjar_lab.suite.suite_run import SuiteRequest, SuiteRunEnd

FORMAT = "executorch-csv"
UPLOAD_SECONDS = 120.0
"""The most seconds to wait until the bot has stored an upload."""


@click.command()
@flows_option
@backends_option
@suites_option
@click.option(
    "--filter", "patterns", type=REGEX, multiple=True, help="Run cases in whose name it is found. May be repeated."
)
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
    """Run suites on flows. The same command continues a run that was stopped.

    Several flows, backends or suites are a matrix: each flow runs the suites whose models it takes, with reports in
    nightjar-suite/. Without --suite these are all suites, without --flow and --backend all flows.

    In GitHub Actions, the summary is added to the job's page.

    The exit status is 0 when all cases have a result, whatever it is: `suite diff` says whether there are new failures.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if is_pair(options):
        _run_pair(options)
    else:
        run_matrix(options)


def _run_pair(options: Mapping[str, Any]) -> None:
    """Run one suite on one flow, and upload its report if that is wanted."""
    request = request_of(options, options["flows"][0], options["suites"][0])
    place = _upload_place(options) if options["upload"] else None
    started_at = datetime.now(timezone.utc)
    with failures():
        end = run_with_progress(request)
    print_end(end, request, as_json=options["as_json"] and place is None)
    if end.missing:
        raise CommandFailed(texts.STOPPED.format(cases=counted(end.missing, texts.CASE)))
    if place is not None:
        with one_line_errors():
            upload_files(place, upload_options_of(options, request, end, started_at))


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
