"""A GitHub, a Jenkins and the pipeline between them, which process one delivery after another, as the engine does.

Durability, retries and order under load are tested with the engine; here, a `TryAgain` is simply raised.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import aiohttp

from bot.app.features import CODEC, NOTES, full_router
from bot.app.load import parse_config
from bot.app.prefilter import WebhookPrefilter
from bot.app.processor import Pipeline
from bot.app.registration import EVENTS
from bot.app.services import open_services
from bot.config import Config
from bot.config.environment import Settings
from bot.core.errors import Refusal, TryAgain, UserError
from bot.core.events import Delivery, Payload, Repository, intent_key
from bot.engine.changes import Outdated
from bot.engine.jobs.inbox import unpacked
from bot.engine.processor import (
    AppliedEffect,
    ConclusionJob,
    EffectJob,
    EffectState,
    EndedEffect,
    PlannedEffect,
    Routing,
)
from bot.engine.records import Records
from bot.engine.replay import planned_by
from bot.engine.service import Engine
from bot.engine.sql.transactions import Connector
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.limits.ledger import Allowance
from bot.github.repositories.known import Repositories
from bot.plan.effect import Effect
from bot.plan.handler import Router
from sandbox.github import GitHubSandbox
from sandbox.jenkins import JenkinsSandbox
from sandbox.model.apps import DEFAULT_PERMISSIONS
from sandbox.model.pulls import PullRequest
from sandbox.model.repository import Repository as SandboxRepository
from sandbox.webhooks import SentDelivery
from tests.github.virtual import JumpingTime
from tests.processes import lent_pool
from tests.tables import with_tables

FULL_NAME = "octocat/compiler"
STORED: LiteralString = "SELECT key, value, version FROM nightjar_records ORDER BY key"


STORED_EVENTS: LiteralString = """
SELECT delivery.guid, delivery.event, delivery.body, delivery.lock, job.scheduled_at
  FROM nightjar_inbox AS delivery JOIN procrastinate_jobs AS job ON job.id = delivery.id
 WHERE delivery.event LIKE 'nightjar.%%' ORDER BY delivery.id
"""


class StoredEvent(NamedTuple):
    """A delivery of the bot's own as it is stored; `not_before` is in seconds since 1970."""

    guid: str
    event: str
    body: dict[str, Any]
    lock: str
    not_before: float | None


@dataclass
class World:
    """Everything that a test can check or start."""

    github: GitHubSandbox
    jenkins: JenkinsSandbox
    repository: SandboxRepository
    pipeline: Pipeline
    records: Records
    connector: Connector
    applied: list[str] = field(default_factory=list)
    """The text of each effect for the audit record."""
    planned_to_write: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    """What each handler planned and concluded, as JSON, by the handler's name."""
    run_dry_first: bool = False
    """Whether each plan is run dry first, and the dry run is compared with the plan."""
    announced: list[Delivery] = field(default_factory=list)
    """The bot's own deliveries that are not processed yet, but those that were stored with a plan."""
    processed: set[str] = field(default_factory=set)
    """The GUIDs of the bot's own deliveries that were processed."""

    async def accept(self, guid: str, event: str, body: str, lock: str, *, not_before: float | None = None) -> bool:
        """Accept a delivery of the bot's own, as the engine does; return whether it is new."""
        is_known = any(event.guid == guid for event in self.announced)
        if not is_known:
            self.announced.append(Delivery(guid, event, Payload(json.loads(body)), time.time()))
        return not is_known

    def configure(self, config: Config, router: Router | None = None) -> None:
        """Continue with another app.yaml, as after a restart, and with another router if one is given."""
        router = router or self.pipeline.router
        prefilter = WebhookPrefilter(router, config.mentions, NOTES)
        self.pipeline = replace(self.pipeline, config=config, router=router, prefilter=prefilter)

    async def process_announced(self) -> None:
        """Process the bot's own deliveries, and those that they announce."""
        while waiting := [
            *self.announced,
            *(
                Delivery(event.guid, event.event, Payload(event.body), time.time())
                for event in await self.stored_events()
                if event.guid not in self.processed
            ),
        ]:
            self.announced = []
            for delivery in waiting:
                self.processed.add(delivery.guid)
                await self._deliver(delivery)

    def open(self, body: str | None = "", **values: Any) -> PullRequest:
        """Let octocat open a pull request."""
        return self.repository.open_pull_request("octocat", body=body, **values)

    async def happen(self, *, event: str = "") -> None:
        """Process all waiting deliveries, or those of one event, oldest first."""
        waiting = [d for d in self.github.webhooks.held if event in ("", d.event)]
        for deliver in waiting:
            self.github.webhooks.held.remove(deliver)
            await self._deliver(_delivery(deliver))

    async def deliver(self, guid: str, event: str, body: str) -> None:
        """Process a delivery of the bot's own."""
        await self._deliver(Delivery(guid, event, Payload(json.loads(body)), time.time()))

    async def planned(self, deliver: SentDelivery, handler: str) -> Sequence[PlannedEffect]:
        """Return one handler's effects for a delivery, without applying them."""
        delivery = _delivery(deliver)
        return (await self.pipeline.plan(delivery, handler, intent_key(delivery))).effects

    async def apply(self, deliver: SentDelivery, handler: str, effect: PlannedEffect) -> None:
        """Apply one effect, as a late retry does."""
        await self._apply(_delivery(deliver), handler, effect)

    async def apply_alone(self, effect: Effect) -> AppliedEffect:
        """Apply an effect without a delivery; its errors are raised."""
        repository = Repository(self.repository.id, FULL_NAME, None)
        job = EffectJob("guid", "handler", "intent", repository, effect.effect_key, CODEC.encode(effect))
        return await self.pipeline.apply(job)

    async def apply_until_stored(self, effect: Effect) -> AppliedEffect:
        """Apply an effect without a delivery, again whenever another job has changed the same records."""
        while True:
            with contextlib.suppress(Outdated):
                return await self.apply_alone(effect)

    async def stored_events(self) -> list[StoredEvent]:
        """Return the bot's own deliveries that the engine has stored, in their order."""
        rows = await self.connector.execute_query_all_async(STORED_EVENTS)
        return [
            StoredEvent(
                row["guid"],
                row["event"],
                unpacked(row["body"]),
                row["lock"],
                row["scheduled_at"].timestamp() if row["scheduled_at"] else None,
            )
            for row in rows
        ]

    async def say(self, pull: PullRequest, text: str, by: str = "octocat") -> str:
        """Let somebody comment; return the bot's answer: its reactions and its comment, if there is one."""
        await self.happen()
        comment = pull.comment(by, text)
        comment_count = len(pull.comments_by("nightjar[bot]"))
        await self.happen()
        answers = [answer.body for answer in pull.comments_by("nightjar[bot]")[comment_count:]]
        return "\n".join([" ".join(pull.reactions(comment)), *answers])

    def slow_status(self, sha: str) -> str:
        """Return the state and text of a commit's status for slow tests."""
        status = self.repository.status(sha, "ci/slow-tests")
        return f"{status.state}: {status.description}" if status else ""

    async def _deliver(self, delivery: Delivery) -> None:
        if self.pipeline.prefilter.why_ignored(delivery):
            await self._why_ignored(delivery)
        await self.pipeline.note(delivery)
        for handler in (await self.pipeline.handlers_for(delivery)).handlers:
            # Handler by handler, because the writes of one may change the plan of the next.
            dry_plan = await self._dry_run(delivery, handler) if self.run_dry_first else None
            planned = await self.pipeline.plan(delivery, handler, intent_key(delivery))
            targets = [effect.target for effect in planned.effects]
            assert len(targets) == len(set(targets)), "a plan has one effect per target"
            written = [{"target": effect.target, **effect.effect} for effect in planned.effects]
            outcomes: list[EndedEffect] = []
            for effect in planned.effects:
                outcomes.append(await self._apply(delivery, handler, effect))
            if planned.conclusion_basis is not None:
                job = ConclusionJob(handler, intent_key(delivery), planned.conclusion_basis, outcomes)
                for effect in (await self.pipeline.conclude(delivery, job)).effects:
                    written.append({"target": effect.target, **effect.effect})
                    await self._apply(delivery, handler, effect)
            self.planned_to_write.append((handler, written))
            if dry_plan is not None:
                assert _effects_shown(dry_plan) == _without_moment(written), f"{handler} differs from its dry run"

    async def _dry_run(self, delivery: Delivery, handler: str) -> dict[str, Any]:
        """Return what a dry run shows, and check that it wrote nothing: not to GitHub, and no record."""
        written, stored = self._written(), await self.stored()
        dry_plan = await planned_by(self.pipeline, delivery, handler)
        assert self._written() == written, f"a dry run of {handler} wrote to GitHub"
        assert await self.stored() == stored, f"a dry run of {handler} wrote a record"
        return dry_plan

    def _written(self) -> list[str]:
        """Return the requests that changed something on GitHub; queries are POST requests too."""
        return [str(request) for request in self.github.requests.writes if request.route != "/graphql"]

    async def _why_ignored(self, delivery: Delivery) -> None:
        """Check that a delivery without a job changes no record, and that no handler accepts it."""
        reason, stored = self.pipeline.prefilter.why_ignored(delivery), await self.stored()
        await self.pipeline.note(delivery)
        assert await self.pipeline.handlers_for(delivery) == Routing(reason=reason)
        assert await self.stored() == stored

    async def stored(self) -> list[dict[str, Any]]:
        """Return every record."""
        rows: list[dict[str, Any]] = await self.connector.execute_query_all_async(STORED)
        return rows

    async def _apply(self, delivery: Delivery, handler: str, effect: PlannedEffect) -> EndedEffect:
        repository = Repository.of(delivery.payload)
        intent = intent_key(delivery)
        job = EffectJob(delivery.guid, handler, intent, repository, effect.target, effect.effect)
        try:
            applied = await self.pipeline.apply(job)
        except TryAgain:
            raise
        except Exception as error:
            message = self.pipeline.message(error, delivery.guid)
            self.applied.append(f"failed: {message}")
            return EndedEffect(effect.target, effect.effect, _state_of(error), message)
        self.applied.append(applied.text)
        state = EffectState.APPLIED if applied.changed else EffectState.UNCHANGED
        return EndedEffect(effect.target, effect.effect, state, applied.text, applied.value)


def _effects_shown(plan: dict[str, Any]) -> list[dict[str, Any]]:
    assert "error" not in plan, plan
    conclusion = plan["conclusion"]
    return _without_moment([*plan["effects"], *(conclusion["effects"] if conclusion else [])])


def _without_moment(effects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Remove the times of the plan itself, which order late retries."""
    return [{name: value for name, value in effect.items() if name not in {"as_of", "read_at"}} for effect in effects]


def _state_of(error: Exception) -> EffectState:
    if isinstance(error, Refusal):
        return EffectState.REFUSED
    return EffectState.STOPPED if isinstance(error, UserError) else EffectState.FAILED


def _delivery(deliver: SentDelivery) -> Delivery:
    return Delivery(deliver.guid, deliver.event, Payload(deliver.body), deliver.created_at.timestamp())


@asynccontextmanager
async def a_world(
    folder: Path,
    *,
    features: Mapping[str, Any] | None = None,
    permissions: Mapping[str, str] | None = None,
    credentials: bool = True,
    jenkins: JenkinsSandbox | None = None,
    allowance: Allowance | None = None,
) -> AsyncIterator[World]:
    """Start a world; `features` are the repository's keys in app.yaml besides the Jenkins server."""
    github, jenkins = GitHubSandbox(), jenkins or JenkinsSandbox()
    async with (
        github.serve() as url,
        jenkins.serve() as jenkins_url,
        aiohttp.ClientSession() as session,
        lent_pool() as pool,
    ):
        github.webhooks.hold()
        repository = github.create_repository(FULL_NAME, people={"hubot": "triage"})
        app = github.create_app(
            webhook_url=f"{url}/webhook",
            webhook_secret="sesame-sesame-01",
            permissions=permissions or DEFAULT_PERMISSIONS,
            events=EVENTS,
        )
        app.install(repository)
        keys = {"rerun": {"jenkins": [{"url": jenkins_url}]}, **(features or {})}
        config = parse_config(json.dumps({"repositories": {FULL_NAME: keys}}).encode(), "app.yaml")
        database = f"sqlite:///{folder / 'nightjar.db'}"
        environment = {
            "GITHUB_APP_ID": str(app.id),
            "GITHUB_PRIVATE_KEY": app.private_key,
            "GITHUB_WEBHOOK_SECRET": "sesame-sesame-01",
            "DATABASE_URL": with_tables(database),
            **({"JENKINS_USER": jenkins.user, "JENKINS_TOKEN": jenkins.token} if credentials else {}),
        }
        settings = Settings.from_environment(environment)
        # The governor waits a second between two writes, which would only slow down these tests.
        timing = JumpingTime().timing()
        bot = GitHubApp(
            session, app_id=app.id, private_key=app.private_key, api_url=url, timing=timing, allowance=allowance
        )

        async def reading(name: str) -> GitHub:
            return await bot.reader(name)

        async with (
            Engine(database) as engine,
            open_services(config, settings, engine, session, reading, pool=pool) as services,
        ):
            repositories, router = Repositories(config, engine.records), full_router()
            pipeline = Pipeline(
                config=config,
                app=bot,
                records=engine.records,
                parts=services.parts,
                router=router,
                codec=CODEC,
                announce=engine.accept,
                new_changes=engine.new_changes,
                repositories=repositories,
                prefilter=WebhookPrefilter(router, config.mentions, NOTES),
                notes=NOTES,
            )
            world = World(github, jenkins, repository, pipeline, engine.records, engine.database.connector)
            await world.happen()
            yield world
