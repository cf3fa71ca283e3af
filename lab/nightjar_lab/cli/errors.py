"""Report errors of commands: one line that says what is wrong and what to do, and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click

from nightjar_formats.errors import TryAgain, UserError
from nightjar_formats.terminal import escape_controls
from nightjar_lab.api import BotRefused, BotUnavailable
from nightjar_lab.cli import texts
from nightjar_lab.cli.colors import BAD, colored


class CommandFailed(click.ClickException):
    """The command failed: its text is printed as one line, and the exit status is 1."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the text to standard error."""
        text = colored(escape_controls(" ".join(self.message.split())), BAD)
        click.echo(text, file=file, err=file is None)


class BadSettings(CommandFailed):
    """An option, a variable or a file that the user gives is missing or wrong: the exit status is 2."""

    exit_code = 2


def needed(value: Any, option: str, variable: str, description: str) -> Any:
    """Return a required value; if it is missing, raise `BadSettings`, which names the option and the variable."""
    if value in (None, "", ()):
        setting = texts.OR_VARIABLE.format(option=option, variable=variable) if variable else option
        raise BadSettings(texts.MISSING.format(named=setting, what=description))
    return value


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Print an expected error as one line and exit with status 1; let any other error through."""
    try:
        yield
    except (UserError, TryAgain, BotUnavailable, BotRefused) as error:
        raise CommandFailed(str(error)) from None
