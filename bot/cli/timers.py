"""`nightjar timer list` and `nightjar timer run`: show timers with their last runs, and run one now."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from gidgethub import GitHubException

from bot.app.load import load_config
from bot.cli.deliveries import PATIENCE, ProgressPrinter, steps_of
from bot.cli.support import (
    AS_WRITTEN,
    config_option,
    env_file_option,
    is_free,
    json_option,
    start_logging,
    stopping_at_faults,
)
from bot.cli.texts import NO_TIMERS, STILL_RUNNING, TIMER_HEADERS
from bot.config import Config
from bot.config.environment import DatabaseSettings, Settings
from bot.core.errors import TryAgain, UserError
from bot.core.terminal import table
from bot.core.utc import iso_utc_or_none
from bot.engine.database import Database
from bot.engine.jobs.journal import FAILED, DeliveryRecord
from bot.engine.service import Engine
from bot.github.repositories.matching import load_matching
from bot.timers.timers import TimerState, manual_run, repositories_with, timer_states

if TYPE_CHECKING:
    from bot.app.serve import Bot


@click.group()
def timer() -> None:
    """List timers, or run one now."""


@timer.command(
    "list",
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar timer list
      nightjar timer list --json
    """,
)
@config_option
@json_option
@env_file_option()
def list_timers(config_path: Path, as_json: bool) -> None:
    """List the timers of all repositories: the last run with its outcome, and the next run.

    Works beside a running server; of the environment only DATABASE_URL is needed.
    """
    with stopping_at_faults():
        states = asyncio.run(_states(config_path))
    if as_json:
        click.echo(json.dumps([_as_json(state) for state in states], indent=2))
    else:
        click.echo(table(TIMER_HEADERS, [_row(state) for state in states]) if states else NO_TIMERS)


async def _states(config_path: Path) -> Sequence[TimerState]:
    config, settings = load_config(config_path), DatabaseSettings.from_environment()
    start_logging(settings)
    engine = Engine(settings.database_url.get_secret_value())
    engine.database.must_exist()
    async with engine:
        await load_matching(config, engine.records)
        return await timer_states(config, engine.records, engine.journal, time.time())


@timer.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar timer run nightly
      nightjar timer run nightly --repo octocat/compiler --dry-run
    """,
)
@click.argument("name")
@click.option("--repo", help="Only this repository, OWNER/NAME. Default: all that have the timer.")
@click.option("--dry-run", is_flag=True, help="Print the plan as JSON; write nothing.")
@click.option("--timeout", type=click.FloatRange(0), default=PATIENCE, show_default=True, help="Seconds to wait.")
@config_option
@json_option
@env_file_option()
def run(name: str, repo: str | None, dry_run: bool, timeout: float, config_path: Path, as_json: bool) -> None:
    """Run a timer now, and wait until it is done. `timer list` shows the names.

    A server on the same database does the work; on a SQLite file without a server this command does. If the timer is
    running already, wait for that run. The exit status is 1 if anything failed.
    """
    with stopping_at_faults():
        if dry_run:
            plans = asyncio.run(_preview(name, repo, config_path))
            click.echo(json.dumps(plans, indent=2))
            raise SystemExit(
                1 if any("error" in handler_plan for plan in plans for handler_plan in plan["plans"]) else 0
            )
        records = asyncio.run(_run_timers(name, repo, config_path, timeout))
    if as_json:
        click.echo(json.dumps([record.as_json() for record in records], indent=2))
    else:
        click.echo("\n".join(line for record in records for line in steps_of(record)))
    settled = all(record.settled for record in records)
    if not settled:
        click.echo(STILL_RUNNING.format(seconds=f"{timeout:g}"), err=True)
    raise SystemExit(0 if settled and all(record.state != FAILED for record in records) else 1)


async def _preview(name: str, only: str | None, config_path: Path) -> list[dict[str, Any]]:
    config = load_config(config_path)
    async with _open_bot(config) as bot:
        repositories = repositories_with(config, name, only)
        return [await bot.engine.preview(await bot.timers.delivery(repository, name)) for repository in repositories]


async def _run_timers(name: str, only: str | None, config_path: Path, patience: float) -> list[DeliveryRecord]:
    config = load_config(config_path)
    async with _open_bot(config) as bot:
        repositories = repositories_with(config, name, only)
        async with _worker(bot):
            moment = manual_run()
            guids = [await bot.timers.announce(repository, name, moment) for repository in repositories]
            return [await bot.engine.finished(guid, patience=patience, progress=ProgressPrinter()) for guid in guids]


@asynccontextmanager
async def _open_bot(config: Config) -> AsyncIterator[Bot]:
    from bot.app.serve import open_bot

    settings = Settings.from_environment()
    start_logging(settings)
    # Opening the database would create the file.
    Database(settings.database_url.get_secret_value()).must_exist()
    async with open_bot(config, settings) as bot:
        try:
            yield bot
        except (TryAgain, GitHubException) as error:  # GitHub did not return the ID of the repository
            raise UserError(str(error)) from None


@asynccontextmanager
async def _worker(bot: Bot) -> AsyncIterator[None]:
    """Run jobs in this process while the block runs, unless a server may use the database."""
    from bot.app.serve import end

    if not is_free(bot.engine.database):
        yield
        return
    await bot.engine.recover()
    worker = asyncio.create_task(bot.engine.run(), name="engine")
    try:
        yield
    finally:
        await end(bot.engine, worker)


def _row(state: TimerState) -> tuple[str, ...]:
    last, upcoming = (iso_utc_or_none(moment) or "-" for moment in (state.last_run, state.next_run))
    return (state.repository, state.name, state.schedule, last, state.outcome, upcoming, state.reason)


def _as_json(state: TimerState) -> dict[str, Any]:
    return {
        **asdict(state),
        "last_run": iso_utc_or_none(state.last_run),
        "next_run": iso_utc_or_none(state.next_run),
    }
