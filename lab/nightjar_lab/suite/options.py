"""Options that several commands of `nightjar-lab suite` have."""

from __future__ import annotations

import re  # noqa: TID251  # patterns of the person who runs the suite, over names of cases
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nightjar_lab.cli.errors import CommandFailed
from nightjar_lab.suite import texts
from nightjar_lab.suite.discovery import NotAvailable
from nightjar_lab.suite.result_file import FileUnusable
from nightjar_lab.suite.runner import CannotRun

MEMORY = 4096
"""MB that the process of a case may use."""


# It is generic since click 8.3, which has left Python 3.9.
if TYPE_CHECKING:
    PatternType = click.ParamType[re.Pattern[str]]
else:
    PatternType = click.ParamType


class RegularExpression(PatternType):
    """A regular expression of Python."""

    name = "regex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        """Return the expression, or fail as click does."""
        try:
            return re.compile(value)  # noqa: TID251
        except re.error as error:
            self.fail(texts.INVALID_REGEX.format(value=value, reason=error), param, ctx)


REGEX = RegularExpression()

flow_option = click.option("--flow", required=True, help="A flow of `suite list`, or MODULE:NAME.")
suite_option = click.option("--suite", required=True, help="A suite of `suite list`, or MODULE:NAME.")
flows_option = click.option("--flow", "flows", multiple=True, help=texts.FLOW_HELP)
backends_option = click.option("--backend", "backends", multiple=True, help=texts.BACKEND_HELP)
suites_option = click.option("--suite", "suites", multiple=True, help=texts.SUITE_HELP)
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
    except (CannotRun, FileUnusable, NotAvailable) as error:
        raise CommandFailed(str(error)) from error
