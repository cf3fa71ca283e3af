"""The services of one process, opened for its features and closed in the end."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, nullcontext
from typing import TYPE_CHECKING

import aiohttp

from bot.app.features import ALL_FEATURES, REGISTRY, TITLES
from bot.aws.bucket import Bucket, RunStore
from bot.aws.client import AWS, Aws
from bot.aws.store_folder import StoreFolder, store_folder_of
from bot.ci.jenkins_builds import JENKINS, JenkinsBuilds
from bot.commands.answers import CommandRow, command_rows, offered_commands
from bot.config.environment import SETTINGS, Settings
from bot.config.newest import NEWEST_CONFIG, NewestConfig
from bot.config.types import STORE_FOLDER
from bot.core.parts import PartMap
from bot.core.untrusted.pool import POOL, Pool
from bot.core.web_json import HTTP, READER, Reader
from bot.engine.service import ENGINE, Engine
from bot.feature import HANDLER_TITLES, Services
from bot.github.repositories.in_force import config_in_force
from bot.results.ingest.files import FileLists
from bot.results.service import RESULTS, ResultsService
from bot.results.store.store import ResultsStore
from bot.web.help import COMMAND_LIST, ListCommands, ListedCommand

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records
    from bot.github.client import GitHub


@asynccontextmanager
async def open_services(
    config: Config,
    settings: Settings,
    engine: Engine,
    session: aiohttp.ClientSession,
    github_for: Callable[[str], Awaitable[GitHub]],
    now: Callable[[], float] = time.time,
    pool: Pool | None = None,
) -> AsyncIterator[Services]:
    """Open what features share, with the store of results in the engine's database.

    `github_for` gives a client for `owner/name` that refuses to write, `now` seconds since 1970. A `pool` that is given
    stays open in the end. Raises DatabaseError, and what a feature raises that cannot begin.
    """
    store = ResultsStore(settings.database_url.get_secret_value(), clock=now)
    await asyncio.to_thread(store.open)
    processes = nullcontext(pool) if pool is not None else closing(new_pool())
    with closing(store), closing(Aws()) as aws, processes as pool:
        parts = PartMap()
        parts[NEWEST_CONFIG] = NewestConfig()
        parts[SETTINGS], parts[HTTP], parts[READER] = settings, session, Reader(session)
        parts[HANDLER_TITLES] = TITLES
        parts[COMMAND_LIST] = list_commands_of(config, engine.records)
        parts[JENKINS] = JenkinsBuilds.of(session, settings)
        parts[AWS], parts[POOL], parts[ENGINE] = aws, pool, engine
        parts[RESULTS] = ResultsService(
            config.configured.canonical_name, store, FileLists(), pool, stores(aws, engine, now)
        )
        connector = engine.database.connector
        services = Services(config, engine.records, engine.journal, engine.accept, github_for, now, parts, connector)
        for feature in ALL_FEATURES:
            await feature.provide(services)
        yield services


def stores(aws: Aws, engine: Engine, now: Callable[[], float]) -> Callable[[str], RunStore]:
    """Return a function that opens the store of a name: a bucket, or the folder beside a SQLite database."""

    @functools.cache
    def folder() -> StoreFolder:
        return StoreFolder(store_folder_of(engine.database.name), clock=now)

    return lambda name: folder() if name == STORE_FOLDER else Bucket(aws, name)


def new_pool() -> Pool:
    """Return the pool of processes for text from outside; they import the modules that features run there."""
    return Pool(preload=[module for feature in ALL_FEATURES for module in feature.preload])


def list_commands_of(config: Config, records: Records) -> ListCommands:
    """Return the function that lists the commands for the page."""
    mention = config.mentions[0]

    async def listed(repository: str) -> tuple[str, list[ListedCommand]] | None:
        if not repository:
            return "", [_listed(row) for row in command_rows(REGISTRY, mention)]
        settings = await config_in_force(config, records, repository)
        if settings is None:
            return None
        rows = command_rows(offered_commands(REGISTRY, settings), mention, settings)
        return config.configured.canonical_name(repository), [_listed(row) for row in rows]

    return listed


def _listed(row: CommandRow) -> ListedCommand:
    return ListedCommand(
        usage=row.usage, summary=row.summary, example=row.example, who=row.who, synonyms=list(row.synonyms)
    )
