"""`nightjar deliveries` and `nightjar replay`: what came in, what was done about it, and doing it again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from bot.app.serve import open_bot, start_logging
from bot.cli.engine import reading_engine, working_engine
from bot.cli.replay import TIME_SPAN, Wanted, replay_failed
from bot.cli.support import AS_WRITTEN, REPOSITORY, config_option, is_free, json_option, stopping_at_faults
from bot.config import load_config
from bot.config.environment import Settings
from bot.config.types import seconds
from bot.core.terminal import printable, table
from bot.engine.database import Database
from bot.engine.journal import DONE, FAILED, DeliveryRecord, JobState, Stage
from bot.engine.notes import REFUSED
from bot.engine.replay import known

NOTHING = "no deliveries"
NOTHING_FAILED = "no failed deliveries"
STILL_GOING_ON = "not done after {seconds} s; it goes on where a server runs, and `nightjar deliveries` shows it"
ONE_OF_BOTH = "name one delivery by its GUID, or all that have failed by --failed"
HEADERS = ("RECEIVED", "DELIVERY", "EVENT", "ABOUT", "STATE", "WHAT")
PATIENCE = 60.0
"""Seconds that `replay` waits unless told otherwise."""


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar deliveries
      nightjar deliveries --failed
      nightjar deliveries --limit 200 --json
    """,
)
@click.option("--failed", is_flag=True, help="Only those of which something has failed for good.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many, at most.")
@json_option
def deliveries(failed: bool, limit: int, as_json: bool) -> None:
    """List what came in and what was done about it, the newest first.

    Works beside a running server; only DATABASE_URL is needed.
    """
    with stopping_at_faults():
        records = asyncio.run(_recent(limit, failed))
    if as_json:
        click.echo(json.dumps([record.as_json() for record in records], indent=2))
    elif records:
        click.echo(table(HEADERS, [_row(record) for record in records]))
    else:
        click.echo(NOTHING_FAILED if failed else NOTHING)


async def _recent(limit: int, failed: bool) -> Sequence[DeliveryRecord]:
    async with reading_engine() as engine:
        return await engine.journal.recent(limit, failed=failed)


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar replay 0b989ba4-242f-11e5-81e1-c7b6966d2516
      nightjar replay 0b989ba4-242f-11e5-81e1-c7b6966d2516 --dry-run
      nightjar replay --failed --since 2h --repo octocat/compiler --dry-run
      nightjar replay --failed --since 3d --pace 30
    """,
)
@click.argument("guid", required=False)
@click.option("--failed", is_flag=True, help="In place of GUID: every delivery of which something has failed.")
@click.option(
    "--since", type=TIME_SPAN, default="1d", show_default=True, help="With --failed: failed within this time."
)
@click.option("--repo", "repository", type=REPOSITORY, default=None, help="With --failed: about this repository alone.")
@click.option(
    "--pace",
    type=click.FloatRange(1, 6000),
    default=60,
    show_default=True,
    help="With --failed: how many to begin in a minute.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be planned now, or which have failed; write nothing.")
@click.option("--timeout", type=click.FloatRange(0), default=PATIENCE, show_default=True, help="Seconds to wait.")
@config_option
@json_option
def replay(
    guid: str | None,
    failed: bool,
    since: str,
    repository: str | None,
    pace: float,
    dry_run: bool,
    timeout: float,
    config_path: Path,
    as_json: bool,
) -> None:
    """Do a delivery again: what failed of it, or all of it where nothing did. GUID is as `deliveries` shows it.

    With --failed, do this for all deliveries of which something has failed, the oldest first, such as after an outage.

    What was applied before is found and not repeated. Waits until it is done, by the server that runs on the same
    database, or, on a SQLite file that no server works on, by itself. The exit status is 1 if anything failed.
    """
    if failed is (guid is not None):
        raise click.UsageError(ONE_OF_BOTH)
    if guid is None:
        wanted = Wanted(seconds(since), repository or "", pace, timeout)
        with stopping_at_faults():
            status = replay_failed(wanted, config_path, dry_run=dry_run, as_json=as_json)
        raise SystemExit(status)
    with stopping_at_faults():
        if dry_run:
            plan = asyncio.run(_planned(guid, config_path))
            click.echo(json.dumps(plan, indent=2))
            raise SystemExit(1 if any("error" in one for one in plan["plans"]) else 0)
        record = asyncio.run(_replayed(guid, config_path, timeout))
    if as_json:
        click.echo(json.dumps(record.as_json(), indent=2))
    else:
        click.echo("\n".join(told(record)))
    if not record.settled:
        click.echo(STILL_GOING_ON.format(seconds=f"{timeout:g}"), err=True)
    raise SystemExit(0 if record.settled and record.state != FAILED else 1)


async def _planned(guid: str, config_path: Path) -> dict[str, Any]:
    config, settings = load_config(config_path), Settings.from_environment()
    start_logging(settings)
    # Opening would make the file.
    Database(settings.database_url.get_secret_value()).must_exist()
    async with open_bot(config, settings) as bot:
        return await bot.engine.dry_run(guid)


async def _replayed(guid: str, config_path: Path, patience: float) -> DeliveryRecord:
    """Replay a delivery: a server does the work if there is one, this process if it can have the file alone."""
    async with reading_engine() as engine:
        await known(engine.journal, guid)
        if not is_free(engine.database):
            return await engine.replay(guid, patience=patience, progress=show)
    async with working_engine(config_path) as engine:
        return await engine.replay(guid, patience=patience, progress=show)


def show(record: DeliveryRecord) -> None:
    """Tell whoever waits how far it is."""
    settled = sum(job.settled for job in record.jobs)
    click.echo(f"{record.state}: {settled} of {len(record.jobs)} steps ended", err=True)


def _row(record: DeliveryRecord) -> tuple[str, ...]:
    event = f"{record.event}.{record.action}" if record.action else record.event
    about = f"{record.repository}#{record.number}" if record.number else record.repository
    return (_moment(record.received_at), record.guid, event, about, record.state, _summary(record))


def _summary(record: DeliveryRecord) -> str:
    """Return what an operator wants to know first: why it failed, was refused or ignored, or what was done."""
    failed = [job.text for job in record.jobs if job.state in (FAILED, REFUSED)]
    if failed:
        return "; ".join(dict.fromkeys(failed))
    done = [effect.job.text for plan in record.plans for effect in plan.effects if effect.job.state == DONE]
    reasons = [plan.job.text for plan in record.plans if plan.job.text]
    return "; ".join(dict.fromkeys(done or reasons)) or record.job.text


def told(record: DeliveryRecord) -> Iterator[str]:
    """Yield what became of a delivery, a line for each step, indented by what it came from."""
    event = f"{record.event}.{record.action}" if record.action else record.event
    yield _line(f"{record.guid} {event}", record.job)
    for plan in record.plans:
        yield "  " + _line(plan.handler if plan.stage is Stage.PLAN else f"{plan.stage} of {plan.handler}", plan.job)
        for effect in plan.effects:
            yield "    " + _line(f"{effect.kind} {effect.target}", effect.job)


def _line(name: str, job: JobState) -> str:
    state = job.outcome or job.state if job.settled else job.state
    return printable(f"{name}: {state}: {job.text}" if job.text else f"{name}: {state}")


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
