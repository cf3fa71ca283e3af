"""`nightjar doctor`: is everything as it must be, and what to do about what is not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import aiohttp
import click
from procrastinate.exceptions import ConnectorException

from bot.app.doctor.doctor import Doctor
from bot.app.doctor.findings import Check, Finding
from bot.app.doctor.github import SET_KEY
from bot.app.serve import start_logging
from bot.aws.client import Aws
from bot.cli.support import AS_WRITTEN, DATABASE_AWAY, config_option, json_option, stopping_at_faults
from bot.config import Config, load_config
from bot.config.environment import Settings
from bot.core.terminal import printable
from bot.engine.database import DatabaseError
from bot.engine.service import Engine
from bot.github.app import GitHubApp
from bot.github.repositories import Repositories

DATABASE_IS_FINE = "{name} answers"
NO_FILE_YET = "the file that DATABASE_URL names is missing; `nightjar serve` makes it"
CORRECT_DATABASE = "correct DATABASE_URL, or start the database"
OK, FAILED = "ok", "FAILED"


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar doctor
      nightjar doctor --config deploy/app.yaml --json
    """,
)
@config_option
@json_option
def doctor(config_path: Path, as_json: bool) -> None:
    """Check App, key, permissions, events, webhook, clock, database, buckets and Jenkins: one line each.

    What fails has a remedy behind it, and the exit status is 1. Works beside a running server, and writes nothing to
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
            click.echo(printable(line_of(finding)))
    raise SystemExit(0 if all(finding.ok for finding in findings) else 1)


def line_of(finding: Finding) -> str:
    """Return the line that people see."""
    text = finding.text if finding.ok else f"{finding.text}. Remedy: {finding.remedy}"
    return f"{OK if finding.ok else FAILED:8}{finding.check.value:14}{text}"


async def examine(config: Config, settings: Settings) -> list[Finding]:
    """Run every check once, in a process of its own."""
    database, aws = await _database(settings), Aws(attempts=1)
    try:
        async with aiohttp.ClientSession() as http:
            key = settings.private_key.get_secret_value()
            try:
                app = GitHubApp(http, app_id=settings.app_id, private_key=key, api_url=settings.api_url)
            except ValueError as error:
                return [database, Finding(Check.KEY, str(error).partition(":")[0], SET_KEY)]
            if not database.ok or database.text == NO_FILE_YET:
                return [database, *await Doctor(config, settings, app, http, aws).examine()]
            async with Engine(settings.database_url.get_secret_value()) as engine:
                known = Repositories(config, engine.records)
                return [database, *await Doctor(config, settings, app, http, aws, known).examine()]
    finally:
        aws.close()


async def _database(settings: Settings) -> Finding:
    """Open the database; a file that is missing is left to `nightjar serve`, whose user it is to belong to."""
    try:
        engine = Engine(settings.database_url.get_secret_value())
    except DatabaseError as error:
        return _database_away(error)
    try:
        engine.database.must_exist()
    except DatabaseError:
        return Finding(Check.DATABASE, NO_FILE_YET)
    try:
        async with engine:
            await engine.backlog()
            return Finding(Check.DATABASE, DATABASE_IS_FINE.format(name=engine.database.name))
    except (DatabaseError, ConnectorException) as error:
        return _database_away(error)


def _database_away(error: Exception) -> Finding:
    # Of an error of the driver its kind alone: it may quote what was stored.
    text = str(error) if isinstance(error, DatabaseError) else DATABASE_AWAY.format(kind=type(error).__name__)
    return Finding(Check.DATABASE, " ".join(text.split()), CORRECT_DATABASE)
