"""Changes to the engine's own tables that are stored together, or not at all: records and internal events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

from bot.core.errors import TryAgain
from bot.engine.internal import Announcement, InternalEvent
from bot.engine.records import (
    EXCHANGE,
    GET_SOME,
    INSERT,
    PUT,
    REMOVE,
    Key,
    Records,
    StoredValue,
    value_and_text,
    values_of_record,
)
from bot.engine.sql.transactions import Statement, Steps

if TYPE_CHECKING:
    from bot.core.events import Repository

OUTDATED = "another job changed the record {key} meanwhile"

T = TypeVar("T")

NewDelivery = Callable[[Announcement, float | None], Statement]
"""Turns an event, and the time (epoch seconds, or None) before which no handler gets it, into the statement that
stores it."""


class Outdated(TryAgain):
    """Another job changed a record after it was read for these changes, so nothing was stored."""

    def __init__(self, key: str) -> None:
        super().__init__(OUTDATED.format(key=key))


@dataclass(frozen=True, slots=True)
class _Write:
    """A record to store; None removes it. If `is_guarded`, the stored text must still be `read_text`, None for none."""

    value: StoredValue | None
    is_guarded: bool = False
    read_text: str | None = None


class Changes:
    """Collects changes and stores them in one transaction. What is read here includes the changes made so far."""

    def __init__(
        self,
        records: Records,
        new_delivery: NewDelivery,
        known_guids: Callable[[Sequence[str]], Awaitable[set[str]]],
    ) -> None:
        self._records = records
        self._new_delivery = new_delivery
        self._known_guids = known_guids
        self._writes: dict[str, _Write] = {}
        self._updates: list[tuple[Key[Any], Callable[[Any], Any]]] = []
        self.deliveries: dict[str, Statement] = {}
        """The statements that store the announced events, by GUID; the jobs of events may have any lock."""
        self.after_commit: list[Callable[[], None]] = []
        """Called after the changes are stored."""

    async def get(self, key: Key[T]) -> T | None:
        """Return the value of a record, or None."""
        write = self._writes.get(key.name)
        return await self._records.get(key) if write is None else _loaded(key, write)

    def put(self, key: Key[T], value: T) -> None:
        """Store a value, replacing any other."""
        self.write(key.name, StoredValue.of(key, value))

    def write(self, name: str, value: StoredValue | None) -> None:
        """Store a value in its stored form under the name of a key, replacing any other; None removes the record."""
        self._writes[name] = replace(self._writes.get(name, _Write(None)), value=value)

    async def change(self, key: Key[T], change: Callable[[T | None], T | None]) -> None:
        """Replace a value with the result of `change`; None leaves it unchanged.

        If another job changes the record before these changes are stored, nothing is stored: see `Outdated`.
        """
        stored = (None, None) if key.name in self._writes else await self._records.get_with_text(key)
        _add_change(self._writes, key, change, *stored)

    def update(self, key: Key[T], change: Callable[[T | None], T | None]) -> None:
        """Replace a value like `change`, but read it when these changes are stored; `get` does not see the result."""
        self._updates.append((key, change))

    async def announce(
        self, event: InternalEvent[T], repository: Repository, value: T, *, not_before: float | None = None
    ) -> bool:
        """Announce an event; return whether it is new. Handlers get it no sooner than `not_before` (epoch seconds)."""
        announcement = event.announcement(repository, value)
        if announcement.guid in self.deliveries:
            return False
        self.deliveries[announcement.guid] = self._new_delivery(announcement, not_before)
        return not await self._known_guids([announcement.guid])

    def steps(self) -> Steps[None]:
        """Store the changes, as part of a transaction. Raises `Outdated`."""
        writes = self._writes.copy()
        if self._updates:
            rows = yield GET_SOME, {"keys": [key.name for key, _ in self._updates]}
            stored = {row["key"]: row for row in rows}
            for key, change in self._updates:
                _add_change(writes, key, change, *value_and_text(key, stored.get(key.name)))
        # In the order of keys: otherwise two transactions that write the same records could wait for each other.
        for name, write in sorted(writes.items(), key=itemgetter(0)):
            yield from _steps_of(name, write)
        for statement in self.deliveries.values():  # noqa: UP028  # an iterator of a dict receives no rows
            yield statement

    async def store(self) -> None:
        """Store the changes in a transaction of their own. Raises `Outdated`."""
        await self._records.connector.transact(self.steps)
        self.committed()

    def committed(self) -> None:
        """Call `after_commit`, now that the changes are stored."""
        for callback in self.after_commit:
            callback()


def _add_change(
    writes: dict[str, _Write], key: Key[T], change: Callable[[T | None], T | None], stored: T | None, text: str | None
) -> None:
    """Add the change of a record to `writes`, by an earlier write, or else by the `stored` value and its `text`."""
    earlier = writes.get(key.name)
    value = _loaded(key, earlier) if earlier else stored
    new = change(value)
    if new is not None and new != value:
        write = earlier or _Write(None, is_guarded=True, read_text=text)
        writes[key.name] = replace(write, value=StoredValue.of(key, new))


def _loaded(key: Key[T], write: _Write) -> T | None:
    if write.value is None:
        return None
    return key.record.load(key.name, dict(write.value.value), write.value.version)


def _steps_of(name: str, write: _Write) -> Steps[None]:
    if write.value is None:
        yield REMOVE, {"key": name}
        return
    values = values_of_record(name, write.value)
    if not write.is_guarded:
        yield PUT, values
    elif write.read_text is None:
        if not (yield INSERT, values):
            raise Outdated(name)
    elif not (yield EXCHANGE, {"was": write.read_text, **values}):
        raise Outdated(name)
