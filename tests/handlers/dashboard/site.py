"""The dashboard on a free port, with a real store of results but no GitHub, bucket or worker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp

from bot.app.features import TITLES
from bot.app.load import parse_config
from bot.app.services import list_commands_of
from bot.aws.bucket import RunStore
from bot.aws.store_folder import StoreFolder
from bot.config import Config
from bot.core.metrics import Metrics
from bot.core.redaction import Redactor
from bot.core.untrusted.pool import Pool
from bot.engine.records import Records
from bot.engine.service import Engine
from bot.engine.sqlite.connector import create_privately
from bot.github.repositories.visibility import PublicRepositories
from bot.results.ingest.files import FileLists
from bot.results.service import ResultsService
from bot.results.store.store import ResultsStore
from bot.results.store.tables import revisions
from bot.web.access import ApiAccess
from bot.web.app import Parts, create_app, create_runner
from bot.web.bodies import IN_FLIGHT, Bodies
from bot.web.connections import Connections, LimitedSite
from bot.web.webhook import MAX_BODY
from handlers.dashboard.feature import FEATURE, PAGES
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.nightly import route as nightly_route
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord
from tests.handlers.dashboard.nightly_runs import NOW, REPOSITORY, fill
from tests.handlers.dashboard.stored_history import fill_engine
from tests.tables import with_tables

CONFIG = """
repositories:
  octocat/compiler:
    nightly: {require: ["*/branch", lint]}
    results:
      bucket: device-results
      labs:
        example-lab: {targets: [hexagon-v73, adreno], contacts: ["@example-lab-ci"], reproduce: "pytest {test}"}
        hubot-lab: {targets: ["rpi-5@rack:2"]}
  octocat/secret:
    results:
      bucket: device-results
      labs:
        example-lab: {targets: [hexagon-v73]}
  octocat/new:
    nightly:
    results:
      bucket: device-results
      labs:
        example-lab: {targets: [hexagon-v73]}
  octocat/docs:
"""
PUBLIC = frozenset({"octocat/compiler", "octocat/new", "octocat/docs"})


@dataclass
class DashboardSite:
    """A running dashboard, with a client that follows no redirects and does not decompress answers."""

    url: str
    client: aiohttp.ClientSession
    store: ResultsStore
    records: Records
    settings: Config
    moment: float = NOW

    async def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        """Request a page as a browser does; return status, headers and text."""
        sent = {"Accept": "text/html", **{name.replace("_", "-"): text for name, text in headers.items()}}
        async with self.client.get(self.url + path, headers=sent, allow_redirects=False) as answer:
            return answer.status, dict(answer.headers), await answer.text(errors="replace")

    async def render(self, path: str) -> tuple[int, dict[str, str], str]:
        """Request a page after a change of the repository's results, so that the server renders it."""
        await asyncio.to_thread(self.store.write, revisions.grow, REPOSITORY)
        return await self.get(path)

    async def json(self, path: str) -> tuple[int, Any]:
        """Request the API; return status and JSON."""
        async with self.client.get(self.url + path) as answer:
            return answer.status, await answer.json(content_type=None)


_prepared: list[bytes] = []


async def _two_weeks() -> bytes:
    """Return a SQLite file with what `fill` stores, which each process makes once: that costs more than most tests."""
    if not _prepared:
        with TemporaryDirectory() as folder:
            url = with_tables(f"sqlite:///{folder}/nightjar.db")
            async with Engine(url) as engine:
                with closing(ResultsStore(url, clock=lambda: NOW)) as store:
                    await asyncio.to_thread(store.open)
                    await asyncio.to_thread(fill, store)
                await fill_engine(engine)
            _prepared.append(await asyncio.to_thread(Path(folder, "nightjar.db").read_bytes))
    return _prepared[0]


@asynccontextmanager
async def dashboard_site(
    folder: Path,
    *,
    config: str = CONFIG,
    public: Collection[str] = PUBLIC,
    filled: Callable[[ResultsStore], None] = fill,
    pages_per_minute: int = 100_000,
    proxies: int = 0,
    moment: float = NOW,
    clock: Callable[[], float] | None = None,
    database: str = "",
    bucket: Path | None = None,
    may_lack_public: bool = False,
) -> AsyncIterator[DashboardSite]:
    """Serve the pages of a store that `filled` has filled; only the `public` repositories are public.

    With `may_lack_public`, GitHub has not answered about all of them.

    `database` is the URL of a database with all tables, by default a new SQLite file. `clock` is the clock of the
    pages. `bucket` is a folder in place of each repository's bucket; without it, no page may read one.
    """
    url = database or f"sqlite:///{folder}/nightjar.db"
    is_prepared = filled is fill and moment == NOW and not database
    if is_prepared:
        create_privately(folder / "nightjar.db")
        await asyncio.to_thread((folder / "nightjar.db").write_bytes, await _two_weeks())
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine(with_tables(url)))
        store = ResultsStore(url, clock=lambda: moment)
        await asyncio.to_thread(store.open)
        stack.callback(store.close)
        pool = Pool(preload=())
        stack.callback(pool.close)
        if not is_prepared:
            await asyncio.to_thread(filled, store)
            await fill_engine(engine)
        settings = parse_config(config.encode(), "app.yaml")

        def source_for(name: str) -> RunStore:
            assert bucket is not None, f"a page read the bucket {name}"
            return StoreFolder(bucket)

        results = ResultsService(settings.configured.canonical_name, store, FileLists(), pool, source_for)
        redact = Redactor(["configured-secret"]).text
        commands = list_commands_of(settings, engine.records)
        parts = DashboardParts(
            settings,
            engine.records,
            results,
            clock or (lambda: moment),
            engine.journal,
            redact,
            commands,
            TITLES,
            public_url=(settings.public_url or "").rstrip("/"),
        )

        async def is_public(repository: str) -> bool:
            return repository.lower() in public

        async def list_public() -> PublicRepositories:
            names = [name for name in settings.repositories if name.lower() in public]
            return PublicRepositories(names, may_lack_public)

        async def nothing(*_: object) -> None:
            return None

        connections = Connections(256)
        app = create_app(
            Parts(
                inbox=engine,
                bodies=Bodies(IN_FLIGHT, MAX_BODY),
                connections=connections,
                access=ApiAccess(nothing, is_public),
                repositories=list(settings.repositories),
                canonical_name=settings.configured.canonical_name,
                is_public=is_public,
                list_public=list_public,
                secrets=[b"a secret that nobody uses here"],
                checks=[],
                refresh=nothing,
                routes=[
                    *(operation for page in PAGES for operation in page(parts).operations()),
                    nightly_route.operation(
                        nightly_route.NightlyBranches(TrackingRecord(settings, engine.records, NIGHTLY), results)
                    ),
                ],
                templates=[FEATURE.templates] if FEATURE.templates else [],
                pages_per_minute=pages_per_minute,
                proxies=proxies,
                metrics=Metrics("1.2.3", set()),
                version="1.2.3",
                public_url=lambda: parts.public_url,
                mentions=["@ci"],
                list_commands=list_commands_of(settings, engine.records),
            )
        )
        runner = create_runner(app)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await LimitedSite(runner, "127.0.0.1", 0, connections).start()
        client = await stack.enter_async_context(aiohttp.ClientSession(auto_decompress=True))
        yield DashboardSite(f"http://127.0.0.1:{runner.addresses[0][1]}", client, store, engine.records, settings)


__all__ = ["REPOSITORY", "DashboardSite", "dashboard_site"]
