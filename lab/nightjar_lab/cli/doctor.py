"""`nightjar-lab doctor`: check everything that a lab depends on."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import click

from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli.colors import ATTENTION, BAD, GOOD, colored
from nightjar_lab.cli.options import (
    AS_WRITTEN,
    SHA,
    TARGET,
    bucket_option,
    json_option,
    lab_option,
    prefix_option,
    repository_option,
    url_option,
)
from nightjar_lab.doctor import FAILED, OK, SKIPPED, WARNING, LabSetup, examine

COLORS = {OK: GOOD, WARNING: ATTENTION, FAILED: BAD, SKIPPED: ATTENTION}


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar-lab doctor --target hexagon-v73 --target adreno
      nightjar-lab doctor --json
    """,
)
@repository_option
@lab_option
@bucket_option
@prefix_option
@url_option
@click.option("--target", "targets", type=TARGET, multiple=True, help="A target of the lab; may be repeated.")
@click.option("--sha", type=SHA, help="A commit: would the bot accept a run of it?")
@json_option
def doctor(
    repository: str | None,
    lab: str | None,
    bucket: str | None,
    prefix: str,
    url: str | None,
    targets: tuple[str, ...],
    sha: str | None,
    as_json: bool,
) -> None:
    """Check what a lab depends on; print a line for each check, and how to fix what fails.

    Checks variables, the bot's address, its clock and ours, repository, lab, token, targets, credentials, the
    permission to write into the bucket, disk space and the nightly commit. Nothing is left behind: the object that is
    sent to the bucket has a wrong digest, so that S3 does not store it. The exit status is 1 if a check fails.
    """
    setup = LabSetup(
        url=url or "",
        lab=lab or "",
        repository=repository or "",
        bucket=bucket or "",
        prefix=prefix,
        targets=targets,
        lab_token=os.environ.get("NIGHTJAR_LAB_TOKEN", "").strip(),
        token=os.environ.get("NIGHTJAR_TOKEN", "").strip(),
        folder=Path.cwd(),
        sha=sha or "",
    )
    findings = []
    for finding in examine(setup):
        findings.append(finding)
        if not as_json:
            state = colored(f"{finding.state:7}", COLORS[finding.state])
            click.echo(f"{state}  {escape_controls(finding.name)}: {escape_controls(finding.text)}")
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    raise SystemExit(1 if any(finding.state == FAILED for finding in findings) else 0)
