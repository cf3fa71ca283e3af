"""`nightjar backup` and `nightjar restore`: copy the SQLite file, also while a server runs, and restore a copy."""

from __future__ import annotations

from pathlib import Path

import click

from bot.cli.support import AS_WRITTEN, env_file_option, stopping_at_faults
from bot.cli.texts import BACKUP_WRITTEN, RESTORED
from bot.config.environment import DatabaseSettings
from bot.engine.backup import back_up
from bot.engine.backup import restore as restore_file
from bot.engine.database import Database


@click.command(
    epilog=f"""{AS_WRITTEN}
    Example:
      nightjar backup /backups/nightjar-$(date +%F).db
    """,
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@env_file_option()
def backup(file: Path) -> None:
    """Back up the SQLite database to FILE, even while a server runs.

    FILE is replaced in one step after the copy is complete and checked. Only DATABASE_URL is needed.
    """
    with stopping_at_faults():
        size = back_up(_database(), file)
    click.echo(BACKUP_WRITTEN.format(target=file, size=size))


@click.command(
    epilog=f"""{AS_WRITTEN}
    Example:
      nightjar restore /backups/nightjar-2026-11-20.db
    """,
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@env_file_option()
def restore(file: Path) -> None:
    """Replace the SQLite database with the backup FILE. Stop the server first.

    FILE is checked first, and is not changed. Only DATABASE_URL is needed.
    """
    with stopping_at_faults():
        database = _database()
        restore_file(database, file)
    click.echo(RESTORED.format(path=database.name, source=file))


def _database() -> Database:
    return Database(DatabaseSettings.from_environment().database_url.get_secret_value())
