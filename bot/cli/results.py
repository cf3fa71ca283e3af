"""`nightjar results`: what labs and operators do with results; here, checking files before they are uploaded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from bot.cli.lazy import LazyGroup
from bot.cli.support import AS_WRITTEN, json_option
from bot.core.terminal import printable
from bot.results.compare.diff import Counts
from bot.results.formats import FORMATS
from bot.results.ingest.offline_check import FileReport, RunReport, check_files, check_run, is_run

GOOD = "nothing of it would be refused"
BAD = "this would be refused; correct it before it is uploaded"
MOST_NAMES = 5
"""Files that a line of advice names."""

files_argument = click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
format_option = click.option(
    "--format",
    "format_name",
    type=click.Choice(list(FORMATS)),
    help="What the files are; left out, their content tells.",
)


LAZY = {
    "ingest": ("bot.cli.results_admin:ingest", "Take in runs by hand."),
    "rebuild": ("bot.cli.results_admin:rebuild", "Read everything in the bucket once more."),
    "runs": ("bot.cli.results_admin:runs", "List runs and what became of them."),
    "upload": ("bot.cli.upload:upload", "Upload a run's files, then its manifest."),
}


@click.group(cls=LazyGroup, lazy=LAZY)
def results() -> None:
    """Check, upload and take in results of hardware labs; docs/labs.md tells a lab how to begin."""


@results.command(
    short_help="Say what is wrong with result files.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results check te.xml relax.xml
      nightjar results check results.jsonl.gz --json
      nightjar results check octocat/compiler/example-lab/adreno/SHA/RUN/manifest.json
    """,
)
@files_argument
@format_option
@json_option
def check(paths: tuple[Path, ...], format_name: str | None, as_json: bool) -> None:
    """Say what is wrong with result files before they are uploaded, and what would be read from them.

    The files are looked at as those of one run. The folder of a run, or its manifest.json, is checked with all that the
    manifest says. Nothing is sent anywhere, and no settings are needed. The exit status is 1 if anything would be
    refused.
    """
    files = [path for path in paths if not is_run(path)]
    reports = [check_files(files, format_name)] if files else []
    reports += [check_run(path) for path in paths if is_run(path)]
    good = all(report.good for report in reports)
    if as_json:
        click.echo(json.dumps([report.as_json() for report in reports], indent=2))
    else:
        for report in reports:
            click.echo("\n".join(told(report)))
        click.echo(GOOD if good else BAD)
    raise SystemExit(0 if good else 1)


def told(report: RunReport) -> Iterator[str]:
    """Yield what was found, a line each: of each file, of all of them, and what could be better."""
    for file in report.files:
        yield printable(f"{file.name}: refused: {_without(file.name, file.problem)}" if file.problem else _line(file))
    if len(report.files) > 1 and report.good:
        yield f"together: {in_words(report.counts)}"
    yield from (printable(f"refused: {problem}") for problem in report.problems)
    advice: dict[str, list[str]] = {}
    for file in report.files:
        for warning in file.warnings:
            advice.setdefault(warning, []).append(file.name)
    for warning, names in advice.items():
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield printable(f"advice: {', '.join(names[:MOST_NAMES])}{more}: {warning}")
    yield from (printable(f"advice: {warning}") for warning in report.warnings)


def in_words(counts: Counts) -> str:
    """Return how many tests ended in which way, without those that are none."""
    some = [f"{count:,} {name}" for name, count in asdict(counts).items() if count]
    return ", ".join(some) or "no tests"


def _line(file: FileReport) -> str:
    troubles = ((file.collection_errors, "collection error", "s"), (file.crashes, "crash", "es"))
    among = ", ".join(f"{count:,} {word}{more if count > 1 else ''}" for count, word, more in troubles if count)
    return f"{file.name}: {file.format}: {in_words(file.counts)}" + (f" (errored: {among})" if among else "")


def _without(name: str, problem: str) -> str:
    return problem.removeprefix(f"{name}: ")
