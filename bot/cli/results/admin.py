"""`nightjar results ingest`, `rebuild` and `runs`: what operators run by hand."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from nightjar_formats.terminal import escape_controls
from nightjar_lab.cli.options import SHA

from bot.app.load import load_config
from bot.app.serve import Bot, open_bot
from bot.cli.results import texts
from bot.cli.support import (
    AS_WRITTEN,
    config_option,
    env_file_option,
    is_free,
    json_option,
    start_logging,
    stopping_at_faults,
)
from bot.config import Config
from bot.config.environment import DatabaseSettings, Settings
from bot.core.errors import TryAgain, UserError
from bot.core.patterns import Pattern
from bot.core.terminal import table
from bot.engine.database import Database
from bot.results.service import RESULTS
from bot.results.settings.results import Results
from bot.results.state import Run, RunState
from bot.results.store.lists.run_lists import list_runs
from bot.results.store.store import ResultsStore
from handlers.results.admin import GOOD, FoundRun, IngestOutcome, ResultsAdmin, in_bucket, in_folder
from handlers.results.config import LAB_RESULTS

PATIENCE = 60.0
"""Seconds to wait for check runs unless `--timeout` says otherwise."""
_S3_URL = Pattern(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(.*))?", dot_is_any=True)

IngestOne = Callable[[FoundRun], Awaitable[IngestOutcome]]

timeout_option = click.option(
    "--timeout", type=click.FloatRange(0), default=PATIENCE, show_default=True, help="Seconds to wait for check runs."
)


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results ingest uploads/
      nightjar results ingest s3://device-results/results/octocat/compiler/example-lab/
    """,
)
@click.argument("places", metavar="PATH_OR_S3_URL...", nargs=-1, required=True)
@timeout_option
@config_option
@json_option
@env_file_option()
def ingest(places: tuple[str, ...], timeout: float, config_path: Path, as_json: bool) -> None:
    """Ingest runs from a folder that is laid out as the bucket is, or from a key prefix in S3.

    Runs are checked as the server checks them, except for the lab's quota. A run that was refused is checked again.
    Works beside a running server, which writes the check runs. The exit status is 1 if a run was not stored.
    """
    with stopping_at_faults():
        outcomes = asyncio.run(_ingest(places, timeout, config_path, as_json))
    _end(outcomes, as_json)


async def _ingest(places: Sequence[str], patience: float, config_path: Path, quiet: bool) -> list[IngestOutcome]:
    async with _open_admin(config_path, patience) as (bot, admin, outcomes):
        for place in places:
            ingested = [outcome async for outcome in _each(_runs_in(place, bot), admin.ingest, quiet)]
            if not ingested:
                raise UserError(texts.NOTHING_THERE.format(place=place))
            outcomes += ingested
    return outcomes


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results rebuild
      nightjar results rebuild --repo octocat/compiler --json
    """,
)
@click.option(
    "--repo", "--repository", "repository", help="Only this repository: OWNER/NAME. Default: all that have results."
)
@timeout_option
@config_option
@json_option
@env_file_option()
def rebuild(repository: str | None, timeout: float, config_path: Path, as_json: bool) -> None:
    """Ingest every run in the bucket again, into an empty database or one that has them.

    Stored facts about commits are left as they are, and refused runs stay refused. A run that is no longer in the
    bucket stays stored. The exit status is 1 if a run could not be read.
    """
    with stopping_at_faults():
        outcomes = asyncio.run(_rebuild(repository, timeout, config_path, as_json))
    _end([outcome for outcome in outcomes if outcome.state != RunState.REFUSED], as_json, listed_outcomes=outcomes)


async def _rebuild(only: str | None, patience: float, config_path: Path, quiet: bool) -> list[IngestOutcome]:
    async with _open_admin(config_path, patience) as (bot, admin, outcomes):
        for name, results in _repositories(bot.config, only).items():
            source = bot.services.part(RESULTS).source_for(results.store)
            runs = in_bucket(source, f"{results.prefix}{name}/", bot.config)
            ingested = [outcome async for outcome in _each(runs, admin.rebuild, quiet)]
            for key in await admin.missing(name, {outcome.key for outcome in ingested if outcome.key is not None}):
                click.echo(escape_controls(texts.NOT_IN_BUCKET.format(folder=key.folder)), err=True)
            outcomes += ingested
    return outcomes


@click.command(
    epilog=f"""{AS_WRITTEN}
    Examples:
      nightjar results runs
      nightjar results runs --lab example-lab --state refused --json
    """,
)
@click.option("--repo", "--repository", "repository", help="Only this repository: OWNER/NAME.")
@click.option("--lab", help="Only of this lab.")
@click.option("--target", help="Only of this target.")
@click.option("--sha", type=SHA, help="Only of this commit.")
@click.option("--state", type=click.Choice([state.value for state in RunState]), help="Only in this state.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many, at most.")
@json_option
@env_file_option()
def runs(limit: int, as_json: bool, state: str | None, **only: str | None) -> None:
    """List runs and their states, newest first.

    Works beside a running server; only DATABASE_URL is needed.
    """
    with stopping_at_faults():
        listed = _list_runs(RunState(state) if state else None, limit, only)
    if as_json:
        click.echo(json.dumps([_as_json(run) for run in listed], indent=2))
    else:
        click.echo(table(texts.RUNS_HEADER, [_row(run) for run in listed]) if listed else texts.NO_RUNS)


def _list_runs(state: RunState | None, limit: int, only: Mapping[str, str | None]) -> list[Run]:
    settings = DatabaseSettings.from_environment()
    start_logging(settings)
    url = settings.database_url.get_secret_value()
    Database(url).must_exist()
    store = ResultsStore(url)
    store.open()
    try:
        return store.read(
            list_runs,
            only["repository"],
            lab=only["lab"],
            target=only["target"],
            sha=only["sha"],
            state=state,
            limit=limit,
        )
    finally:
        store.close()


@asynccontextmanager
async def _open_admin(
    config_path: Path, patience: float
) -> AsyncIterator[tuple[Bot, ResultsAdmin, list[IngestOutcome]]]:
    """Open the bot; at the end, schedule the check runs of the outcomes that were put into the list."""
    config, settings = load_config(config_path), Settings.from_environment()
    start_logging(settings)
    async with open_bot(config, settings) as bot:
        admin = ResultsAdmin(bot.services)
        outcomes: list[IngestOutcome] = []
        yield bot, admin, outcomes
        await _publish(bot, admin, outcomes, patience)


def _runs_in(place: str, bot: Bot) -> AsyncIterator[FoundRun]:
    if not place.startswith("s3:"):
        return in_folder(Path(place), bot.config)
    matched = _S3_URL.fullmatch(place)
    if matched is None:
        raise UserError(texts.NOT_AN_S3_URL.format(url=place))
    return in_bucket(bot.services.part(RESULTS).source_for(matched[1]), matched[2] or "", bot.config)


async def _each(runs: AsyncIterator[FoundRun], ingest_one: IngestOne, quiet: bool) -> AsyncIterator[IngestOutcome]:
    """Ingest runs one after the other, and print each outcome at once."""
    try:
        async for run in runs:
            outcome = await ingest_one(run)
            # With --json, standard output is one JSON text and nothing else.
            click.echo(_line(outcome), err=quiet)
            yield outcome
    except TryAgain as error:
        raise UserError(str(error)) from None


async def _publish(bot: Bot, admin: ResultsAdmin, outcomes: Sequence[IngestOutcome], patience: float) -> None:
    """Schedule the check runs, and wait for them if a server may be running."""
    stored = [outcome.key for outcome in outcomes if outcome.key is not None and outcome.state in GOOD]
    if not stored:
        return
    await admin.announce(stored)
    if is_free(bot.engine.database):
        click.echo(texts.WITH_A_SERVER, err=True)
        return
    done = await admin.published(stored, patience)
    click.echo(texts.PUBLISHED if done else texts.NOT_PUBLISHED.format(seconds=patience), err=True)


def _repositories(config: Config, only: str | None) -> dict[str, Results]:
    with_results = config.configured.with_feature(LAB_RESULTS)
    chosen = {name: results for name, results in with_results if only is None or name.lower() == only.lower()}
    if not chosen:
        raise UserError(texts.UNKNOWN_REPOSITORY.format(repository=only) if only else texts.NO_REPOSITORIES)
    return chosen


def _end(
    outcomes: Sequence[IngestOutcome], as_json: bool, listed_outcomes: Sequence[IngestOutcome] | None = None
) -> None:
    """Print the totals, or everything as JSON, and exit: with 1 unless all of `outcomes` are good."""
    listed_outcomes = outcomes if listed_outcomes is None else listed_outcomes
    if as_json:
        values = [
            {**asdict(outcome), "key": asdict(outcome.key) if outcome.key else None} for outcome in listed_outcomes
        ]
        click.echo(json.dumps(values, indent=2))
    else:
        counts = Counter(outcome.state for outcome in listed_outcomes)
        click.echo(", ".join(f"{count:,} {state}" for state, count in counts.items()) or texts.NO_RUNS)
    raise SystemExit(0 if all(outcome.good for outcome in outcomes) else 1)


def _line(outcome: IngestOutcome) -> str:
    text = texts.OUTCOME_WHY if outcome.reason else texts.OUTCOME
    return escape_controls(text.format(place=outcome.place, state=outcome.state, reason=outcome.reason))


def _row(run: Run) -> tuple[str, ...]:
    moment = datetime.fromtimestamp(run.received_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    key, suite = run.key, run.claims.suite if run.claims else ""
    return (moment, key.repository, key.lab, key.target, key.sha[:10], key.run_id, suite, run.state.value, run.reason)


def _as_json(run: Run) -> dict[str, Any]:
    moment = datetime.fromtimestamp(run.received_at, UTC).isoformat().replace("+00:00", "Z")
    return {**asdict(run), "received_at": moment}
