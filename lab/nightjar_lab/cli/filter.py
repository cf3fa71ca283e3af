"""`nightjar-lab filter`: print the arguments with which a test tool runs only the tests of a job."""

from __future__ import annotations

import click

from nightjar_lab.cli import texts
from nightjar_lab.cli.errors import CommandFailed
from nightjar_lab.few_tests import FILTERS, named_tests


@click.command("filter")
@click.argument("tool", type=click.Choice(sorted(FILTERS)))
def filter_tests(tool: str) -> None:
    """Print the arguments for TOOL, one a line, that select the tests of NIGHTJAR_TESTS; nothing if all are to run.

    In Bash: mapfile -t filter < <(nightjar-lab filter gtest); ./ops_test "${filter[@]}"
    """
    try:
        tests = named_tests()
    except (OSError, UnicodeError) as error:
        raise CommandFailed(texts.TESTS_UNREADABLE.format(reason=error)) from None
    for argument in FILTERS[tool](tests) if tests else ():
        click.echo(argument)
