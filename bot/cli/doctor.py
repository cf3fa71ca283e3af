"""`nightjar doctor`: check everything the bot depends on, with a remedy for each failure."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import click
from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli.colors import BAD, GOOD, colored

from bot.app.doctor.doctor import Doctor
from bot.app.doctor.findings import Check, Finding
from bot.app.doctor.texts import SET_KEY
from bot.app.load import load_config
from bot.aws.client import Aws
from bot.cli.support import AS_WRITTEN, config_option, env_file_option, json_option, start_logging, stopping_at_faults
from bot.cli.texts import CORRECT_DATABASE, DATABASE_AWAY, DATABASE_OK, NO_FILE_YET
from bot.config import Config
from bot.config.environment import Settings
from bot.core.http import open_session
from bot.engine.database import DatabaseError
from bot.engine.service import Engine
from bot.engine.sql.errors import DatabaseFailure
from bot.github.app import GitHubApp
from bot.github.repositories.known import Repositories

OK, FAILED = "ok", "FAILED"
STATE_WIDTH = 8


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar doctor
      nightjar doctor --config deploy/app.yaml --json
    """,
)
@config_option
@env_file_option()
@json_option
def doctor(config_path: Path, as_json: bool) -> None:
    """Check App, key, permissions, events, webhook, clock, database, buckets and Jenkins; print a line for each fault.

    Each failure says how to fix it; then the exit status is 1. Works beside a running server, and writes nothing to
    GitHub, buckets or Jenkins.
    """
    with stopping_at_faults():
        config, settings = load_config(config_path), Settings.from_environment()
        start_logging(settings)
        findings = asyncio.run(examine(config, settings))
    if as_json:
        click.echo(json.dumps([finding.as_json() for finding in findings], indent=2))
    else:
        for finding in findings:
            line = escape_controls(line_of(finding))
            state, text = line[:STATE_WIDTH], line[STATE_WIDTH:]
            click.echo(colored(state, GOOD if finding.ok else BAD) + text)
    raise SystemExit(0 if all(finding.ok for finding in findings) else 1)


def line_of(finding: Finding) -> str:
    """Return the line that is printed for a finding."""
    text = finding.text if finding.ok else f"{finding.text.rstrip('.?')}. Remedy: {finding.remedy}"
    return f"{OK if finding.ok else FAILED:{STATE_WIDTH}}{finding.check.value:14}{text}"


async def examine(config: Config, settings: Settings) -> list[Finding]:
    """Run every check once."""
    opened, aws = await _database(settings), Aws(attempts=1)
    database = opened or Finding(Check.DATABASE, NO_FILE_YET)
    try:
        async with open_session() as http:
            key = settings.private_key.get_secret_value()
            try:
                app = GitHubApp(http, app_id=settings.app_id, private_key=key, api_url=settings.api_url)
            except ValueError as error:
                return [database, Finding(Check.KEY, str(error).partition(":")[0], SET_KEY)]
            if opened is None or not opened.ok:
                return [database, *await Doctor(config, settings, app, http, aws).examine()]
            async with Engine(settings.database_url.get_secret_value()) as engine:
                repositories = Repositories(config, engine.records, engine.release_waiting)
                return [database, *await Doctor(config, settings, app, http, aws, repositories).examine()]
    finally:
        aws.close()


async def _database(settings: Settings) -> Finding | None:
    """Open the database; None if its file is missing. It is not created: it must belong to the user of `serve`."""
    try:
        engine = Engine(settings.database_url.get_secret_value())
    except DatabaseError as error:
        return _database_away(error)
    try:
        engine.database.must_exist()
    except DatabaseError:
        return None
    try:
        async with engine:
            await engine.backlog()
            return Finding(Check.DATABASE, DATABASE_OK.format(name=engine.database.name))
    except (DatabaseError, DatabaseFailure) as error:
        return _database_away(error)


def _database_away(error: Exception) -> Finding:
    # Only the type of a driver error: its text may quote stored data.
    text = str(error) if isinstance(error, DatabaseError) else DATABASE_AWAY.format(kind=type(error).__name__)
    return Finding(Check.DATABASE, " ".join(text.split()), CORRECT_DATABASE)
