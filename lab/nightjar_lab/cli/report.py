"""`nightjar-lab report`: the summary of a CI job from its reports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from nightjar_formats.readers import read
from nightjar_formats.refused import Refused
from nightjar_formats.runs.identity import Resolver
from nightjar_lab import texts
from nightjar_lab.cli.check import format_option
from nightjar_lab.cli.ids import repository_files
from nightjar_lab.cli.options import AS_WRITTEN
from nightjar_lab.job_summary import JobTests, html_summary, markdown_summary

NAME = "nightjar-summary"
"""The name of the file, without its suffix, on a CI that does not name one."""


@click.command(
    short_help="Write which tests of a CI job ran, which did not, and why.",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar-lab report build/*.xml --summary          # in a step that always runs
      nightjar-lab report te.xml relax.xml               # Markdown on standard output
      nightjar-lab report te.xml --output summary.html
    """,
)
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@format_option
@click.option("--summary", is_flag=True, help="Write it where the CI shows it: GitHub Actions, Jenkins or GitLab.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it into this file, HTML or Markdown."
)
def report(paths: tuple[Path, ...], format_name: str | None, summary: bool, output: Path | None) -> None:
    """Write which tests of a CI job ran, which did not, and why, from the reports of the job.

    Tests that did not run are listed by why: their level, their target, a missing device, a quarantine, each with what
    to do to run them. With --summary, GitHub Actions shows the summary on the job's page (GITHUB_STEP_SUMMARY). On
    Jenkins and GitLab it becomes nightjar-summary.html and nightjar-summary.md, for HTML Publisher and for an artifact.
    The exit status is 1 if a report cannot be read.
    """
    job, resolver = JobTests(), Resolver(repository_files())
    for path in paths:
        try:
            with path.open("rb") as file:
                job.add(read(file, path.name, format_name), lambda case: resolver.resolve(case)[0])
        except Refused as refused:
            job.unreadable.append(str(refused))
        except OSError as error:
            job.unreadable.append(f"{path}: {error.strerror}")
    place = output or (summary_path(os.environ) if summary else None)
    if place is None:
        click.echo(markdown_summary(job), nl=False)
    else:
        text = html_summary(job) if place.suffix in (".html", ".htm") else markdown_summary(job)
        try:
            # GitHub's file holds the summaries of all steps so far.
            with place.open("w" if output or place.stem == NAME else "a", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise click.ClickException(texts.SUMMARY_NOT_WRITTEN.format(path=place, problem=error.strerror)) from None
        click.echo(texts.SUMMARY_WRITTEN.format(path=place), err=True)
    raise SystemExit(1 if job.unreadable else 0)


def summary_path(environment: Mapping[str, str]) -> Path:
    """Return the file that the CI shows. Raises `click.UsageError` where no CI is recognised."""
    if path := environment.get("GITHUB_STEP_SUMMARY"):
        return Path(path)
    if environment.get("JENKINS_URL"):
        return Path(f"{NAME}.html")
    if environment.get("GITLAB_CI"):
        return Path(f"{NAME}.md")
    raise click.UsageError(texts.NO_SUMMARY_PLACE)
