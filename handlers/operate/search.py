"""Find deliveries for operators: one page of matches, newest first, from a bounded part of the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.events import locks_of
from bot.engine.jobs.journal import FAILED
from bot.engine.jobs.notes import IGNORED
from bot.github.pull_heads import repository_id_of

if TYPE_CHECKING:
    from bot.engine.jobs.journal import DeliveryRecord, Journal
    from bot.engine.records import Records

SHOWN = 50
"""Deliveries on one page. A page of failed ones may be longer, as whole batches of this size are read."""
READ_AT_ONCE = 200
MOST_READ = 2_000
"""The most deliveries that are read for one page, so that a rare match cannot make a request read the whole log.

A page may therefore be short; the next one continues where it ended.
"""


@dataclass(frozen=True, slots=True)
class DeliverySearch:
    """The deliveries to find. An empty field matches all; `event` may include the action: `issue_comment.created`.

    Deliveries that no handler accepted match only if `state` or `ignored` includes them.
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
            and (not self.text or self._has_text(record))
        )

    def _has_text(self, record: DeliveryRecord) -> bool:
        lowered_text = self.text.lower()
        names = (record.guid, record.event, record.repository, *(plan.handler for plan in record.plans))
        return any(lowered_text in text.lower() for text in (*names, *(job.text for job in record.jobs)))


@dataclass(frozen=True, slots=True)
class FoundDeliveries:
    """A page of deliveries; `older` is the `before` of the next page, None if there is none."""

    records: Sequence[DeliveryRecord]
    older: int | None


async def find_deliveries(
    journal: Journal, records: Records, search: DeliverySearch, before_job: int | None, most: int = SHOWN
) -> FoundDeliveries:
    """Return the newest `most` deliveries that match, of those with a job number below `before_job`; None: of all."""
    if search.state == FAILED:
        return await _find_failed(journal, search, before_job, most)
    locks = await _locks(records, search)
    matching: list[DeliveryRecord] = []
    for _ in range(MOST_READ // READ_AT_ONCE):
        if locks:
            batch = await journal.of_locks(locks, READ_AT_ONCE, before_job)
        else:
            batch = await journal.recent(READ_AT_ONCE, before_job)
        for record in batch:
            before_job = record.job.job_id
            if search.accepts(record):
                matching.append(record)
            if len(matching) == most:
                return FoundDeliveries(matching, before_job)
        if len(batch) < READ_AT_ONCE:
            return FoundDeliveries(matching, None)
    return FoundDeliveries(matching, before_job)


async def _find_failed(journal: Journal, search: DeliverySearch, before_job: int | None, most: int) -> FoundDeliveries:
    """Return deliveries that failed, ordered by their last failure; `before_job` is the number of a failed job."""
    matching: list[DeliveryRecord] = []
    for _ in range(MOST_READ // SHOWN):
        batch, before_job = await journal.failures(SHOWN, before_job)
        matching += [record for record in batch if search.accepts(record)]
        if before_job is None or len(matching) >= most:
            break
    return FoundDeliveries(matching, before_job)


async def _locks(records: Records, search: DeliverySearch) -> tuple[str, ...]:
    """Return the locks of the pull request that a search names, none if it names no pull request.

    An index finds deliveries by their lock, so such a search reads no others.
    """
    if search.number is None or not search.repository:
        return ()
    repository_id = await repository_id_of(records, search.repository)
    return locks_of(repository_id, search.number) if repository_id is not None else ()
