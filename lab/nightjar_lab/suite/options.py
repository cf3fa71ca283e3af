"""Options that several commands of `nightjar-lab suite` have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from nightjar_lab.cli.errors import CommandFailed
from nightjar_lab.suite.result_file import FileUnusable
from nightjar_lab.suite.runner import CannotRun

MEMORY = 4096
"""MB that the process of a case may use."""

flow_option = click.option("--flow", required=True, help="A flow of `suite list`, or MODULE:NAME.")
suite_option = click.option("--suite", required=True, help="A suite of `suite list`, or MODULE:NAME.")
timeout_option = click.option(
    "--timeout", type=click.FloatRange(min=0.001), help="Seconds that a case may take; the suite has a default."
)
memory_option = click.option(
    "--memory", type=click.IntRange(min=1), default=MEMORY, show_default=True, help="MB that a case's process may use."
)
report_option = click.option("--report", type=click.Path(path_type=Path), help="Write a CSV report.")
summary_option = click.option("--summary", type=click.Path(path_type=Path), help="Write a summary as Markdown.")


@contextmanager
def failures() -> Iterator[None]:
    """Show an error that stops a run as one line."""
    try:
        yield
    except (CannotRun, FileUnusable) as error:
        raise CommandFailed(str(error)) from error
