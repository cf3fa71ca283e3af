"""`nightjar database copy`: move from SQLite to PostgreSQL."""

from __future__ import annotations

import asyncio
import os

import click

from bot.app.database_copy import copy_database, naming_argument
from bot.cli.support import AS_WRITTEN, env_file_option, start_logging, stopping_at_faults
from bot.cli.texts import COPIED, COPIED_TABLE
from bot.config.environment import DatabaseSettings
from bot.core.listing import counted


@click.group()
def database() -> None:
    """Move the database to another place."""


@database.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar database copy sqlite:///nightjar.db postgresql://nightjar@db.example.org/nightjar
      DATABASE_URL=postgresql://… nightjar database copy sqlite:////var/lib/nightjar/nightjar.db
    """,
)
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="[TO]", required=False)
@env_file_option()
def copy(source: str, target: str | None) -> None:
    """Copy the SQLite database FROM into the empty PostgreSQL database TO. Stop the server first.

    TO defaults to DATABASE_URL, so that its password need not be on the command line. FROM keeps its rows. The numbers
    of rows are compared in the end. After an interruption, the same command goes on where it was. A database that has
    rows, or that a server uses, is refused.
    """
    with stopping_at_faults():
        origin, goal = _settings("FROM", source), _settings("TO", target)
        start_logging(goal)
        source_url, target_url = origin.database_url.get_secret_value(), goal.database_url.get_secret_value()
        rows = asyncio.run(copy_database(source_url, target_url, _report))
    click.echo(COPIED.format(rows=counted(sum(rows.values()), "row"), tables=len(rows)))


def _settings(name: str, url: str | None) -> DatabaseSettings:
    """Return the settings for the database of an argument, or of DATABASE_URL. Raises SettingsError, which names it."""
    if url is None:
        return DatabaseSettings.from_environment(os.environ)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DATABASE_URL")}
    with naming_argument(name):
        return DatabaseSettings.from_environment({**environment, "DATABASE_URL": url})


def _report(table: str, rows: int) -> None:
    click.echo(COPIED_TABLE.format(table=table, rows=counted(rows, "row")), err=True)
