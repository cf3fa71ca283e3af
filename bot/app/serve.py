"""The composition root: builds every part from its settings, runs them, and takes them down again in order."""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, cast

import structlog
from aiohttp import web
from sqlalchemy.exc import OperationalError

from bot.app.address import CANNOT_OPEN, Address
from bot.app.config_file import ConfigFile, config_check, hangups
from bot.app.doctor.doctor import Doctor, HealthWatch
from bot.app.features import ALL_FEATURES, CODEC, NOTES, full_router
from bot.app.prefilter import WebhookPrefilter
from bot.app.processor import Pipeline
from bot.app.redelivery import CRON, Redelivery
from bot.app.services import open_services
from bot.app.sign_in import make_sign_in
from bot.app.texts import WORKER_ENDED
from bot.aws.client import AWS
from bot.config import Config
from bot.config.environment import Settings
from bot.config.newest import NEWEST_CONFIG
from bot.core import systemd
from bot.core.errors import SettingsError, StartError
from bot.core.event_loop import loop_name
from bot.core.health import HEALTH_ROUNDS, HealthCheck, HealthRounds
from bot.core.http import open_session
from bot.core.memory import freeze_startup_objects, return_freed_memory
from bot.core.metrics import METRICS, Metrics
from bot.core.run_in_thread import shorten_thread_switch_interval
from bot.core.threads import ThreadProbe, bound_threads
from bot.core.untrusted.pool import POOL, Pool
from bot.engine.budget import WriteBudget
from bot.engine.service import Engine, WorkerPace
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.tokens import API, TokenStore
from bot.engine.worker.timers import TimerWork
from bot.feature import Services
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.limits.governor import Timing
from bot.github.limits.ledger import Allowance
from bot.github.limits.ranks import Rank, ranked
from bot.github.repositories.installed import INSTALLED, InstalledRepositories
from bot.github.repositories.known import Repositories
from bot.github.repositories.matching import SIX_HOURLY, MatchingRepositories
from bot.github.repositories.visibility import Visibility
from bot.news.channels import check_channels
from bot.timers.timers import MINUTELY, RepositoryTimers
from bot.web.access import ApiAccess
from bot.web.app import Parts, create_app, create_metrics_app, create_runner
from bot.web.bodies import Bodies
from bot.web.connections import Connections, LimitedSite, connections_allowed, raise_descriptor_limit
from bot.web.help import COMMAND_LIST
from bot.web.webhook import MAX_BODY

VERSION = version("nightjar-ci")
MEGABYTE = 1024 * 1024
STOPPING = (signal.SIGTERM, signal.SIGINT)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class MorePages(Protocol):
    """Pages that a process has besides those of the features."""

    @property
    def templates(self) -> Path:
        """Return the folder of their templates."""

    def join(self, app: web.Application, bot: Bot) -> None:
        """Add their routes to the application of a running bot."""


@dataclass(frozen=True, slots=True)
class Bot:
    """The parts of one process, opened and connected."""

    config: Config
    settings: Settings
    metrics: Metrics
    engine: Engine
    github: GitHubApp
    redelivery: Redelivery
    services: Services
    timers: RepositoryTimers
    watch: HealthWatch
    threads: ThreadProbe
    now: Callable[[], float]
    pipeline: Pipeline
    matching: MatchingRepositories


@asynccontextmanager
async def open_bot(
    config: Config,
    settings: Settings,
    allowance: Allowance | None = None,
    clock: Callable[[], float] = time.time,
    pace: WorkerPace | None = None,
    pool: Pool | None = None,
    timing: Timing | None = None,
    file: ConfigFile | None = None,
) -> AsyncIterator[Bot]:
    """Build the parts of a process and close them in the end.

    `allowance` is for a GitHub with other limits than github.com's, `clock` that of timers and results, `pace` for
    tests that cannot wait, `pool` for tests that share one, which stays open, `timing` has the clocks of limits,
    tokens and lists, and `file` is where `config` comes from. Raises DatabaseError, `SettingsError` for
    faulty `AWS_*` variables and for missing webhooks that app.yaml needs, or `StartError` for a key that the GitHub
    client cannot use.
    """
    check_channels(config, settings)
    timing = timing or Timing()
    router = full_router()
    metrics = Metrics(VERSION, {event for handler in router.handlers for event, _ in handler.wants})
    async with (
        Engine(settings.database_url.get_secret_value(), observer=metrics, pace=pace) as engine,
        open_session() as session,
    ):
        try:
            github = GitHubApp(
                session,
                app_id=settings.app_id,
                private_key=settings.private_key.get_secret_value(),
                api_url=settings.api_url,
                observer=metrics,
                timing=timing,
                allowance=replace(allowance or Allowance(), anonymous_share=config.http.anonymous_percent / 100),
                budget=WriteBudget(engine.database.connector),
            )
        except ValueError as error:
            raise StartError(str(error)) from None
        spacing = (allowance or Allowance()).write_spacing
        redelivery = Redelivery(github.as_app(), engine.records, engine.journal.known_guids, metrics, pace=spacing)
        engine.every("missed-deliveries", CRON, redelivery.sweep, at_start=True, has_work=redelivery.has_work)

        async def reading(repository: str) -> GitHub:
            return await github.reader(repository)

        repositories = Repositories(config, engine.records, engine.release_waiting)
        matching = MatchingRepositories(config, engine.records, repositories)
        await matching.load()
        async with open_services(config, settings, engine, session, reading, clock, pool) as services:
            services.parts[METRICS] = metrics
            if file is not None:
                services.parts[NEWEST_CONFIG] = file.newest
            services.parts[INSTALLED] = InstalledRepositories(github, timing.clock)
            prefilter = WebhookPrefilter(router, config.mentions, NOTES)
            parts, records = services.parts, engine.records
            pipeline = Pipeline(
                config,
                github,
                records,
                parts,
                router,
                CODEC,
                engine.accept,
                engine.new_changes,
                repositories,
                prefilter,
                NOTES,
            )
            engine.use(pipeline)
            timers = RepositoryTimers(
                config, engine.records, engine.journal, accept=engine.accept, github_for=reading, clock=clock
            )
            if config.configured.owners:

                async def discover() -> str:
                    return await matching.discover(services.part(INSTALLED))

                engine.every("installed-repositories", SIX_HOURLY, _in_background(discover), at_start=True)
            if any(settings_of_entry.timers for settings_of_entry in config.configured.entries.values()):
                engine.every("timers", MINUTELY, _in_background(timers.tick), at_start=True, has_work=timers.has_work)
            for work in (timer for feature in ALL_FEATURES for timer in feature.timers(services)):
                engine.every(work.name, work.cron, _in_background(work.work), at_start=True, has_work=work.has_work)
            doctor = Doctor(
                config,
                settings,
                github,
                session,
                services.part(AWS),
                repositories,
                timing.clock,
                services.part(INSTALLED),
            )
            watch = HealthWatch(doctor)
            rounds: HealthRounds = watch
            services.parts[HEALTH_ROUNDS] = rounds
            probe = ThreadProbe()
            yield Bot(
                config,
                settings,
                metrics,
                engine,
                github,
                redelivery,
                services,
                timers,
                watch,
                probe,
                clock,
                pipeline,
                matching,
            )


def _in_background(work: TimerWork) -> TimerWork:
    """Return work whose requests to GitHub leave half of each limit to people: nobody waits for it."""

    async def ranked_work() -> object:
        with ranked(Rank.SWEEP):
            return await work()

    return ranked_work


@dataclass(frozen=True, slots=True)
class Running:
    """A bot at work. A port is 0 if nothing is served; `worker` ends only when it is stopped or broken."""

    bot: Bot
    listeners: Listeners
    worker: asyncio.Task[None]

    @property
    def port(self) -> int:
        """Return the port of webhooks and pages."""
        return _port(self.listeners[0])

    @property
    def metrics_port(self) -> int:
        """Return the port of /metrics, if it is another one."""
        return _port(self.listeners[1])


def _port(runner: web.AppRunner | None) -> int:
    return int(runner.addresses[0][1]) if runner else 0


@asynccontextmanager
async def running(
    config: Config,
    settings: Settings,
    address: Address | None,
    allowance: Allowance | None = None,
    clock: Callable[[], float] = time.time,
    pace: WorkerPace | None = None,
    metrics: Address | None = None,
    pool: Pool | None = None,
    extra_pages: MorePages | None = None,
    file: ConfigFile | None = None,
) -> AsyncIterator[Running]:
    """Run jobs, and with an `address` serve webhooks, while the block runs; `metrics` is the address of /metrics then.

    `extra_pages` are pages that only this process has. A stop refuses new requests, answers those in flight, starts
    no new jobs, lets running ones end or leaves them for later, and closes everything. Raises DatabaseError and
    `StartError`.
    """
    async with open_bot(config, settings, allowance, clock, pace, pool, file=file) as bot:
        await bot.engine.recover()
        listeners = await _open_listeners(bot, address, metrics, extra_pages)
        worker = asyncio.create_task(bot.engine.run(), name="engine")
        listening = [
            asyncio.create_task(listener) for feature in ALL_FEATURES for listener in feature.listeners(bot.services)
        ]
        listening.append(asyncio.create_task(bot.watch.run(), name="doctor"))
        listening.append(asyncio.create_task(bot.threads.run(), name="threads"))
        listening.append(
            asyncio.create_task(bot.pipeline.prefilter.refresh_views(bot.pipeline.view_of), name="prefilter")
        )
        listening.append(asyncio.create_task(bot.matching.run(), name="matching repositories"))
        if address is None:
            log.info("working", version=VERSION, database=bot.engine.database.name, event_loop=loop_name())
        try:
            yield Running(bot, listeners, worker)
        finally:
            log.info("stopping")
            await _close(listeners)
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
            await end(bot.engine, worker)


async def run_until_stopped(
    config: Config,
    settings: Settings,
    address: Address | None,
    pace: WorkerPace | None = None,
    metrics: Address | None = None,
    allowance: Allowance | None = None,
    extra_pages: MorePages | None = None,
    file: ConfigFile | None = None,
    *,
    watch: bool = False,
) -> None:
    """Work until SIGTERM or SIGINT; a second signal ends at once.

    After SIGHUP, and with `watch` after a change of the `file`, work with what the file says then. Raises
    DatabaseError, `SettingsError` and `StartError`.
    """
    bound_threads()
    shorten_thread_switch_interval()
    return_freed_memory()
    raise_descriptor_limit()
    file = file or ConfigFile(Path("app.yaml"))
    last_good: Config | None = None
    with stop_signals() as stop, hangups(stop, file), ExitStack() as kept_open:
        for place in filter(None, (address, metrics)):
            for listening in place.listening:
                kept_open.enter_context(listening)
        beside = [asyncio.create_task(systemd.report_life(), name="watchdog")]
        if watch:
            beside.append(asyncio.create_task(file.watch(), name="app.yaml"))
        while not stop.is_set():
            try:
                async with running(
                    config,
                    settings,
                    address,
                    allowance,
                    pace=pace,
                    metrics=metrics,
                    extra_pages=extra_pages,
                    file=file,
                ) as at_work:
                    if last_good is not None:
                        log.info("app.yaml is in use", path=str(file.path))
                    last_good = config
                    freeze_startup_objects()
                    systemd.notify(systemd.READY)
                    newer = await _newer_config(at_work, file, stop)
                    if newer is None:
                        systemd.notify(systemd.STOPPING)
                        # With the server's own copies, the port closes: whoever connects from now on is refused.
                        kept_open.close()
                        break
                    config = newer
                    # First the jobs in progress: meanwhile webhooks are stored, and wait for the next worker.
                    await end(at_work.bot.engine, at_work.worker)
                    address, metrics = (
                        _kept_open(place, runner, kept_open)
                        for place, runner in zip((address, metrics), at_work.listeners, strict=True)
                    )
            except (SettingsError, StartError) as error:
                if last_good is None or config is last_good:
                    raise
                file.refuse(error)
                config = last_good
        for task in beside:
            task.cancel()
    log.info("stopped")


async def _newer_config(at_work: Running, file: ConfigFile, stop: asyncio.Event) -> Config | None:
    """Wait for a changed app.yaml that can be used, None to stop. Raises `StartError` if the worker ends before."""
    while True:
        signals = [asyncio.create_task(event.wait()) for event in (stop, file.changed)]
        await asyncio.wait([at_work.worker, *signals], return_when=asyncio.FIRST_COMPLETED)
        for waiting in signals:
            waiting.cancel()
        if stop.is_set():
            return None
        if not file.changed.is_set():
            await at_work.worker
            raise StartError(WORKER_ENDED)
        newer = await file.newer(at_work.bot.config, at_work.bot.settings)
        if newer is not None:
            return newer


def _kept_open(address: Address | None, runner: web.AppRunner | None, kept_open: ExitStack) -> Address | None:
    """Return an address whose sockets stay open between two servers, so that whoever connects then only waits."""
    if address is None or runner is None or address.listening:
        return address
    sockets = tuple(
        kept_open.enter_context(listening)
        for site in runner.sites
        for listening in cast("LimitedSite", site).kept_open()
    )
    return replace(address, listening=sockets)


async def end(engine: Engine, worker: asyncio.Task[None]) -> None:
    """Let the jobs in progress end, and then the worker; raise the error that ended the worker."""
    while not worker.done():
        # Ask more than once: a worker that has not started yet ignores the request.
        await engine.stop()
        await asyncio.wait({worker}, timeout=0.1)
    await worker


Listeners = tuple[web.AppRunner | None, web.AppRunner | None]
"""The servers of webhooks and the API, and of /metrics if that has a port of its own."""


async def _open_listeners(
    bot: Bot, address: Address | None, metrics: Address | None, extra_pages: MorePages | None = None
) -> Listeners:
    """Open the ports and say so in the log: those lines are how a chosen port is learnt."""
    most = connections_allowed(bot.config.http.connections)
    main, metrics_connections = Connections(most), Connections(most)
    visibility = _visibility(bot)
    parts = replace(_parts(bot, main, visibility), metrics_here=metrics is None)
    serving = await listen(_main_app(bot, parts, extra_pages), address, main) if address else None
    try:
        measuring = (
            await listen(create_metrics_app(parts, metrics_connections), metrics, metrics_connections)
            if metrics
            else None
        )
    except StartError:
        await _close((serving, None))
        raise
    visibility.refresh()
    for event, runner in (("serving metrics", measuring), ("serving", serving)):
        if runner is not None:
            host, port = runner.addresses[0][:2]
            name = bot.engine.database.name
            log.info(event, version=VERSION, host=host, port=port, database=name, event_loop=loop_name())
    return serving, measuring


def _main_app(bot: Bot, parts: Parts, extra_pages: MorePages | None) -> web.Application:
    if extra_pages is None:
        return create_app(parts)
    app = create_app(replace(parts, templates=[*parts.templates, extra_pages.templates]))
    extra_pages.join(app, bot)
    return app


async def _close(listeners: Listeners) -> None:
    for runner in listeners:
        if runner is not None:
            await runner.cleanup()


async def listen(app: web.Application, address: Address, connections: Connections) -> web.AppRunner:
    """Open a port. Raises `StartError`."""
    runner = create_runner(app)
    await runner.setup()
    try:
        await LimitedSite(runner, address.host, address.port, connections, address.listening).start()
    except CANNOT_OPEN as error:
        await runner.cleanup()
        raise address.refused(error) from None
    return runner


def _visibility(bot: Bot) -> Visibility:
    async def github_for(repository: str) -> GitHub:
        return await bot.github.reader(repository)

    return Visibility(bot.config, github_for, bot.services.part(INSTALLED), bot.engine.records)


def _parts(bot: Bot, connections: Connections, visibility: Visibility) -> Parts:
    registry = bot.metrics.registry
    sign_in = make_sign_in(bot.config, bot.settings, bot.services)
    gauges = [feature.metrics(bot.services, registry) for feature in ALL_FEATURES if feature.metrics is not None]

    async def refresh_gauges() -> None:
        try:
            backlog, missing = await bot.engine.backlog(), await bot.redelivery.missing()
            bot.metrics.set_queue(backlog.waiting, backlog.oldest_seconds, missing)
            for gauge in gauges:
                await gauge.refresh()
        except (DatabaseFailure, OperationalError):
            # Operators need the other metrics most when the database is unavailable.
            bot.metrics.set_queue({}, math.nan, math.nan)
            for gauge in gauges:
                gauge.clear()

    return Parts(
        inbox=bot.engine,
        connections=connections,
        access=ApiAccess(
            TokenStore(bot.engine.database.connector, API).verify,
            visibility.is_public,
            sign_in.viewers,
            sign_in.operators,
        ),
        viewers=sign_in.viewers,
        begun=sign_in.begun,
        repositories=bot.config.repositories,
        canonical_name=bot.config.configured.canonical_name,
        is_public=visibility.is_public,
        list_public=visibility.public_repositories,
        bodies=Bodies(bot.config.http.megabytes_in_flight * MEGABYTE, MAX_BODY),
        secrets=[secret.get_secret_value().encode() for secret in bot.settings.webhook_secrets],
        checks=[
            HealthCheck("engine", bot.engine.ready),
            HealthCheck("database file", bot.engine.database.problem),
            HealthCheck("app", lambda: bot.github.refused),
            HealthCheck("threads", bot.threads.problem),
            HealthCheck("processes", bot.services.part(POOL).problem),
            HealthCheck("clock", lambda: bot.github.clock.problem, fatal=False),
            HealthCheck("installations", lambda: bot.github.suspended, fatal=False),
            config_check(bot.services.part(NEWEST_CONFIG)),
            *(check for feature in ALL_FEATURES for check in feature.checks(bot.services)),
            *bot.watch.checks,
        ],
        refresh=refresh_gauges,
        routes=[route for feature in ALL_FEATURES for route in feature.routes(bot.services)],
        templates=[feature.templates for feature in ALL_FEATURES if feature.templates is not None],
        github_url=bot.settings.github_url,
        public_url=lambda: (bot.config.public_url or "").rstrip("/"),
        pages_per_minute=bot.config.http.pages_per_minute,
        proxies=bot.config.http.proxies,
        metrics=bot.metrics,
        version=VERSION,
        mentions=bot.config.mentions,
        why_ignored=bot.pipeline.prefilter.why_ignored,
        log_ignored=bot.config.log.deliveries == "all",
        list_commands=bot.services.part(COMMAND_LIST),
    )


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """Turn the first signal to stop into an event; the second one does what it does to any program."""
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def heard() -> None:
        stop.set()
        _forget()

    def _forget() -> None:
        for number in STOPPING:
            loop.remove_signal_handler(number)
            # asyncio restores Python's own handler, whose KeyboardInterrupt would not end the process at once.
            signal.signal(number, signal.SIG_DFL)

    for number in STOPPING:
        loop.add_signal_handler(number, heard)
    try:
        yield stop
    finally:
        _forget()
