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
    INSERT,
    PUT,
    REMOVE,
    FetchedRecords,
    Key,
    Records,
    StoredValue,
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
        self._reader: Records | FetchedRecords = records
        self._new_delivery = new_delivery
        self._known_guids = known_guids
        self._writes: dict[str, _Write] = {}
        self.deliveries: dict[str, Statement] = {}
        """The statements that store the announced events, by GUID; the jobs of events may have any lock."""
        self.after_commit: list[Callable[[], None]] = []
        """Called after the changes are stored."""

    async def fetch(self, *keys: Key[Any]) -> None:
        """Fetch with one statement what `get` and `change` are about to read."""
        self._reader = await self._records.fetch(*keys)

    async def get(self, key: Key[T]) -> T | None:
        """Return the value of a record, or None."""
        write = self._writes.get(key.name)
        return await self._reader.get(key) if write is None else _loaded(key, write)

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
        write = self._writes.get(key.name)
        if write is None:
            value, text = await self._reader.get_with_text(key)
            write = _Write(None, is_guarded=True, read_text=text)
        else:
            value = _loaded(key, write)
        new = change(value)
        if new is not None and new != value:
            self._writes[key.name] = replace(write, value=StoredValue.of(key, new))

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
        # In the order of keys: otherwise two transactions that write the same records could wait for each other.
        for name, write in sorted(self._writes.items(), key=itemgetter(0)):
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
