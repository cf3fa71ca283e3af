"""The parts that deal with results, built and joined: for the server, and for commands that do its work by hand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.aws.bucket import Bucket
from bot.aws.client import Aws, check_environment
from bot.aws.queue import Notifications
from bot.core.untrusted.pool import Pool
from bot.results.store.store import ResultsStore
from handlers.hardware.service import ResultsService
from handlers.hardware.watch import Watch

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.service import Engine
    from bot.github.client import GitHub


@dataclass(frozen=True, slots=True)
class ResultsParts:
    """What there is for results in one process."""

    service: ResultsService
    watch: Watch
    store: ResultsStore
    queues: tuple[Notifications, ...]
    aws: Aws


@asynccontextmanager
async def open_results(
    config: Config,
    url: str,
    engine: Engine,
    github_for: Callable[[str], Awaitable[GitHub]],
    now: Callable[[], float] = time.time,
) -> AsyncIterator[ResultsParts]:
    """Open the store of results in the engine's database, and close it in the end.

    `github_for` gives a client for `owner/name` that refuses to write, `now` seconds since 1970. Raises DatabaseError,
    and `SettingsError` for `AWS_*` variables that cannot be used, where a repository has labs.
    """
    store = ResultsStore(url, now=now)
    await asyncio.to_thread(store.open)
    aws, pool = Aws(), Pool()
    try:
        watch = Watch(
            config,
            store,
            engine.records,
            engine.journal,
            accept=engine.accept,
            github_for=github_for,
            source_for=lambda bucket: Bucket(aws, bucket),
            now=now,
        )
        if any(repository.results is not None for repository in config.repositories.values()):
            await asyncio.to_thread(check_environment, list(watch.queues))
        service = ResultsService(store, engine.records, watch, pool, now)
        queues = tuple(Notifications(aws, queue, places) for queue, places in watch.queues.items())
        yield ResultsParts(service, watch, store, queues, aws)
    finally:
        pool.close()
        aws.close()
        store.close()
