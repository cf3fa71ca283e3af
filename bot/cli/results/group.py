"""`nightjar results`: the group of commands. `check` and `upload` are those of the lab kit."""

from __future__ import annotations

import click
from nightjar_lab.cli.lazy import LazyGroup

LAZY = {
    "check": ("nightjar_lab.cli.check:check", "Check result files before you upload them."),
    "explain": ("bot.cli.results.explain:explain", "Explain how a test's result was classified."),
    "ingest": ("bot.cli.results.admin:ingest", "Ingest runs from the bucket or a folder."),
    "measurements": ("bot.cli.results.measurements:measurements", "List what tests measure, and what moved."),
    "rebuild": ("bot.cli.results.admin:rebuild", "Ingest everything in the bucket again."),
    "runs": ("bot.cli.results.admin:runs", "List runs and their states."),
    "search": ("bot.cli.results.search:search", "Search for the commit that tests began to fail with."),
    "upload": ("bot.cli.results.upload:upload", "Upload a run's files, then its manifest."),
}


@click.group(cls=LazyGroup, lazy=LAZY)
def results() -> None:
    """Check, upload and ingest results of hardware labs. docs/labs.md is the guide for labs."""
