"""Internal events: deliveries that the bot creates itself, such as a run of a timer.

Like a webhook, an event is durable, is handled once for each GUID, and has plans, retries, replay and dry run. Its name
contains a dot, which GitHub's event names never do, so nobody can send one to the webhook.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from bot.core.adapters import adapter_of
from bot.core.errors import DeclarationError, PayloadError
from bot.core.events import Json, Payload, Repository


class Announce(Protocol):
    """The engine's `accept`, for deliveries of our own: stores each GUID once."""

    async def __call__(self, guid: str, event: str, body: str, lock: str, *, not_before: float | None = None) -> bool:
        """Return whether the event is new. It is not handled before `not_before`, in seconds since 1970."""
        ...


PREFIX = "nightjar."

BAD_NAME = "the name of an internal event must start with {prefix}, and {name} does not"
TWO_EVENTS = "two internal events are named {name}"
UNREADABLE = "is not valid for the event {event}"

T = TypeVar("T")


class Announcement(NamedTuple):
    """An internal event as the arguments of `Announce`: the delivery that is stored."""

    guid: str
    event: str
    body: str
    lock: str


def _no_number(_: object) -> None:
    return None


def _no_action(_: object) -> str:
    return ""


def _no_push(_: object) -> Json:
    return {}


@dataclass(frozen=True)
class InternalEvent(Generic[T]):
    """One kind of internal event, which carries a value of the type `codec` and belongs to a repository.

    Each of the functions gets the value; `guid` and `lock` also get the repository's ID. `guid` identifies the event,
    so that it is handled once; events with the same `lock` are handled in order. `action` and `number` (of the pull
    request) are shown with the delivery. `push` adds the members that a push has, for handlers of both events. The
    name and the shape are stored, so they must not change. Raises ValueError for a name without the prefix.
    """

    name: str
    codec: type[T]
    guid: Callable[[int, T], str]
    lock: Callable[[int, T], str]
    action: Callable[[T], str] = _no_action
    number: Callable[[T], int | None] = _no_number
    push: Callable[[T], Json] = _no_push

    def __post_init__(self) -> None:
        if not self.name.startswith(PREFIX):
            raise ValueError(BAD_NAME.format(prefix=PREFIX, name=self.name))

    def body(self, repository: Repository, value: T) -> dict[str, Any]:
        """Return the body of the delivery."""
        push = self.push(value)
        repository_data = {"id": repository.id, "full_name": repository.full_name, **push.get("repository", {})}
        body = {**push, "action": self.action(value), "repository": repository_data}
        if repository.installation_id is not None:
            body["installation"] = {"id": repository.installation_id}
        if (number := self.number(value)) is not None:
            body["pull_request"] = {"number": number}
        return {**body, self._payload_key: adapter_of(self.codec).dump_python(value, mode="json")}

    def announcement(self, repository: Repository, value: T) -> Announcement:
        """Return the delivery that announces the event."""
        body = json.dumps(self.body(repository, value))
        return Announcement(self.guid(repository.id, value), self.name, body, self.lock(repository.id, value))

    def read(self, payload: Payload) -> T:
        """Read the value out of a delivery's payload. Raises `PayloadError`."""
        try:
            return self.load(payload.at(self._payload_key).raw)
        except ValidationError as error:
            raise PayloadError(self._payload_key, UNREADABLE.format(event=self.name)) from error

    def load(self, value: Json) -> T:
        """Read a value from JSON values. Raises pydantic's `ValidationError`."""
        return adapter_of(self.codec).validate_python(value)

    @property
    def _payload_key(self) -> str:
        return self.name.removeprefix(PREFIX)


async def announce(
    accept: Announce, event: InternalEvent[T], repository: Repository, value: T, *, not_before: float | None = None
) -> bool:
    """Announce an event; return whether it is new. Handlers get it no sooner than `not_before`, in seconds since 1970.

    Raises `StorageError` if it could not be stored.
    """
    return await accept(*event.announcement(repository, value), not_before=not_before)


def events_by_name(events: Iterable[InternalEvent[Any]]) -> dict[str, InternalEvent[Any]]:
    """Return events by their names. Raises DeclarationError if two have one name."""
    by_name: dict[str, InternalEvent[Any]] = {}
    for event in events:
        if event.name in by_name:
            raise DeclarationError(TWO_EVENTS.format(name=event.name))
        by_name[event.name] = event
    return by_name
