"""What the commands have in common: options, and how they end when they cannot begin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from procrastinate.exceptions import ConnectorException

from bot.config import ConfigError
from bot.engine.database import Database, DatabaseError
from bot.errors import UserError
from bot.redaction import Redactor
from bot.serve import AWS_SECRETS, StartError
from bot.settings import SettingsError
from bot.terminal import printable

AS_WRITTEN = "\b"
"""Begins a paragraph of a help text that click must not wrap."""

DATABASE_AWAY = "the database does not answer ({kind})"

SECRET_VARIABLES = ("GITHUB_WEBHOOK_SECRET", "JENKINS_TOKEN", "DISCORD_WEBHOOK_URL", "SLACK_WEBHOOK_URL", *AWS_SECRETS)

config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    default=Path("app.yaml"),
    show_default=True,
    help="The file that maintainers edit.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@contextmanager
def stopping_at_faults() -> Iterator[None]:
    """Print what keeps a command from being done, a line for each fault, and exit with status 1."""
    lines: list[str] = []
    try:
        yield
    except ConfigError as error:
        lines = [str(fault) for fault in error.faults]
    except SettingsError as error:
        lines = list(error.problems)
    except (DatabaseError, StartError, UserError) as error:
        lines = [" ".join(str(error).split())]
    except ConnectorException as error:
        # Its kind alone: a database may quote what was stored.
        lines = [DATABASE_AWAY.format(kind=type(error.__cause__ or error).__name__)]
    if not lines:
        return
    redactor = Redactor(value for name in SECRET_VARIABLES for value in os.environ.get(name, "").split())
    for line in lines:
        click.echo(printable(redactor.text(line)), err=True)
    raise SystemExit(1)


def is_free(database: Database) -> bool:
    """Say whether no server works on a database that is a file; a PostgreSQL database is never free."""
    if not database.embedded:
        return False
    try:
        with database.sole():
            return True
    except DatabaseError:
        return False
