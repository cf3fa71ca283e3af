"""Changes to the engine's own tables that are stored together, or not at all: records and internal events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from bot.core.errors import TryAgain
from bot.engine.internal import Announcement, InternalEvent
from bot.engine.records import (
    EXCHANGE,
    GET_SOME,
    INSERT,
    JOB_RECORDS,
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
        self.key = key


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A record to store; None removes it. If `is_guarded`, the stored text must still be `read_text`, None for none."""

    name: str
    value: StoredValue | None = None
    is_guarded: bool = False
    read_text: str | None = None

    def steps(self) -> Steps[None]:
        """Store the change, as part of a transaction. Raises `Outdated`."""
        if self.value is None:
            yield REMOVE, {"key": self.name}
            return
        values = values_of_record(self.name, self.value)
        if not self.is_guarded:
            yield PUT, values
        elif self.read_text is None:
            if not (yield INSERT, values):
                raise Outdated(self.name)
        elif not (yield EXCHANGE, {"was": self.read_text, **values}):
            raise Outdated(self.name)


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
        self._writes: dict[str, RecordChange] = {}
        self._updates: list[tuple[Key[Any], Callable[[Any], Any]]] = []
        self._seen: dict[str, dict[str, Any] | None] = {}
        """The rows of records to update that the job has fetched before; None for those that did not exist."""
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
        self._writes[name] = replace(self._writes.get(name) or RecordChange(name), value=value)

    async def change(self, key: Key[T], change: Callable[[T | None], T | None]) -> None:
        """Replace a value with the result of `change`; None leaves it unchanged.

        If another job changes the record before these changes are stored, nothing is stored: see `Outdated`.
        """
        stored = (None, None) if key.name in self._writes else await self._records.get_with_text(key)
        _add_change(self._writes, key, change, *stored)

    def update(self, key: Key[T], change: Callable[[T | None], T | None]) -> None:
        """Replace a value like `change`; `get` does not see the result.

        The value may have changed since the job has read it: then it is read when these changes are stored.
        """
        self._updates.append((key, change))
        if (job := JOB_RECORDS.get()) is not None and key.name in job.seen:
            self._seen[key.name] = job.seen[key.name]

    def read_again(self, name: str) -> bool:
        """Return whether the record of a key was only read too early, and see that all to update are read anew."""
        was_seen = name in self._seen
        self._seen.clear()
        return was_seen

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
        for change in (yield from self.announced()):
            yield from change.steps()

    def announced(self) -> Steps[list[RecordChange]]:
        """Store the announced events; return the changes of records, which the same transaction has to store.

        They are in the order of keys: otherwise two transactions that write the same records could wait for each other.
        """
        for statement in self.deliveries.values():  # noqa: UP028  # an iterator of a dict receives no rows
            yield statement
        names = {key.name for key, _ in self._updates}
        all_seen = names <= self._seen.keys()
        writes = self._with_updates(self._seen if all_seen else {})
        # What an update leaves unchanged is not guarded, so it must be read now.
        if not all_seen or names - writes.keys():
            rows = yield GET_SOME, {"keys": [*names]}
            writes = self._with_updates({cast("str", row["key"]): row for row in rows})
        return sorted(writes.values(), key=attrgetter("name"))

    def _with_updates(self, rows: Mapping[str, dict[str, Any] | None]) -> dict[str, RecordChange]:
        writes = self._writes.copy()
        for key, change in self._updates:
            _add_change(writes, key, change, *value_and_text(key, rows.get(key.name)))
        return writes

    async def store(self) -> None:
        """Store the changes in a transaction of their own. Raises `Outdated`."""
        await self._records.connector.transact(self.steps)
        self.committed()

    def committed(self) -> None:
        """Call `after_commit`, now that the changes are stored."""
        for callback in self.after_commit:
            callback()


def _add_change(
    writes: dict[str, RecordChange],
    key: Key[T],
    change: Callable[[T | None], T | None],
    stored: T | None,
    text: str | None,
) -> None:
    """Add the change of a record to `writes`, by an earlier write, or else by the `stored` value and its `text`."""
    earlier = writes.get(key.name)
    value = _loaded(key, earlier) if earlier else stored
    new = change(value)
    if new is not None and new != value:
        write = earlier or RecordChange(key.name, is_guarded=True, read_text=text)
        writes[key.name] = replace(write, value=StoredValue.of(key, new))


def _loaded(key: Key[T], write: RecordChange) -> T | None:
    if write.value is None:
        return None
    return key.record.load(key.name, dict(write.value.value), write.value.version)
