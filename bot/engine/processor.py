"""The interface between the engine, which knows jobs, and the part that knows handlers and GitHub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Any, Protocol

from bot.core.events import Delivery, Repository
from bot.engine.writes import Writes

if TYPE_CHECKING:
    from bot.engine.changes import Changes

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Routing:
    """The handlers that accept a delivery; if there are none, `reason` says why."""

    handlers: tuple[str, ...] = ()
    reason: str = ""


StorePart = Callable[["Changes"], Awaitable["AppliedEffect"]]


@dataclass(frozen=True, slots=True)
class PlannedEffect:
    """One effect as data: `target` names it within its plan, and the processor reads `effect` back."""

    target: str
    effect: JsonObject
    store: StorePart | None = field(default=None, compare=False)
    """Adds the effect to the changes that are stored with the plan, if it only changes the engine's own tables. None:
    it becomes a job."""

    @property
    def kind(self) -> str:
        """The kind of the effect, for metrics; the processor stores it under `kind`."""
        return str(self.effect.get("kind", ""))


@dataclass(frozen=True, slots=True)
class PlannedEffects:
    """The decision of a handler: effects in their order, and why."""

    effects: tuple[PlannedEffect, ...] = ()
    why: str = ""
    conclusion_basis: JsonObject | None = None
    """The input of the conclude stage in addition to the outcomes. None: the plan has no conclude stage."""


class EffectState(StrEnum):
    """How an effect ended."""

    APPLIED = "applied"
    UNCHANGED = "unchanged"
    """GitHub already showed the result."""
    REFUSED = "refused"
    """A person requested something that they may not do, or that the rules forbid."""
    STOPPED = "stopped"
    """A `UserError`: somebody must do something first; the text says what."""
    FAILED = "failed"
    """Any other error."""

    @property
    def is_failure(self) -> bool:
        """Whether it was not applied; the text of the effect says why, in words for people."""
        return self not in (EffectState.APPLIED, EffectState.UNCHANGED)


@dataclass(frozen=True, slots=True)
class EndedEffect:
    """An effect of a plan that has ended: `value` is the value that it returned, as JSON.

    `text` is for people if it failed, and for operators if not. `simulated`: a dry run assumes that it is applied.
    """

    target: str
    effect: JsonObject
    state: EffectState
    text: str
    value: Any = None
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class ConclusionJob:
    """A plan whose effects have all ended. Its handler now decides what follows.

    `again`: an earlier conclusion, or the answer to a failed plan, may have been shown to people already.
    """

    handler: str
    intent: str
    conclusion_basis: JsonObject
    ended: Sequence[EndedEffect]
    again: bool = False


@dataclass(frozen=True, slots=True)
class EffectJob:
    """An effect to apply now."""

    guid: str
    handler: str
    intent: str
    repository: Repository
    target: str
    effect: JsonObject
    writes: Writes = field(default_factory=Writes)
    """The writes of earlier tries, which must not be sent twice."""
    received_at: float = 0.0
    """When the delivery arrived, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class AppliedEffect:
    """The result of an effect: `text` for the audit log; `changed` is False if GitHub already showed the result."""

    text: str
    changed: bool = True
    value: Any = None
    """A value for the conclude stage, as JSON."""
    page: str = ""
    """Where GitHub shows the result, below the repository's page."""


class ErrorKind(Enum):
    """The meaning of another service's error for the next try. `OTHER` is any error but a refusal."""

    OTHER = auto()
    REFUSED = auto()
    """The service will refuse each repetition."""
    MISSING = auto()
    """The service does not have the object, perhaps only for now."""


class Processor(Protocol):
    """The interface that the engine calls; `bot.app.processor` implements it.

    Any method except `message` and `answering` may raise; `bot/engine/retry.py` handles the errors.
    """

    async def handlers_for(self, delivery: Delivery) -> Routing:
        """Return the handlers that accept a delivery, or the reason why none does."""
        ...

    async def note(self, delivery: Delivery) -> None:
        """Record facts from a delivery, also if no handler accepts it; called in the order of the pull request."""
        ...

    async def plan(self, delivery: Delivery, handler: str, intent: str) -> PlannedEffects:
        """Let one handler decide; nothing is written to GitHub."""
        ...

    async def plan_failure(self, delivery: Delivery, handler: str, intent: str, message: str) -> PlannedEffects:
        """Plan the answer to people after planning has failed for good; `message` comes from the method `message`."""
        ...

    def answering(self, delivery: Delivery) -> Sequence[str]:
        """Return the handlers that tell people if a delivery could not be routed; it does not raise."""
        ...

    async def conclude(self, delivery: Delivery, job: ConclusionJob) -> PlannedEffects:
        """Let a handler decide what follows from the outcomes of its plan; nothing is written to GitHub."""
        ...

    async def apply(self, job: EffectJob) -> AppliedEffect:
        """Apply one effect: check, then write. It may be called again after a crash at any point."""
        ...

    def message(self, error: Exception, guid: str) -> str:
        """Return the text about a failure that people may see."""
        ...

    def kind_of(self, error: BaseException) -> ErrorKind:
        """Return whether another service refused."""
        ...


class JobObserver(Protocol):
    """Observes the engine, for metrics; it must neither block nor raise."""

    def delivery(self, event: str, outcome: str, seconds: float) -> None:
        """Note that a delivery was routed, ignored, refused, retrying or failed, `seconds` after it was received."""
        ...

    def handler(self, name: str, outcome: str, seconds: float) -> None:
        """Note that a handler ran for `seconds`: planned, concluded, refused, retrying or failed."""
        ...

    def effect(self, kind: str, outcome: str, seconds: float) -> None:
        """Note that an effect ran for `seconds`: applied, unchanged, refused, retrying or failed."""
        ...


class NobodyWatches:
    """An observer that measures nothing."""

    def delivery(self, event: str, outcome: str, seconds: float) -> None:
        """Do nothing."""

    def handler(self, name: str, outcome: str, seconds: float) -> None:
        """Do nothing."""

    def effect(self, kind: str, outcome: str, seconds: float) -> None:
        """Do nothing."""
