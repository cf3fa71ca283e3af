"""`nightjar replay --failed`: replay failed deliveries in bulk."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from nightjar_formats.terminal import escape_controls

from bot.cli.engine import reading_engine, working_engine
from bot.cli.support import Matching, is_free
from bot.cli.texts import FAILED_HEADERS, NOTHING_FAILED, REPLAY_PROGRESS, REPLAYED, TIME_SPAN_WORDS, TO_REPLAY
from bot.core.terminal import table
from bot.engine.jobs.journal import FAILED, DeliveryRecord
from bot.engine.replay import failed_since
from bot.engine.service import Engine

TIME_SPAN = Matching(r"[1-9][0-9]{0,4}[smhd]", TIME_SPAN_WORDS)


@dataclass(frozen=True, slots=True)
class BulkReplay:
    """The failures to replay: those of the last `since` seconds, of one `repository` or of all (empty).

    `per_minute` is the pace; `patience` is in seconds.
    """

    since: float
    repository: str
    per_minute: float
    patience: float

    async def failed(self, engine: Engine) -> list[DeliveryRecord]:
        """Return the failed deliveries, oldest first."""
        return await failed_since(engine.journal, time.time() - self.since, self.repository)

    async def replay(self, engine: Engine, records: Sequence[DeliveryRecord]) -> list[DeliveryRecord]:
        """Replay deliveries, and return their final records."""
        return await engine.replay_all(
            [record.guid for record in records],
            interval=60 / self.per_minute,
            patience=self.patience,
            progress=_show_progress,
        )


def replay_failed(replay: BulkReplay, config_path: Path, *, dry_run: bool, as_json: bool) -> int:
    """Replay failed deliveries and print the results; return the exit status. Raises errors of the database."""
    if dry_run:
        records = asyncio.run(_list_failed(replay))
        _print_selection(records, as_json=as_json)
        return 0
    records = asyncio.run(_replay(replay, config_path))
    states = Counter(_state(record) for record in records)
    if as_json:
        counts = {name: states[name] for name in ("done", "failed", "waiting")}
        click.echo(json.dumps({"count": len(records), **counts, "deliveries": list(map(_as_json, records))}, indent=2))
    elif records:
        for record in records:
            if _state(record) != "done":
                click.echo(escape_controls(f"{record.guid}: {_state(record)}: {record.reason}"))
        click.echo(REPLAYED.format(count=len(records), **{n: states[n] for n in ("done", "failed", "waiting")}))
    else:
        click.echo(NOTHING_FAILED)
    return 0 if states["done"] == len(records) else 1


async def _list_failed(replay: BulkReplay) -> list[DeliveryRecord]:
    async with reading_engine() as engine:
        return await replay.failed(engine)


async def _replay(replay: BulkReplay, config_path: Path) -> list[DeliveryRecord]:
    """Let the server replay if there is one, otherwise this process."""
    async with reading_engine() as engine:
        records = await replay.failed(engine)
        if not records or not is_free(engine.database):
            return await replay.replay(engine, records) if records else []
    async with working_engine(config_path) as engine:
        return await replay.replay(engine, records)


def _show_progress(queued: int, ended: int, count: int) -> None:
    click.echo(REPLAY_PROGRESS.format(queued=queued, ended=ended, count=count), err=True)


def _print_selection(records: Sequence[DeliveryRecord], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"count": len(records), "deliveries": list(map(_as_json, records))}, indent=2))
    elif records:
        click.echo(table(FAILED_HEADERS, [(r.guid, _event(r), _subject(r), r.reason) for r in records]))
        click.echo(TO_REPLAY.format(count=len(records)), err=True)
    else:
        click.echo(NOTHING_FAILED)


def _state(record: DeliveryRecord) -> str:
    if not record.settled:
        return "waiting"
    return "failed" if record.state == FAILED else "done"


def _event(record: DeliveryRecord) -> str:
    return f"{record.event}.{record.action}" if record.action else record.event


def _subject(record: DeliveryRecord) -> str:
    return f"{record.repository}#{record.number}" if record.number else record.repository


def _as_json(record: DeliveryRecord) -> dict[str, Any]:
    return {
        "guid": record.guid,
        "event": record.event,
        "action": record.action,
        "repository": record.repository,
        "number": record.number,
        "state": _state(record),
        "reason": record.reason,
    }
