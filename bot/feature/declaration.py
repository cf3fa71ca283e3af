"""What a feature is: one value that names everything that the program takes from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from bot.commands.dialogue import CommandFunction
from bot.commands.spec import CommandSpec
from bot.config.repository_keys import RepositoryKey
from bot.core.events import Delivery
from bot.core.health import HealthCheck
from bot.core.parts import PartKey
from bot.engine.internal import InternalEvent
from bot.engine.records import Record, Records
from bot.feature.services import Services
from bot.plan.effect import Effect
from bot.plan.handler import Router
from bot.web.openapi import Operation

HANDLER_TITLES = PartKey[Mapping[str, str]]("the titles of handlers")
"""The `titles` of all features."""
NO_TITLE = (
    "the handlers {names} have no title for the page of a pull request: add them to `titles` of the Feature that has "
    "them in `router`"
)


class Gauges(Protocol):
    """Gauges of a feature that are read from the database when somebody asks for the metrics."""

    async def refresh(self) -> None:
        """Read and set them; what the database raises comes out."""
        ...

    def clear(self) -> None:
        """Remove what the database has said: it does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class RecurringWork:
    """Work that one process does at each moment of a cron expression; it returns what it did, for the log.

    `has_work` only reads, in the process with the oldest worker. If it returns False, the moment is skipped, without a
    write.
    """

    name: str
    cron: str
    work: Callable[[], Awaitable[str]]
    has_work: Callable[[], Awaitable[bool]] | None = None


async def _provide_nothing(_: Services) -> None:
    """Provide no part."""


async def _note_nothing(_: Records, __: Delivery) -> None:
    """Note nothing."""


def _none(_: Services) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Everything of one feature; `bot.app.features` joins all of them.

    `config` has its keys of app.yaml, the `KEYS` of its module `config`; `effects` the kinds of effects that it adds,
    `sections` the sections of the sticky comment that show something about a head, `records` the kinds of durable
    state, `events` the internal events. The functions are called once, when the program starts.
    """

    name: str
    config: tuple[RepositoryKey[Any], ...] = ()
    router: Router = field(default_factory=Router)
    titles: Mapping[str, str] = field(default_factory=dict)
    """What each handler in `router` is about, by its name, as the page of a pull request says it."""
    commands: tuple[tuple[CommandSpec, CommandFunction], ...] = ()
    effects: tuple[type[Effect], ...] = ()
    sections: tuple[str, ...] = ()
    records: tuple[Record[Any], ...] = ()
    events: tuple[InternalEvent[Any], ...] = ()
    provide: Callable[[Services], Awaitable[None]] = _provide_nothing
    """Puts what its own handlers, effects and routes share into `Services.parts`."""
    routes: Callable[[Services], Sequence[Operation]] = _none
    templates: Path | None = None
    """The folder of its pages' templates (`bot.web.pages`)."""
    timers: Callable[[Services], Sequence[RecurringWork]] = _none
    listeners: Callable[[Services], Sequence[Coroutine[Any, Any, None]]] = _none
    """What runs as long as the process works, such as reading a queue."""
    checks: Callable[[Services], Sequence[HealthCheck]] = _none
    metrics: Callable[[Services, CollectorRegistry], Gauges] | None = None
    note: Callable[[Records, Delivery], Awaitable[None]] = _note_nothing
    """Keeps in a record what a delivery's payload says, before anything is planned."""
    notes_of: tuple[str, ...] = ()
    """The events for whose deliveries `note` is called."""
    preload: tuple[str, ...] = ()
    """Modules whose functions run in processes of their own (`bot.core.untrusted`)."""

    def __post_init__(self) -> None:
        """Raise ValueError if a handler has no title."""
        names = [handler.name for handler in self.router.handlers if handler.name not in self.titles]
        if names:
            raise ValueError(NO_TITLE.format(names=", ".join(names)))
