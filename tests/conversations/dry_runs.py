"""A bot that runs each plan dry before it makes the real plan, and compares both lists of effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import pytest

from bot.app.features import CODEC
from bot.app.serve import Bot
from bot.engine.replay import planned_by
from bot.plan.effect import Effect
from bot.plan.handler import ConcludeStage, Context, Handler, Plan
from bot.plan.outcome import EffectOutcomes
from tests.bucket import World
from tests.conversations.town import Town

TRIES = 3
"""Another handler's effect may change what a plan is made from, between the dry run and the plan; not each time."""
UNCOMPARED = frozenset({"target", "rank", "as_of", "read_at"})
"""What is not compared: the moments of a plan, which order late retries, and what the pipeline adds to an effect."""

_DRY: ContextVar[bool] = ContextVar("dry", default=False)


@dataclass
class DryFirst:
    """The bot's plans since `attach`, and which of them differ from their dry runs."""

    handlers: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    differences: list[str] = field(default_factory=list)
    _conclusions: dict[tuple[str, str], list[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def attached(cls, bot: Bot) -> Self:
        """Return a `DryFirst` that is attached to a bot."""
        dry = cls()
        dry.attach(bot)
        return dry

    def attach(self, bot: Bot) -> None:
        """From now on, do a dry run before each plan of a bot."""
        handlers = bot.pipeline.router.handlers
        handlers[:] = [self._compared(handler, bot) for handler in handlers]

    async def quiet(self, town: Town, *, failed: int = 0) -> None:
        """Wait until the bot is idle, and check that it applied its plans and that the dry runs showed them.

        `failed` is how many jobs had failed before.
        """
        await town.quiet()
        failures = await town.failures()
        assert len(failures) == failed, failures
        assert not self.differences, self.differences

    def _compared(self, handler: Handler, bot: Bot) -> Handler:
        async def plan(context: Context) -> Plan:
            if _DRY.get():
                return await handler.plan(context)
            return await self._plan(handler, bot, context)

        async def decide(context: Context, basis: Any, outcomes: EffectOutcomes) -> Plan:
            assert stage is not None
            plan = await stage.decide(context, basis, outcomes)
            if not _DRY.get():
                dry_effects = self._conclusions[context.delivery.guid, handler.name]
                self._compare(handler.name, dry_effects, _written(plan.effects))
            return plan

        stage = handler.conclude
        return replace(handler, plan=plan, conclude=ConcludeStage(stage.basis, decide) if stage else None)

    async def _plan(self, handler: Handler, bot: Bot, context: Context) -> Plan:
        for _ in range(TRIES):
            dry_plan = await _dry_run(bot, context, handler.name)
            plan = await handler.plan(context)
            written = _written(plan.effects)
            if _compared_part(dry_plan["effects"]) == _compared_part(written):
                break
        self.handlers.add(handler.name)
        self._compare(handler.name, dry_plan["effects"], written)
        if plan.conclusion_basis is not None:
            self._conclusions[context.delivery.guid, handler.name] = dry_plan["conclusion"]["effects"]
        return plan

    def _compare(self, handler: str, dry_effects: list[dict[str, Any]], written: list[dict[str, Any]]) -> None:
        self.kinds |= {effect["kind"] for effect in written}
        if _compared_part(dry_effects) != _compared_part(written):
            self.differences.append(f"{handler} plans {written}, its dry run showed {dry_effects}")


@dataclass(frozen=True)
class SceneFixtures:
    """The folder where a scene keeps its files, and the pytest fixtures that it needs."""

    folder: Path
    bucket: World
    monkeypatch: pytest.MonkeyPatch

    @property
    def database(self) -> str:
        """Return the URL of the scene's database."""
        return f"sqlite:///{self.folder}/nightjar.db"


Scene = Callable[[SceneFixtures], Awaitable[DryFirst]]
"""A conversation in which the bot plans what a dry run is to show."""


async def _dry_run(bot: Bot, context: Context, handler: str) -> dict[str, Any]:
    token = _DRY.set(True)
    try:
        dry_plan = await planned_by(bot.pipeline, context.delivery, handler)
    finally:
        _DRY.reset(token)
    return dry_plan if "error" not in dry_plan else {"effects": [dry_plan], "conclusion": None}


def _written(effects: Sequence[Effect]) -> list[dict[str, Any]]:
    return [CODEC.encode(effect) for effect in effects]


def _compared_part(effects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in effect.items() if name not in UNCOMPARED} for effect in effects]
