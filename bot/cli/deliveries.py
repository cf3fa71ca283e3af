"""`nightjar deliveries` and `nightjar replay`: list deliveries with their results, and process them again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from nightjar_formats.terminal import escape_controls

from bot.app.load import load_config
from bot.cli.engine import reading_engine, working_engine
from bot.cli.replay import TIME_SPAN, BulkReplay, replay_failed
from bot.cli.support import (
    AS_WRITTEN,
    REPOSITORY,
    config_option,
    env_file_option,
    is_free,
    json_option,
    start_logging,
    stopping_at_faults,
)
from bot.cli.texts import (
    ALL_IGNORED,
    DELIVERY_HEADERS,
    NO_DELIVERIES,
    NO_MATCHING_DELIVERIES,
    ONE_OR_ALL_FAILED,
    PR_WITHOUT_REPOSITORY,
    STEPS_DONE,
    STILL_RUNNING,
)
from bot.config.environment import Settings
from bot.config.types import seconds
from bot.core.terminal import table
from bot.core.utc import iso_utc
from bot.engine.database import Database
from bot.engine.jobs.journal import DONE, FAILED, DeliveryFilter, DeliveryRecord, JobState, PlanStage
from bot.engine.jobs.notes import REFUSED
from bot.engine.replay import stored_record

PATIENCE = 60.0
"""Seconds that `replay` and `timer run` wait by default."""


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar deliveries
      nightjar deliveries --failed
      nightjar deliveries --repo octocat/compiler --pr 42
      nightjar deliveries --event issue_comment --all --limit 200 --json
    """,
)
@click.option("--failed", is_flag=True, help="Only deliveries with a step that failed for good.")
@click.option("--repo", "repository", type=REPOSITORY, help="Only deliveries about this repository.")
@click.option("--pr", "number", type=click.IntRange(1), help="Only those about this pull request or issue of --repo.")
@click.option("--event", default="", help="Only this event: push, or with its action issue_comment.created.")
@click.option("--all", "ignored", is_flag=True, help="Also list ignored deliveries.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many, at most.")
@json_option
@env_file_option()
def deliveries(
    failed: bool, repository: str | None, number: int | None, event: str, ignored: bool, limit: int, as_json: bool
) -> None:
    """List deliveries and what the bot did for each, newest first.

    The table fits the terminal: long summaries are cut, and --json has all of it. Works beside a running server; only
    DATABASE_URL is needed.
    """
    if number is not None and not repository:
        raise click.UsageError(PR_WITHOUT_REPOSITORY)
    delivery_filter = DeliveryFilter(failed, repository or "", number, event, ignored)
    with stopping_at_faults():
        records = asyncio.run(_recent(limit, delivery_filter))
    if as_json:
        click.echo(json.dumps([record.as_json() for record in records], indent=2))
    elif records:
        # A pipe or a file gets the whole text: nobody can widen those to read the rest.
        fits = sys.stdout.isatty() or "COLUMNS" in os.environ
        width = shutil.get_terminal_size().columns if fits else None
        click.echo(table(DELIVERY_HEADERS, [_row(record) for record in records], width=width))
    elif delivery_filter == DeliveryFilter(ignored=ignored):
        click.echo(NO_DELIVERIES if ignored else ALL_IGNORED)
    else:
        click.echo(NO_MATCHING_DELIVERIES)


async def _recent(limit: int, delivery_filter: DeliveryFilter) -> Sequence[DeliveryRecord]:
    async with reading_engine() as engine:
        return await engine.journal.matching(limit, delivery_filter)


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
@click.option("--failed", is_flag=True, help="Instead of GUID: every delivery with a step that failed.")
@click.option(
    "--since", type=TIME_SPAN, default="1d", show_default=True, help="With --failed: only failures within this time."
)
@click.option("--repo", "repository", type=REPOSITORY, default=None, help="With --failed: only this repository.")
@click.option(
    "--pace",
    type=click.FloatRange(1, 6000),
    default=60,
    show_default=True,
    help="With --failed: how many to start per minute.",
)
@click.option("--dry-run", is_flag=True, help="Print the plan as JSON, or with --failed the list; write nothing.")
@click.option("--timeout", type=click.FloatRange(0), default=PATIENCE, show_default=True, help="Seconds to wait.")
@config_option
@json_option
@env_file_option()
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
    """Process a delivery again: its failed steps, or all of it if nothing failed. `deliveries` shows GUIDs.

    With --failed, replay all deliveries with failed steps, oldest first, such as after an outage.

    Writes that were made before are found and not repeated. A server on the same database does the work; on a SQLite
    file without a server this command does. It waits until the work is done. The exit status is 1 if anything failed.
    """
    if failed is (guid is not None):
        raise click.UsageError(ONE_OR_ALL_FAILED)
    if guid is None:
        replay = BulkReplay(seconds(since), repository or "", pace, timeout)
        with stopping_at_faults():
            status = replay_failed(replay, config_path, dry_run=dry_run, as_json=as_json)
        raise SystemExit(status)
    with stopping_at_faults():
        if dry_run:
            plan = asyncio.run(_preview(guid, config_path))
            click.echo(json.dumps(plan, indent=2))
            raise SystemExit(1 if any("error" in handler_plan for handler_plan in plan["plans"]) else 0)
        record = asyncio.run(_replay(guid, config_path, timeout))
    if as_json:
        click.echo(json.dumps(record.as_json(), indent=2))
    else:
        click.echo("\n".join(steps_of(record)))
    if not record.settled:
        click.echo(STILL_RUNNING.format(seconds=f"{timeout:g}"), err=True)
    raise SystemExit(0 if record.settled and record.state != FAILED else 1)


async def _preview(guid: str, config_path: Path) -> dict[str, Any]:
    from bot.app.serve import open_bot

    config, settings = load_config(config_path), Settings.from_environment()
    start_logging(settings)
    # Opening the database would create the file.
    Database(settings.database_url.get_secret_value()).must_exist()
    async with open_bot(config, settings) as bot:
        return await bot.engine.dry_run(guid)


async def _replay(guid: str, config_path: Path, patience: float) -> DeliveryRecord:
    """Replay a delivery: a server does the work if there is one, this process if it can have the file alone."""
    async with reading_engine() as engine:
        await stored_record(engine.journal, guid)
        if not is_free(engine.database):
            return await engine.replay(guid, patience=patience, progress=ProgressPrinter())
    async with working_engine(config_path) as engine:
        return await engine.replay(guid, patience=patience, progress=ProgressPrinter())


class ProgressPrinter:
    """Print how far a delivery is, each line once."""

    def __init__(self) -> None:
        self._printed = ""

    def __call__(self, record: DeliveryRecord) -> None:
        """Print the progress if it has changed."""
        done = sum(job.settled for job in record.jobs)
        line = STEPS_DONE.format(state=record.state, done=done, count=len(record.jobs))
        if line != self._printed:
            click.echo(line, err=True)
        self._printed = line


def _row(record: DeliveryRecord) -> tuple[str, ...]:
    event = f"{record.event}.{record.action}" if record.action else record.event
    subject = f"{record.repository}#{record.number}" if record.number else record.repository
    return (iso_utc(record.received_at), record.guid, event, subject, record.state, _summary(record))


def _summary(record: DeliveryRecord) -> str:
    """Return why a delivery failed, was refused or ignored, otherwise what the bot did."""
    failed = [job.text for job in record.jobs if job.state in (FAILED, REFUSED)]
    if failed:
        return "; ".join(dict.fromkeys(failed))
    done = [effect.job.text for plan in record.plans for effect in plan.effects if effect.job.state == DONE]
    reasons = [plan.job.text for plan in record.plans if plan.job.text]
    return "; ".join(dict.fromkeys(done or reasons)) or record.job.text


def steps_of(record: DeliveryRecord) -> Iterator[str]:
    """Yield a line for each step of a delivery with its state, indented below the step that caused it."""
    event = f"{record.event}.{record.action}" if record.action else record.event
    yield _line(f"{record.guid} {event}", record.job)
    for plan in record.plans:
        yield "  " + _line(
            plan.handler if plan.stage is PlanStage.PLAN else f"{plan.stage} of {plan.handler}", plan.job
        )
        for effect in plan.effects:
            yield "    " + _line(f"{effect.kind} {effect.target}", effect.job)


def _line(name: str, job: JobState) -> str:
    state = job.outcome or job.state if job.settled else job.state
    return escape_controls(f"{name}: {state}: {job.text}" if job.text else f"{name}: {state}")
