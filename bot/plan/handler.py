"""Handlers: their input, their result, and how they register for events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from bot.github.limits.ranks import Rank

if TYPE_CHECKING:
    from bot.config import Config, RepositoryConfig
    from bot.core.events import Delivery, Repository
    from bot.core.parts import PartKey, PartMap
    from bot.engine.records import Records
    from bot.github.app import AppIdentity
    from bot.github.client import GitHub
    from bot.plan.effect import Effect
    from bot.plan.outcome import EffectOutcomes


P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler may read while it decides. Its GitHub client refuses writes: handlers return effects.

    What only some handlers need is in `parts`.
    """

    delivery: Delivery
    intent: str
    repository: Repository
    config: RepositoryConfig
    app_config: Config
    github: GitHub
    me: AppIdentity
    records: Records
    parts: PartMap

    def part(self, key: PartKey[P]) -> P:
        """Return what a feature or a module shares. Raises LookupError if nobody provides it."""
        return self.parts[key]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a handler decided: effects in the order in which they are applied, and the reason."""

    effects: tuple[Effect, ...] = ()
    why: str = ""
    conclusion_basis: object = None
    """The input of the conclude stage, which runs when all effects have succeeded or failed: a frozen dataclass of
    plain JSON values. None: there is no conclude stage."""
    rank: Rank = Rank.EVENT
    """Who waits for the effects; it sets their order when GitHub's limits are tight."""


NOTHING = Plan()

B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class ConcludeStage(Generic[B]):
    """The conclude stage of a handler, when its effects have ended: `decide` gets the plan's `conclusion_basis`.

    It may read, as a plan function does. Its plan is stored, shown and applied like any other, and is the last one.
    """

    basis: type[B]
    """The type of `conclusion_basis`."""
    decide: Callable[[Context, B, EffectOutcomes], Awaitable[Plan]]


PlanFunction = Callable[[Context], Awaitable[Plan]]
Accepts = Callable[["Delivery", "RepositoryConfig"], bool]


class FailurePlan(Protocol):
    """Decide what people read when planning has failed for good; `message` tells them the reason.

    The engine runs no conclude stage after such a plan, so it has no `conclusion_basis`.
    """

    async def __call__(self, context: Context, message: str) -> Plan:
        """Return the plan that informs people about the failure."""
        ...


@dataclass(frozen=True, slots=True)
class Handler:
    """One feature's answer to some events: `plan` is called for the (event, action) pairs of `wants`.

    `name` is durable: queued jobs name their handler. A job that names a removed handler fails.
    """

    name: str
    wants: frozenset[tuple[str, str]]
    plan: PlanFunction
    feature: str = ""
    """The key of app.yaml that must be on for the repository; empty for what is always on."""
    on_failure: FailurePlan | None = field(default=None)
    accepts: Accepts | None = field(default=None)
    """Says, from the payload alone, whether a delivery needs a plan: some events arrive hundreds of times an hour."""
    conclude: ConcludeStage[Any] | None = field(default=None)
    """The conclude stage, for plans that have a `conclusion_basis`."""
    needs_mention: bool = False
    """Whether it ignores texts that do not mention the bot."""
    after_removal: bool = False
    """Whether it also runs, without settings, for repositories that app.yaml no longer lists, to clean up there."""


class Router:
    """Collect one module's handlers; `bot/` joins the modules' routers in one place."""

    def __init__(self) -> None:
        self.handlers: list[Handler] = []
        self._by_action: dict[tuple[str, str], list[Handler]] = {}
        """The handlers of an event and action, `*` for any action without handlers of its own."""

    def on(
        self,
        event: str,
        *actions: str,
        name: str,
        feature: str = "",
        on_failure: FailurePlan | None = None,
        accepts: Accepts | None = None,
        conclude: ConcludeStage[Any] | None = None,
        after_removal: bool = False,
    ) -> Callable[[PlanFunction], PlanFunction]:
        """Register a plan function for an event; without actions, for every delivery of it."""
        wants = frozenset((event, action) for action in actions or ("*",))

        def register(function: PlanFunction) -> PlanFunction:
            self.add(
                Handler(name, wants, function, feature, on_failure, accepts, conclude, after_removal=after_removal)
            )
            return function

        return register

    def add(self, handler: Handler) -> None:
        """Register a handler; two with the same name become one handler for both sets of events."""
        self._by_action.clear()
        # `on` may decorate one function several times, once for each event.
        for index, registered in enumerate(self.handlers):
            if registered.name == handler.name:
                if (registered.plan, registered.conclude) != (handler.plan, handler.conclude):
                    raise ValueError(f"two handlers are named {handler.name}")
                self.handlers[index] = replace(registered, wants=registered.wants | handler.wants)
                return
        self.handlers.append(handler)

    def wanting(self, event: str, action: str) -> Sequence[Handler]:
        """Return the handlers registered for this event, in the order of registration."""
        if not self._by_action:
            for pair in {pair for handler in self.handlers for pair in handler.wants}:
                anyway = (pair[0], "*")
                self._by_action[pair] = [
                    handler for handler in self.handlers if pair in handler.wants or anyway in handler.wants
                ]
        of_any_action = self._by_action.get((event, "*"), [])
        return self._by_action.get((event, action), of_any_action)


def joined(routers: Iterable[Router]) -> Router:
    """Return one router with the handlers of all routers."""
    result = Router()
    for router in routers:
        for handler in router.handlers:
            result.add(handler)
    return result
