"""Scans of a branch: any report of a change requests one, a moment after the first report; they run one by one."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.internal import InternalEvent
from bot.plan.effect import Applied, StoreContext, StoredEffect
from handlers.main_failures.records import NEXT_SCAN, NextScan
from handlers.main_failures.texts import SCAN_PENDING, SCAN_REQUESTED


@dataclass(frozen=True, slots=True)
class ScanEvent:
    """A branch to scan, and when, in seconds since 1970; `asked` identifies the request."""

    branch: str
    at: int
    asked: str = ""


SCAN_EVENT = InternalEvent(
    "nightjar.scan",
    ScanEvent,
    guid=lambda repository, scan: f"scan:{repository}:{scan.branch}:{scan.asked}",
    lock=lambda repository, scan: f"alarms:{repository}:{scan.branch}",
)


@dataclass(frozen=True, slots=True)
class RequestScan(StoredEffect):
    """Request a scan of a branch, `wait` seconds after `at` (in seconds since 1970).

    Requests made while a scan is pending share that scan. Without a `wait`, there is always a new scan. `asked` is the
    GUID of the delivery that asks.
    """

    branch: str
    asked: str
    at: float
    wait: float = 0.0

    @property
    def effect_key(self) -> str:
        """The branch."""
        return f"scan:{self.branch}"

    async def store(self, context: StoreContext) -> Applied:
        """Announce the scan as an internal event, which is handled once, and note its time."""
        number = context.repository.id
        key = NEXT_SCAN.of(number, self.branch)
        if self.wait and is_scan_pending(await context.changes.get(key), self.at, self.wait):
            return Applied(SCAN_PENDING.format(branch=self.branch), changed=False)
        scan_at = self.at + self.wait
        scan, not_before = ScanEvent(self.branch, int(scan_at), self.asked), scan_at if self.wait else None
        new = await context.changes.announce(SCAN_EVENT, context.repository, scan, not_before=not_before)
        if self.wait:
            context.changes.put(key, NextScan(scan_at))
        return Applied(SCAN_REQUESTED.format(branch=self.branch), changed=new)


def is_scan_pending(record: NextScan | None, moment: float, wait: float) -> bool:
    """Return whether a pending scan will see what happened at `moment`, so that no new request is needed.

    A scan that is more than `wait` seconds away does not count: a clock or app.yaml was changed.
    """
    return record is not None and 0 <= record.scan_at - moment <= wait
