"""`nightjar-lab check`, which labs run before they upload."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from nightjar_formats.model import Counts
from nightjar_formats.readers import ALIASES, FORMATS
from nightjar_formats.runs.offline_check import FileReport, MeasurementCount, RunReport, check_files, check_run, is_run
from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli import texts
from nightjar_lab.cli.colors import BAD, GOOD, colored
from nightjar_lab.cli.options import AS_WRITTEN, json_option

MOST_NAMES = 5
"""Files that a line of advice names at most."""
MOST_MEASUREMENTS = 20
"""Measurements that the line of a file names at most; `--json` has all."""

files_argument = click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
format_option = click.option(
    "--format",
    "format_name",
    type=click.Choice([*FORMATS, *ALIASES]),
    help="The format of the files. Default: guessed from their content.",
)


@click.command(
    short_help="Check result files before you upload them.",
    epilog=f"""{AS_WRITTEN}
    Examples (`nightjar results check` on a server is the same):
      nightjar-lab check te.xml relax.xml
      nightjar-lab check results.jsonl.gz --json
      nightjar-lab check octocat/compiler/example-lab/adreno/SHA/RUN/manifest.json
    """,
)
@files_argument
@format_option
@json_option
def check(paths: tuple[Path, ...], format_name: str | None, as_json: bool) -> None:
    """Check result files before you upload them, and print what the bot would read from them.

    The files are checked as those of one run. For the folder of a run, or its manifest.json, everything that the
    manifest names is checked. Nothing is uploaded, and no settings are needed. The exit status is 1 if the bot would
    refuse anything.
    """
    files = [path for path in paths if not is_run(path)]
    reports = [check_files(files, format_name)] if files else []
    reports += [check_run(path) for path in paths if is_run(path)]
    good = all(report.good for report in reports)
    if as_json:
        click.echo(json.dumps([report.as_json() for report in reports], indent=2))
    else:
        for report in reports:
            click.echo("\n".join(report_lines(report)))
        refused = any(report.refused for report in reports)
        result = texts.GOOD if good else texts.BAD if refused else texts.UNREADABLE
        click.echo(colored(result, GOOD if good else BAD))
    raise SystemExit(0 if good else 1)


def report_lines(report: RunReport) -> Iterator[str]:
    """Yield a line for each file, one for all of them together, and then the problems and the advice."""
    for file in report.files:
        yield escape_controls(_file_line(file))
        if file.measurements:
            yield escape_controls(_measurements_line(file.measurements))
    if sum(not file.is_artifact for file in report.files) > 1 and report.good:
        yield texts.TOGETHER.format(counts=counts_text(report.counts))
    text = texts.UNREADABLE_RUN if report.unreadable else texts.REFUSED_RUN
    yield from (escape_controls(text.format(problem=problem)) for problem in report.problems)
    advice: dict[str, list[str]] = {}
    for file in report.files:
        for warning in file.warnings:
            advice.setdefault(warning, []).append(file.name)
    for warning, names in advice.items():
        remainder = texts.AND_MORE.format(more=len(names) - MOST_NAMES) if len(names) > MOST_NAMES else ""
        yield escape_controls(texts.ADVICE_FOR.format(names=", ".join(names[:MOST_NAMES]) + remainder, advice=warning))
    yield from (escape_controls(texts.ADVICE.format(advice=warning)) for warning in report.warnings)


def counts_text(counts: Counts) -> str:
    """Return how many tests passed, failed and so on, without zeros."""
    counted = [f"{count:,} {name}" for name, count in asdict(counts).items() if count]
    return ", ".join(counted) or texts.NO_TESTS


def _measurements_line(measurements: Sequence[MeasurementCount]) -> str:
    """Return which measurements a file has, and of how many tests."""
    parts = [
        texts.MEASUREMENT.format(
            name=measurement.name,
            unit=f" ({measurement.unit})" if measurement.unit else "",
            tests=f"{measurement.tests:,} test{'s' if measurement.tests > 1 else ''}",
        )
        for measurement in measurements[:MOST_MEASUREMENTS]
    ]
    remainder = texts.AND_MORE.format(more=len(measurements) - MOST_MEASUREMENTS)
    return texts.MEASUREMENTS.format(
        measurements=", ".join(parts) + (remainder if len(measurements) > MOST_MEASUREMENTS else "")
    )


def _file_line(file: FileReport) -> str:
    if file.problem:
        problem = file.problem.removeprefix(f"{file.name}: ").removeprefix(f"{file.name} ")
        text = texts.UNREADABLE_FILE if file.unreadable else texts.REFUSED_FILE
        return text.format(name=file.name, problem=problem)
    if file.is_artifact:
        return texts.ARTIFACT.format(name=file.name, type=file.format)
    troubles = ((file.collection_errors, "collection error", "s"), (file.crashes, "crash", "es"))
    troubles_text = ", ".join(
        f"{count:,} {word}{plural if count > 1 else ''}" for count, word, plural in troubles if count
    )
    errored = texts.ERRORED.format(troubles=troubles_text) if troubles_text else ""
    return f"{file.name}: {file.format}: {counts_text(file.counts)}{errored}"
