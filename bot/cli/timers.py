"""`nightjar timer list` and `nightjar timer run`: what a clock starts, how it went, and starting it now."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from gidgethub import GitHubException

from bot.app.serve import Bot, end, open_bot, start_logging
from bot.cli.deliveries import PATIENCE, STILL_GOING_ON, show, told
from bot.cli.support import AS_WRITTEN, config_option, is_free, json_option, stopping_at_faults
from bot.config import Config, load_config
from bot.config.environment import DatabaseSettings, Settings
from bot.core.errors import TryAgain, UserError
from bot.core.terminal import table
from bot.engine.database import Database
from bot.engine.journal import FAILED, DeliveryRecord
from bot.engine.service import Engine
from bot.timers.timers import TimerState, by_hand, repositories_with, timer_states

NOTHING = "app.yaml switches on nothing that has a timer"
HEADERS = ("REPOSITORY", "TIMER", "SCHEDULE", "LAST RUN", "OUTCOME", "NEXT RUN", "REASON")


@click.group()
def timer() -> None:
    """List what a clock starts, or start it now."""


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
def list_timers(config_path: Path, as_json: bool) -> None:
    """List the timers of all repositories: when each ran last and what became of it, and when it runs next.

    Works beside a running server; of the environment only DATABASE_URL is needed.
    """
    with stopping_at_faults():
        states = asyncio.run(_states(config_path))
    if as_json:
        click.echo(json.dumps([_as_json(state) for state in states], indent=2))
    else:
        click.echo(table(HEADERS, [_row(state) for state in states]) if states else NOTHING)


async def _states(config_path: Path) -> Sequence[TimerState]:
    config, settings = load_config(config_path), DatabaseSettings.from_environment()
    start_logging(settings)
    engine = Engine(settings.database_url.get_secret_value())
    engine.database.must_exist()
    async with engine:
        return await timer_states(config, engine.records, engine.journal, time.time())


@timer.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar timer run nightly
      nightjar timer run nightly --repo octocat/compiler --dry-run
    """,
)
@click.argument("name")
@click.option("--repo", help="Only in this repository: OWNER/NAME. Left out: in all that have the timer.")
@click.option("--dry-run", is_flag=True, help="Print as JSON what would be planned now; write nothing.")
@click.option("--timeout", type=click.FloatRange(0), default=PATIENCE, show_default=True, help="Seconds to wait.")
@config_option
@json_option
def run(name: str, repo: str | None, dry_run: bool, timeout: float, config_path: Path, as_json: bool) -> None:
    """Run a timer's job now, and wait until it is done. NAME is as `timer list` shows it.

    The server that runs on the same database does the work, or, on a SQLite file that no server works on, this
    command. A run that is going on is waited for. The exit status is 1 if anything failed.
    """
    with stopping_at_faults():
        if dry_run:
            plans = asyncio.run(_planned(name, repo, config_path))
            click.echo(json.dumps(plans, indent=2))
            raise SystemExit(1 if any("error" in one for plan in plans for one in plan["plans"]) else 0)
        records = asyncio.run(_ran(name, repo, config_path, timeout))
    if as_json:
        click.echo(json.dumps([record.as_json() for record in records], indent=2))
    else:
        click.echo("\n".join(line for record in records for line in told(record)))
    settled = all(record.settled for record in records)
    if not settled:
        click.echo(STILL_GOING_ON.format(seconds=f"{timeout:g}"), err=True)
    raise SystemExit(0 if settled and all(record.state != FAILED for record in records) else 1)


async def _planned(name: str, only: str | None, config_path: Path) -> list[dict[str, Any]]:
    config = load_config(config_path)
    wanted = repositories_with(config, name, only)
    async with _opened(config) as bot:
        return [await bot.engine.preview(await bot.timers.delivery(repository, name)) for repository in wanted]


async def _ran(name: str, only: str | None, config_path: Path, patience: float) -> list[DeliveryRecord]:
    config = load_config(config_path)
    wanted = repositories_with(config, name, only)
    async with _opened(config) as bot, _worker(bot):
        moment = by_hand()
        guids = [await bot.timers.announce(repository, name, moment) for repository in wanted]
        return [await bot.engine.finished(guid, patience=patience, progress=show) for guid in guids]


@asynccontextmanager
async def _opened(config: Config) -> AsyncIterator[Bot]:
    settings = Settings.from_environment()
    start_logging(settings)
    # Opening would make the file.
    Database(settings.database_url.get_secret_value()).must_exist()
    async with open_bot(config, settings) as bot:
        try:
            yield bot
        except (TryAgain, GitHubException) as error:  # which repository it is could not be asked
            raise UserError(str(error)) from None


@asynccontextmanager
async def _worker(bot: Bot) -> AsyncIterator[None]:
    """Work while the block runs, where no server does."""
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
    last = _moment(state.last_run) or "-"
    return (state.repository, state.name, state.schedule, last, state.outcome, _moment(state.next_run), state.reason)


def _as_json(state: TimerState) -> dict[str, Any]:
    moments = {"last_run": _moment(state.last_run, "T") or None, "next_run": _moment(state.next_run, "T")}
    return {**asdict(state), **moments}


def _moment(seconds: float | None, between: str = " ") -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime(f"%Y-%m-%d{between}%H:%M:%SZ")
