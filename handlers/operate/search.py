"""Find deliveries for operators: a page of those that match, newest first, from a bounded part of the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.events import pull_lock
from bot.engine.journal import FAILED
from bot.engine.notes import IGNORED
from bot.github.pull_heads import repository_id_of

if TYPE_CHECKING:
    from bot.engine.journal import DeliveryRecord, Journal
    from bot.engine.records import Records

SHOWN = 50
"""Deliveries of a page; of failed ones there may be `SHOWN` more than are wanted."""
READ_AT_ONCE = 200
MOST_READ = 2_000
"""Deliveries that are read to find those of one page; the next page continues there."""


@dataclass(frozen=True, slots=True)
class DeliverySearch:
    """Which deliveries to find. Empty fields match all; `event` may have its action, as in `issue_comment.created`.

    Those that no handler accepted are left out, unless `state` or `ignored` asks for them.
    """

    repository: str = ""
    number: int | None = None
    event: str = ""
    state: str = ""
    text: str = ""
    ignored: bool = False

    def accepts(self, record: DeliveryRecord) -> bool:
        """Say whether a delivery matches."""
        if self.state and record.state != self.state:
            return False
        if not self.state and not self.ignored and record.state == IGNORED:
            return False
        return (
            self.repository.lower() in ("", record.repository.lower())
            and self.number in (None, record.number)
            and self.event in ("", record.event, f"{record.event}.{record.action}")
            and (not self.text or self._says(record))
        )

    def _says(self, record: DeliveryRecord) -> bool:
        wanted = self.text.lower()
        names = (record.guid, record.event, record.repository, *(plan.handler for plan in record.plans))
        return any(wanted in text.lower() for text in (*names, *(job.text for job in record.jobs)))


@dataclass(frozen=True, slots=True)
class FoundDeliveries:
    """A page of deliveries; `older` is where the next page begins, None where all were read."""

    records: Sequence[DeliveryRecord]
    older: int | None


async def find_deliveries(
    journal: Journal, records: Records, search: DeliverySearch, before: int | None, most: int = SHOWN
) -> FoundDeliveries:
    """Return the newest deliveries that match, `most` of them, before the job with the number `before`."""
    if search.state == FAILED:
        return await _find_failed(journal, search, before, most)
    lock = await _lock(records, search)
    found: list[DeliveryRecord] = []
    for _ in range(MOST_READ // READ_AT_ONCE):
        if lock:
            read = await journal.of_lock(lock, READ_AT_ONCE, before)
        else:
            read = await journal.recent(READ_AT_ONCE, before)
        for record in read:
            before = record.job.job_id
            if search.accepts(record):
                found.append(record)
            if len(found) == most:
                return FoundDeliveries(found, before)
        if len(read) < READ_AT_ONCE:
            return FoundDeliveries(found, None)
    return FoundDeliveries(found, before)


async def _find_failed(journal: Journal, search: DeliverySearch, before: int | None, most: int) -> FoundDeliveries:
    """Return deliveries that failed, by their last failure: `before` is a job that failed then."""
    found: list[DeliveryRecord] = []
    for _ in range(MOST_READ // SHOWN):
        read, before = await journal.failures(SHOWN, before)
        found += [record for record in read if search.accepts(record)]
        if before is None or len(found) >= most:
            break
    return FoundDeliveries(found, before)


async def _lock(records: Records, search: DeliverySearch) -> str:
    """Return the lock of all deliveries of a pull request, which an index finds; empty where none is asked for."""
    if search.number is None or not search.repository:
        return ""
    repository_id = await repository_id_of(records, search.repository)
    return pull_lock(repository_id, search.number) if repository_id is not None else ""
