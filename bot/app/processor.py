"""What the engine calls: the one place that knows handlers, effects and GitHub together."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from bot.app.prefilter import INSTALLATION_EVENTS, PULL_REQUEST, RepositoryView, WebhookPrefilter, no_handler, routed
from bot.app.texts import (
    CONCLUDES_NOTHING,
    FEATURE_OFF,
    NO_CONCLUDE_STAGE,
    NO_REPOSITORY,
    NOT_CONFIGURED,
    RATE_LIMITED,
)
from bot.config.shared import switches
from bot.core.adapters import adapter_of
from bot.core.errors import GiveWay, PayloadError, UnknownHandler, UserError
from bot.core.events import Delivery, Repository
from bot.engine.internal import Announce
from bot.engine.processor import (
    AppliedEffect,
    ConclusionJob,
    EffectJob,
    ErrorKind,
    PlannedEffect,
    PlannedEffects,
    Routing,
)
from bot.github.access import InstalledRepository
from bot.github.errors import AccessPaused, NotInstalled, NotSelected, RateLimited, kind_of
from bot.github.limits.ranks import CURRENT_RANK, Rank, ranked
from bot.github.pull_heads import note_head
from bot.github.repositories.in_force import config_in_force, file_key
from bot.github.repositories.known import KNOWN_REPOSITORY, PAUSED, KnownRepository, LeftAlone, Repositories
from bot.github.repositories.privacy import called_private_key
from bot.plan.codec import Codec
from bot.plan.effect import ChangesSettings, Effect, EffectContext, StoreContext, StoredEffect
from bot.plan.failure_text import failure_text
from bot.plan.handler import ConcludeStage, Context, Handler, Plan, Router
from bot.plan.outcome import EffectOutcome, EffectOutcomes
from bot.timers.timers import TIMER_EVENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from bot.config import Config, RepositoryConfig
    from bot.core.parts import PartMap
    from bot.engine.changes import Changes
    from bot.engine.records import Key, RecordReader, Records
    from bot.github.app import AppIdentity, GitHubApp
    from bot.github.client import GitHub

RANK = "rank"
"""The key of a plan's rank in the data of an effect, present only if it is not the usual one."""
BASIS = "basis"
"""The key of a plan's `conclusion_basis` in a conclude job."""

STRANGERS_PATIENCE = 3600.0
"""Seconds for which the answer to a person who may not run a command waits for its share of GitHub's rate limits."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where work happens: a repository, where the App is installed on it, its settings, and who the App is there."""

    repository: Repository
    installed: InstalledRepository
    config: RepositoryConfig
    me: AppIdentity


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The engine's `Processor`."""

    config: Config
    app: GitHubApp
    records: Records
    parts: PartMap
    router: Router
    codec: Codec
    announce: Announce
    new_changes: Callable[[], Changes]
    repositories: Repositories
    prefilter: WebhookPrefilter
    notes: Mapping[str, Sequence[Callable[[Records, Delivery], Awaitable[None]]]] = field(default_factory=dict)
    """By event, the functions by which features store parts of a payload before anything is planned."""

    async def handlers_for(self, delivery: Delivery) -> Routing:
        """Return the handlers that accept a delivery, or the reason why none does."""
        wanting = self.router.wanting(delivery.event, delivery.action)
        if not wanting:
            return Routing(reason=no_handler(delivery))
        if not delivery.repository_name:
            return Routing(reason=NO_REPOSITORY)
        name = await self._name_of(delivery)
        config = self.config.repository(name) if name is not None else None
        if name is None or config is None:
            return routed(delivery, wanting, None, self.config.mentions)
        asking = {handler.feature for handler in wanting if handler.accepts is not None}
        # Reading the repository's own file costs a record, and app.yaml alone decides most deliveries.
        if asking & config.features or any(handler.feature in switches(type(config)) for handler in wanting):
            config = await config_in_force(self.config, self.records, name) or config
        return routed(delivery, wanting, config, self.config.mentions)

    async def _name_of(self, delivery: Delivery) -> str | None:
        try:
            return await self.repositories.name_of(delivery.repository)
        except PayloadError:
            return delivery.repository_name  # The plans then fail because the id is missing, and say so.

    async def note(self, delivery: Delivery) -> None:
        """Remember what the payload says: repositories, a pull request's head, and which refreshes have begun."""
        try:
            if delivery.event in INSTALLATION_EVENTS and delivery.payload.has("installation", "id"):
                self.app.forget(delivery.payload.integer("installation", "id"))
            await self.repositories.note(delivery)
            # Another repository may have got the name on GitHub of one that app.yaml names.
            if delivery.event == PULL_REQUEST and await self._name_of(delivery) is not None:
                await note_head(self.records, delivery)
            for note in self.notes.get(delivery.event, ()):
                await note(self.records, delivery)
            await self._refresh_prefilter(delivery)
        except PayloadError as error:
            log.warning("the payload lacks a field, so its state is not stored", path=error.path, problem=str(error))

    async def _refresh_prefilter(self, delivery: Delivery) -> None:
        """Give the prefilter a new view of the repository, with which it decides about the next deliveries."""
        if "." in delivery.event or not delivery.names_repository:
            return
        if self.prefilter.view_of(delivery.repository) is None:
            self.prefilter.remember(delivery.repository, await self.view_of(delivery.repository))

    async def view_of(self, repository: Repository) -> RepositoryView:
        """Read the prefilter's view of a repository from the records, with one statement."""
        read_at = self.prefilter.clock()
        name = await self.repositories.name_of(repository)
        if name is None:
            return RepositoryView(repository.full_name, config=None, called_private=False, at=read_at)
        records = await self.records.fetch_ahead(*_first_keys(repository), called_private_key(name))
        config = await config_in_force(self.config, records, name)
        private = await self.repositories.is_called_private(name, records)
        return RepositoryView(repository.full_name, config, private, read_at)

    async def plan(self, delivery: Delivery, handler: str, intent: str) -> PlannedEffects:
        """Let one handler decide."""
        planner = self._handler(handler)
        async with self._context(delivery, intent, handler) as context:
            if planner.feature and planner.feature not in context.config.features:
                # Somebody turned the feature off after the delivery was routed.
                return PlannedEffects(why=FEATURE_OFF)
            # Nobody waits for a timer.
            rank = Rank.SWEEP if delivery.event == TIMER_EVENT.name else Rank.WRITER
            with ranked(min(CURRENT_RANK.get(), rank)):
                plan = await planner.plan(context)
        return self._as_data(replace(plan, rank=min(plan.rank, rank)), planner, context)

    async def plan_failure(self, delivery: Delivery, handler: str, intent: str, failure_text: str) -> PlannedEffects:
        """Let a handler that failed for good plan a message to people, if it has one."""
        planner = next((candidate for candidate in self.router.handlers if candidate.name == handler), None)
        if planner is None or planner.on_failure is None:
            return PlannedEffects()
        async with self._context(delivery, intent, handler) as context:
            plan = await planner.on_failure(context, failure_text)
        if plan.conclusion_basis is not None:
            raise ValueError(CONCLUDES_NOTHING.format(handler=handler))
        return self._as_data(plan, planner, context)

    def answering(self, delivery: Delivery) -> Sequence[str]:
        """Return the handlers that tell people if a delivery could not be routed, by app.yaml alone."""
        config = self.config.repository(delivery.repository_name) if delivery.repository_name else None
        if config is None:
            return ()
        names: list[str] = []
        for handler in self.router.wanting(delivery.event, delivery.action):
            # What failed may have been the question whether a handler accepts the delivery.
            with suppress(Exception):
                if handler.on_failure is not None:
                    names += routed(delivery, [handler], config, self.config.mentions).handlers
        return names

    async def conclude(self, delivery: Delivery, job: ConclusionJob) -> PlannedEffects:
        """Let a handler decide what follows from how the effects of its plan ended."""
        planner = self._handler(job.handler)
        stage, rank = _conclude_stage(planner), Rank(job.conclusion_basis[RANK])
        basis = adapter_of(stage.basis).validate_python(job.conclusion_basis[BASIS])
        ended = tuple(
            EffectOutcome(self._decoded(effect.effect), effect.state, effect.text, effect.value, effect.simulated)
            for effect in job.ended
        )
        async with self._context(delivery, job.intent, job.handler) as context:
            with ranked(rank):
                plan = await stage.decide(context, basis, EffectOutcomes(ended, job.again))
        return self._as_data(replace(plan, rank=rank), planner, context)

    async def apply(self, job: EffectJob) -> AppliedEffect:
        """Apply one effect."""
        rank = Rank(job.effect.get(RANK, Rank.EVENT))
        effect = self._decoded(job.effect)
        async with self._place_of(job.repository, job.handler) as place:
            return await self._apply(job, effect, rank, place)

    async def _apply(self, job: EffectJob, effect: Effect, rank: Rank, place: _Place) -> AppliedEffect:
        async def elsewhere(name: str) -> tuple[int, GitHub]:
            other_place = await self.app.place_of(name)
            return other_place.repository, self.app.client(other_place, effect.permissions, writes=job.writes)

        context = EffectContext(
            intent=job.intent,
            repository=place.repository,
            config=place.config,
            # Writes go out with a token that has this effect's permissions and no others.
            github=self.app.client(place.installed, effect.permissions, writes=job.writes),
            me=place.me,
            records=self.records,
            parts=self.parts,
            announce=self.announce,
            writes=job.writes,
            new_changes=self.new_changes,
            elsewhere=elsewhere,
        )
        try:
            with ranked(rank):
                applied = await effect.apply(context)
        except RateLimited as error:
            if rank is not Rank.STRANGER:
                raise
            remaining = job.received_at + STRANGERS_PATIENCE - time.time()
            if remaining <= 0:
                return AppliedEffect(RATE_LIMITED, changed=False)
            # The commands of everybody else on this pull request must not wait for it.
            raise GiveWay(str(error), retry_in=min(error.retry_in, remaining)) from error
        finally:
            if isinstance(effect, ChangesSettings):
                self.prefilter.forget(place.repository)
        return AppliedEffect(applied.text, applied.changed, _as_json(applied.value), applied.page)

    def kind_of(self, error: BaseException) -> ErrorKind:
        """Return how the engine must treat an error of GitHub."""
        return kind_of(error)

    def message(self, error: Exception, guid: str) -> str:
        """Return the text of a failure for people."""
        return failure_text(error, guid)

    def _handler(self, name: str) -> Handler:
        for handler in self.router.handlers:
            if handler.name == name:
                return handler
        raise UnknownHandler(name)

    async def _config_of(self, repository: Repository, handler: str, records: RecordReader) -> RepositoryConfig:
        name = await self.repositories.name_of(repository)
        config = await config_in_force(self.config, records, name) if name is not None else None
        if config is None:
            if any(candidate.after_removal for candidate in self.router.handlers if candidate.name == handler):
                return type(self.config.defaults)()
            raise UserError(NOT_CONFIGURED.format(repository=repository.full_name))
        return config

    @asynccontextmanager
    async def _context(self, delivery: Delivery, intent: str, handler: str) -> AsyncIterator[Context]:
        async with self._place_of(delivery.repository, handler) as place:
            yield Context(
                delivery=delivery,
                intent=intent,
                repository=place.repository,
                config=place.config,
                app_config=self.config,
                # Handlers decide and effects write: a handler that tried to write would be refused here.
                github=self.app.client(place.installed),
                me=place.me,
                records=self.records,
                parts=self.parts,
            )

    @asynccontextmanager
    async def _place_of(self, payload_repository: Repository, handler: str) -> AsyncIterator[_Place]:
        """Yield where a handler or one of its effects works, as it is stored when the job begins.

        The repository has its current name, because GitHub does not redirect writes. While the App has no access to it,
        the block raises `AccessPaused` as soon as it uses GitHub, and nothing is sent. If the block uses another
        repository as well, and that one is suspended or removed, this is final: an owner of another account must not
        hold up this repository.
        """
        records = await self.records.fetch_first(*_first_keys(payload_repository))
        stored = await self.repositories.get(payload_repository.id, records)
        repository = payload_repository if stored is None else replace(payload_repository, full_name=stored.full_name)
        installed = await self._installed(payload_repository, repository, stored)
        try:
            config = await self._config_of(repository, handler, records)
            yield _Place(repository, installed, config, await self.app.identity(installed))
        except NotSelected as error:
            if error.repository != installed.repository:
                raise
            raise AccessPaused.removed(installed.installation) from error
        except AccessPaused as error:
            if error.installation != installed.installation:
                raise NotInstalled(str(error)) from error
            raise

    async def _installed(
        self, payload_repository: Repository, repository: Repository, stored: KnownRepository | None
    ) -> InstalledRepository:
        installation = repository.installation_id
        if stored is not None and stored.away in PAUSED:
            is_suspended, number = stored.away is LeftAlone.SUSPENDED, installation or 0
            if is_suspended and number:
                self.app.note_suspension(number, suspended=True)
            paused = AccessPaused.suspended(number) if is_suspended else AccessPaused.removed(number)
            return InstalledRepository(number, repository.id, paused)
        # Events of our own, such as those of timers, come from no installation.
        if installation is None or _owner(payload_repository) != _owner(repository):
            installation = await self.app.installation_for(repository.full_name)
        return InstalledRepository(installation, repository.id)

    def _decoded(self, stored: Mapping[str, Any]) -> Effect:
        return self.codec.decode({key: value for key, value in stored.items() if key != RANK})

    def _as_data(self, plan: Plan, handler: Handler, context: Context) -> PlannedEffects:
        return PlannedEffects(
            effects=tuple(self._effect_as_data(effect, plan.rank, context) for effect in plan.effects),
            why=plan.why,
            conclusion_basis=_conclusion_basis(plan, handler),
        )

    def _effect_as_data(self, effect: Effect, rank: Rank, context: Context) -> PlannedEffect:
        data = self.codec.encode(effect)
        return PlannedEffect(
            target=effect.effect_key,
            effect=data if rank is Rank.EVENT else {**data, RANK: int(rank)},
            store=partial(self._store, effect, context) if isinstance(effect, StoredEffect) else None,
        )

    async def _store(self, effect: StoredEffect, context: Context, changes: Changes) -> AppliedEffect:
        applied = await effect.store(StoreContext(context.intent, context.repository, changes, self.parts))
        if isinstance(effect, ChangesSettings):
            changes.after_commit.append(partial(self.prefilter.forget, context.repository))
        return AppliedEffect(applied.text, applied.changed)


def _first_keys(repository: Repository) -> tuple[Key[Any], ...]:
    """Return the keys of what is stored about a repository, which each of its jobs reads first."""
    return KNOWN_REPOSITORY.of(repository.id), file_key(repository.full_name)


def _owner(repository: Repository) -> str:
    return repository.full_name.partition("/")[0].lower()


def _conclude_stage(handler: Handler) -> ConcludeStage[Any]:
    if handler.conclude is None:
        raise ValueError(NO_CONCLUDE_STAGE.format(handler=handler.name))
    return handler.conclude


def _conclusion_basis(plan: Plan, handler: Handler) -> dict[str, Any] | None:
    if plan.conclusion_basis is None:
        return None
    basis = adapter_of(_conclude_stage(handler).basis).dump_python(plan.conclusion_basis, mode="json")
    return {BASIS: basis, RANK: int(plan.rank)}


def _as_json(value: object) -> Any:
    return None if value is None else adapter_of(type(value)).dump_python(value, mode="json")
