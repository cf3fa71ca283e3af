"""`nightjar backup` and `nightjar restore`: copy the SQLite file beside a running server, and put a copy back."""

from __future__ import annotations

from pathlib import Path

import click

from bot.cli.support import AS_WRITTEN, stopping_at_faults
from bot.config.environment import DatabaseSettings
from bot.engine.backup import back_up
from bot.engine.backup import restore as restore_file
from bot.engine.database import Database

WRITTEN = "{target}: {size} bytes, checked"
RESTORED = "{path} is {source} now; start the server"


@click.command(
    epilog=f"""{AS_WRITTEN}
    Example:
      nightjar backup /backups/nightjar-$(date +%F).db
    """,
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def backup(file: Path) -> None:
    """Write a copy of the SQLite database to FILE, while a server works on it or not.

    FILE is replaced in one step once the copy is whole and was checked. Only DATABASE_URL is needed.
    """
    with stopping_at_faults():
        size = back_up(_database(), file)
    click.echo(WRITTEN.format(target=file, size=size))


@click.command(
    epilog=f"""{AS_WRITTEN}
    Example:
      nightjar restore /backups/nightjar-2026-11-20.db
    """,
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def restore(file: Path) -> None:
    """Put the backup FILE in the place of the SQLite database. Stop the server first.

    FILE is checked before anything changes, and stays where it is. Only DATABASE_URL is needed.
    """
    with stopping_at_faults():
        database = _database()
        restore_file(database, file)
    click.echo(RESTORED.format(path=database.name, source=file))


def _database() -> Database:
    return Database(DatabaseSettings.from_environment().database_url.get_secret_value())
