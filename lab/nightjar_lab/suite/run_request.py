"""The requests of `nightjar-lab suite run`: what its options mean, and what people see of a run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from nightjar_formats.items import counted
from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli.errors import BadSettings
from nightjar_lab.suite import texts
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


def is_pair(options: Mapping[str, Any]) -> bool:
    """Say whether the options name one flow and one suite; all else is a matrix."""
    return len(options["flows"]) == len(options["suites"]) == 1 and not options["backends"]


def request_of(options: Mapping[str, Any], flow: str, suite: str) -> SuiteRequest:
    """Return the request that the options describe; a matrix and --upload include a CSV report. Raises BadSettings."""
    shard = options["shard"] or "1/1"
    name = file_name(flow, suite, shard)
    # By commit, so that last night's results are never those of tonight's commit.
    folder = Path(FOLDER, options["sha"] or "")
    report = options["report"] or (folder / f"{name}.csv" if options["upload"] or not is_pair(options) else None)
    return SuiteRequest(
        flow,
        suite,
        options["jsonl"] or folder / f"{name}.jsonl",
        CaseSelection(options["patterns"], options["limit"], shard_of(shard)),
        SuiteLimits(options["timeout"], options["memory"] * MB),
        SuiteReports(report, options["summary"], job_summary()) if is_pair(options) else SuiteReports(report),
        options["jobs"],
        options["fresh"],
        options["sha"] or "",
    )


def job_summary() -> Path | None:
    """Return the file whose content GitHub Actions shows on the page of the job."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    return Path(path) if path else None


def run_with_progress(request: SuiteRequest) -> SuiteRunEnd:
    """Run a request, and show its progress. Raises CannotRun and FileUnusable."""
    show = progress_line()
    try:
        return run_suite(request, progress=show, notice=lambda text: click.echo(escape_controls(text), err=True))
    finally:
        show(None)


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
    """Print the counts of a run."""
    if as_json:
        click.echo(json.dumps(end_record(end, request), indent=2))
    else:
        click.echo(
            texts.RAN.format(cases=counted(len(end.results), texts.CASE), suite=end.info.suite, flow=end.info.flow)
        )
        for outcome, count in end.counts.items():
            click.echo(f"{count:7}  {outcome}")
        click.echo(texts.STORED.format(path=escape_controls(str(request.jsonl))))


def end_record(end: SuiteRunEnd, request: SuiteRequest) -> dict[str, Any]:
    """Return the counts and the files of a run as JSON."""
    reports = request.reports
    files: dict[str, Any] = {"jsonl": request.jsonl, "report": reports.csv, "summary": reports.summary}
    paths = {name: os.fspath(path) for name, path in files.items() if path is not None}
    return {"counts": end.counts, "missing": end.missing, **paths}
