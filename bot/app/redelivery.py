"""Ask GitHub to redeliver webhooks that did not reach us: GitHub does not retry by itself.

https://docs.github.com/en/webhooks/using-webhooks/automatically-redelivering-failed-deliveries-for-a-github-app-webhook

A sweep reads the App's deliveries back to where the last one began; beyond the newest thousand, only those that
failed. It collects the GUIDs that are not in our inbox and had no attempt with a 2xx, and asks GitHub to send them
again: events of pull requests and comments first, then the oldest. It asks for a GUID again after a pause that doubles.
The missing deliveries are stored as a record, with what a sweep had no time to read, so they survive restarts and any
replica can continue. docs/decisions/redelivery.md
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from urllib.parse import parse_qs, urlsplit

import structlog
from gidgethub import BadRequest

from bot.app.texts import CURSOR_GONE, LIST_TOO_LONG, LIST_TOO_SLOW, READ_LATER
from bot.core.errors import TryAgain
from bot.core.events import Payload
from bot.core.metrics import Metrics
from bot.engine.records import Record, Records
from bot.github.client import GitHub
from bot.github.errors import Unavailable
from bot.github.limits.ledger import WRITE_BURST, WRITE_SPACING
from bot.github.limits.ranks import Rank, ranked

CRON = "* * * * *"
"""When a sweep starts. It also runs at every start of a worker."""
WINDOW = 3 * 86400.0
"""Seconds for which GitHub can redeliver a delivery."""
OVERLAP = 120.0
"""Seconds that a sweep reads back beyond the newest attempt of the last one. The list is not strictly ordered: it shows
an attempt under the time when it began, once it has ended, and GitHub waits ten seconds for an answer."""
FIRST_PAUSE, LONGEST_PAUSE = 240.0, 6 * 3600.0
"""Seconds before a GUID is requested again, doubled each time: a delivery that we refuse stays refused."""
MOST_DOUBLINGS = 7
"""As many as the longest pause needs; 2.0 ** 1024 would overflow."""
PER_SWEEP = 240
"""The most redeliveries that one sweep requests: four minutes of work. The next sweep continues a minute later."""
PER_NOTE = 25
"""Redeliveries after which a sweep stores its progress: after a crash, at most these are requested again."""
URGENT = frozenset({"pull_request", "issue_comment", "pull_request_review", "pull_request_review_comment", "issues"})
"""Events of people who wait for an answer of the bot."""
MAX_PAGES = 1_000
"""The most pages of GitHub's list that one sweep reads."""
PAGES_OF_ALL = 10
"""Pages after which a sweep goes on with the failures alone, so that busy hours cost no more than quiet ones."""
MOST_PARTS = 20
"""Parts of the list that are still to be read; further ones are joined with the one before."""
READING_SECONDS = 300.0
"""Seconds for which a sweep reads the list; with the requests after it, it stays below the time limit of a job."""
MOST_MISSING = 10_000
"""GUIDs to store as missing. If there are more, a later sweep finds the others again."""

DELIVERIES = "/app/hook/deliveries{?status,cursor}"
FAILURE = "failure"
"""Lists deliveries with a status code from 400 to 599; GitHub has 502 and 504 for a receiver that it cannot reach."""
ATTEMPTS = "/app/hook/deliveries/{delivery_id}/attempts"

SeenBefore = Callable[[Sequence[str]], Awaitable[Collection[str]]]
"""Returns those of the GUIDs that are in our inbox, in one query."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One try of GitHub's to deliver; `at` is GitHub's time in seconds since the epoch."""

    id: int
    guid: str
    at: float
    arrived: bool
    event: str = ""

    @classmethod
    def of(cls, item: Payload) -> DeliveryAttempt:
        """Read an item of GitHub's list; a status code other than 2xx is one that we, or a proxy, did not accept."""
        code = item.integer("status_code") if item.has("status_code") else 0
        delivered_at = datetime.fromisoformat(item.string("delivered_at")).timestamp()
        return cls(
            id=item.integer("id"),
            guid=item.string("guid"),
            at=delivered_at,
            arrived=200 <= code < 300,
            event=item.text("event"),
        )


@dataclass(frozen=True, slots=True)
class MissingDelivery:
    """A delivery that has not reached us: its newest attempt, when it was first tried, how often we asked for it."""

    guid: str
    id: int
    first: float
    last: float
    asked: int = 0
    event: str = ""

    @property
    def askable(self) -> float:
        """When it may be asked for, in seconds since 1970."""
        doublings = min(self.asked - 1, MOST_DOUBLINGS)
        pause = min(FIRST_PAUSE * 2**doublings, LONGEST_PAUSE) if self.asked else 0.0
        return self.last + pause

    @property
    def turn(self) -> tuple[bool, float, int]:
        """The sort key: first deliveries for which people wait, then the oldest."""
        return self.event not in URGENT, self.first, self.id


@dataclass(frozen=True, slots=True)
class UnreadPart:
    """A part of GitHub's list: from the page at `cursor`, or from the newest one, back to `since`.

    `failures`: only the failed deliveries.
    """

    since: float
    cursor: str = ""
    failures: bool = False


@dataclass(frozen=True, slots=True)
class MissingDeliveries:
    """The deliveries that did not reach us, and the moment back to which the next sweep reads GitHub's list.

    `unread` are the parts of the list before that moment which no sweep has had time to read, newest first.
    """

    since: float = 0.0
    missing: tuple[MissingDelivery, ...] = ()
    unread: tuple[UnreadPart, ...] = ()


MISSING = Record("missing-deliveries", 1, MissingDeliveries, "the deliveries that have not reached us", days=None)


@dataclass(frozen=True, slots=True)
class RedeliverySweep:
    """The result of a sweep: GUIDs asked for, GUIDs that arrived after we asked, GUIDs still missing."""

    asked: int
    recovered: int
    missing: int


def still_missing(
    earlier: Mapping[str, MissingDelivery],
    attempts: Iterable[DeliveryAttempt],
    stored_guids: Collection[str],
    moment: float,
) -> dict[str, MissingDelivery]:
    """Return the missing deliveries by GUID: those before and those that failed since, without those that arrived."""
    missing = dict(earlier)
    arrived = set(stored_guids)
    for attempt in attempts:
        if attempt.arrived:
            arrived.add(attempt.guid)
        entry = missing.get(attempt.guid) or MissingDelivery(
            attempt.guid, attempt.id, attempt.at, attempt.at, event=attempt.event
        )
        missing[attempt.guid] = replace(
            entry,
            # Each attempt has an ID of its own under the same GUID; GitHub redelivers by the ID of an attempt.
            id=max(entry.id, attempt.id),
            first=min(entry.first, attempt.at),
            last=max(entry.last, attempt.at),
        )
    remaining = [m for m in missing.values() if m.guid not in arrived and m.first > moment - WINDOW]
    return {m.guid: m for m in sorted(remaining, key=lambda m: m.turn)}


class Redelivery:
    """Finds missed deliveries and asks GitHub to send them again; runs on one replica at a time."""

    def __init__(
        self,
        github: GitHub,
        records: Records,
        stored_guids: SeenBefore,
        metrics: Metrics,
        *,
        pace: float = WRITE_SPACING,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        most: int = MOST_MISSING,
    ) -> None:
        """Use the client of the App itself; `pace` is in seconds from one request for a redelivery to the next.

        GitHub asks for a second between writes:
        https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
        `clock` is monotonic, in seconds; `now` gives seconds since 1970; `most` is how many GUIDs are remembered.
        """
        self._github = github
        self._records = records
        self._seen_before = stored_guids
        self._metrics = metrics
        self._pace = pace
        self._clock = clock
        self._now = now
        self._most = most
        self._newest: DeliveryAttempt | None = None
        """The newest attempt that the last sweep of this process saw."""

    async def sweep(self) -> RedeliverySweep:
        """Look for missed deliveries once.

        Raises `TryAgain` or gidgethub's errors if GitHub does not answer; the stored state stays as it was.
        """
        moment = self._now()
        noted = await self._records.get(MISSING.of()) or MissingDeliveries()
        earlier = {entry.guid: entry for entry in noted.missing}
        with ranked(Rank.SWEEP):
            attempts, unread = await self._read_all(noted, moment)
            suspects = earlier.keys() | {attempt.guid for attempt in attempts if not attempt.arrived}
            stored_guids = await self._seen_before(sorted(suspects)) if suspects else ()
            missing = still_missing(earlier, attempts, stored_guids, moment)
            recovered = sum(
                1 for m in earlier.values() if m.asked and m.guid not in missing and m.first > moment - WINDOW
            )
            for lost in earlier.values():
                if lost.first <= moment - WINDOW and lost.guid not in stored_guids:
                    log.error("missed delivery is lost", delivery=lost.guid, reason="GitHub no longer offers it")
            self._newest = attempts[0] if attempts else None
            newest = max((attempt.at for attempt in attempts), default=None)
            # Use the times in GitHub's list, because our own clock may be wrong.
            since = newest - OVERLAP if newest is not None else noted.since
            missing, since = self._cut(missing, since)
            # Store the list before the first request: if the process dies meanwhile, nobody has to read the list again.
            await self._note(since, missing, unread, requested=0, recovered=recovered)
            askable = [m for m in missing.values() if m.askable <= moment][:PER_SWEEP]
            requested = 0
            for first in range(0, len(askable), PER_NOTE):
                some = askable[first : first + PER_NOTE]
                done = await self._ask(some, missing, moment, at_once=max(0, WRITE_BURST - first))
                requested += done
                # The times of these requests are stored before the next ones, or a crash would request all of them
                # again.
                await self._note(since, missing, unread, requested=done, recovered=0)
                if missing[some[-1].guid] == some[-1]:  # GitHub accepts no more for now
                    break
        if requested or recovered:
            log.info("missed deliveries", asked=requested, recovered=recovered, missing=len(missing))
        return RedeliverySweep(requested, recovered, len(missing))

    def _cut(self, missing: dict[str, MissingDelivery], since: float) -> tuple[dict[str, MissingDelivery], float]:
        """Return the deliveries to store, and a `since` from which the next sweep finds the others again."""
        first = dict(islice(missing.items(), self._most))
        deferred_times = [m.first for guid, m in missing.items() if guid not in first]
        if deferred_times:
            log.warning("too many missed deliveries to store; later sweeps find the others", others=len(deferred_times))
        return first, min([since, *deferred_times])

    async def has_work(self) -> bool:
        """Return whether deliveries are missing, or GitHub lists an attempt that no sweep of this process has seen.

        Raises GitHub's errors.
        """
        noted = await self._records.get(MISSING.of()) or MissingDeliveries()
        if noted.missing:
            return True
        with ranked(Rank.SWEEP):
            async with aclosing(self._github.getiter(DELIVERIES, max_pages=1)) as items:
                async for item in items:
                    return DeliveryAttempt.of(Payload(item, "delivery")) != self._newest
        return False

    async def _note(
        self,
        since: float,
        missing: Mapping[str, MissingDelivery],
        unread: tuple[UnreadPart, ...],
        *,
        requested: int,
        recovered: int,
    ) -> None:
        """Store the progress of a sweep, and count it in the metrics."""
        await self._records.put(MISSING.of(), MissingDeliveries(since, tuple(missing.values()), unread))
        self._metrics.redelivered(requested=requested, recovered=recovered)
        if requested:
            log.info("redeliveries asked for", asked=requested, missing=len(missing))

    async def missing(self) -> int:
        """Return how many deliveries were missing after the last sweep of any replica."""
        return len((await self._records.get(MISSING.of()) or MissingDeliveries()).missing)

    async def _read_all(
        self, noted: MissingDeliveries, moment: float
    ) -> tuple[list[DeliveryAttempt], tuple[UnreadPart, ...]]:
        """Return the attempts since the last sweep and those of earlier unread parts; and the parts still to be read.

        A job that runs out of time notes nothing, so reading ends after a number of seconds and of pages.
        """
        reading = _Reading(self._github, self._clock)
        newest = UnreadPart(max(noted.since, moment - WINDOW))
        # Without a record, the inbox may be new as well. Then only the successes in the list show what has arrived.
        is_first = noted.since <= 0
        rest = await reading.read(newest, MAX_PAGES if is_first else PAGES_OF_ALL)
        if rest is not None and not is_first and reading.has_time:
            rest = await reading.read(replace(newest, failures=True))
        parts = [rest] if rest is not None else []
        for part in noted.unread:
            current = replace(part, since=max(part.since, moment - WINDOW))
            rest = await reading.read(current) if reading.has_time and not parts else current
            parts += [rest] if rest is not None else []
        if parts:
            log.warning(READ_LATER, reason=reading.reason, read=len(reading.attempts), parts=len(parts))
        return reading.attempts, _joined(parts)

    async def _ask(
        self, askable: Sequence[MissingDelivery], missing: dict[str, MissingDelivery], moment: float, *, at_once: int
    ) -> int:
        """Ask for each once, update `missing`, and return for how many; stop if GitHub accepts no more.

        The first `at_once` are asked for without a pause: after a short downtime there are only a few.
        """
        requested = 0
        for number, delivery in enumerate(askable):
            try:
                # A redelivery creates no content, so the limit of 500 an hour does not apply, and a repeat has the same
                # GUID.
                await self._github.post_repeatable(ATTEMPTS, {"delivery_id": str(delivery.id)}, data={})
            except (TryAgain, BadRequest) as error:
                if not _is_about_this_one(error):
                    log.warning("redelivery put off", delivery=delivery.guid, reason=str(error))
                    break
                log.warning("redelivery refused", delivery=delivery.guid, reason=str(error))
            else:
                requested += 1
                log.info("redelivery asked for", delivery=delivery.guid)
            if number >= at_once:
                await self._github.sleep(self._pace)
            missing[delivery.guid] = replace(delivery, asked=delivery.asked + 1, last=max(delivery.last, moment))
        return requested


class _Reading:
    """What one sweep reads of GitHub's list. `clock` is monotonic, in seconds."""

    def __init__(self, github: GitHub, clock: Callable[[], float]) -> None:
        self._github = github
        self._clock = clock
        self._until = clock() + READING_SECONDS
        self._pages = 0
        self.attempts: list[DeliveryAttempt] = []
        self.reason = ""
        """Why the sweep stopped reading; empty while it may go on."""

    @property
    def has_time(self) -> bool:
        """Whether the sweep may read another page."""
        if not self.reason and self._pages >= MAX_PAGES:
            self.reason = LIST_TOO_LONG.format(pages=MAX_PAGES)
        elif not self.reason and self._pages and self._clock() >= self._until:
            self.reason = LIST_TOO_SLOW.format(seconds=READING_SECONDS)
        return not self.reason

    async def read(self, part: UnreadPart, pages: int = MAX_PAGES) -> UnreadPart | None:
        """Add the attempts of a part, newest first; return what is left of it after this many pages, None for nothing.

        Raises the errors of the GitHub client if it has read nothing yet.
        """
        for _ in range(pages):
            if not self.has_time:
                return part
            try:
                items, following = await self._github.getpage(DELIVERIES, _query(part))
            except TryAgain as error:
                if not self._pages:
                    raise
                self.reason = str(error)
                return part
            except BadRequest as error:
                if not part.cursor:
                    raise
                items, following = [], None
                log.warning(CURSOR_GONE, reason=str(error))
            if not items and part.cursor:
                # GitHub no longer knows where the last sweep was: read from the newest delivery again.
                part = replace(part, cursor="")
                continue
            self._pages += 1
            attempts = [DeliveryAttempt.of(Payload(item, "delivery")) for item in items]
            self.attempts += [attempt for attempt in attempts if attempt.at >= part.since]
            cursor = _cursor_of(following)
            if not cursor or any(attempt.at < part.since for attempt in attempts):
                return None
            part = replace(part, cursor=cursor)
        return part


def _query(part: UnreadPart) -> dict[str, str]:
    return ({"status": FAILURE} if part.failures else {}) | ({"cursor": part.cursor} if part.cursor else {})


def _cursor_of(address: str | None) -> str:
    """Return the cursor in the address of a next page, empty if there is none."""
    return next(iter(parse_qs(urlsplit(address or "").query).get("cursor", ())), "")


def _joined(parts: Sequence[UnreadPart]) -> tuple[UnreadPart, ...]:
    """Return a limited number of parts: one that reads from where the newest of the others begins to where all end."""
    separate, rest = tuple(parts[: MOST_PARTS - 1]), parts[MOST_PARTS - 1 :]
    if not rest:
        return separate
    since, failures = min(part.since for part in rest), all(part.failures for part in rest)
    # A list of failures has other pages than one of all deliveries, so its cursor does not fit there.
    cursor = rest[0].cursor if failures == rest[0].failures else ""
    return (*separate, UnreadPart(since, cursor, failures))


def _is_about_this_one(error: Exception) -> bool:
    """Return whether GitHub refuses to redeliver this one, such as for its age, but may redeliver the next.

    GitHub may also answer 5xx for one delivery each time: the bot asks for that one after its pause, and for the others
    now.
    """
    return isinstance(error, BadRequest) or (isinstance(error, Unavailable) and error.answering and error.sent)
