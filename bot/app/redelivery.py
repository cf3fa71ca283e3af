"""Have GitHub send again what never reached us: it does not do so by itself.

https://docs.github.com/en/webhooks/using-webhooks/automatically-redelivering-failed-deliveries-for-a-github-app-webhook

A sweep reads the App's deliveries back to where the last one began, notes the GUIDs of which no attempt was answered
with 2xx and which are not in our inbox either, and asks for them again: pull requests and comments first, of those the
oldest, and one GUID again after a pause that doubles. What is still missing is kept with the records, so that it
survives restarts and moves between replicas.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

import structlog
from gidgethub import BadRequest

from bot.core.errors import TryAgain
from bot.core.metrics import Metrics
from bot.core.payload import Payload
from bot.engine.records import Record, Records
from bot.github.client import GitHub
from bot.github.errors import TooManyPages, Unavailable
from bot.github.limits import WRITE_BURST, WRITE_SPACING
from bot.github.ranks import Rank, ranked

CRON = "* * * * *"
"""When a sweep begins, besides every start of a worker."""
WINDOW = 3 * 86400.0
"""Seconds for which GitHub keeps a delivery and offers it again."""
OVERLAP = 600.0
"""Seconds that a sweep looks back behind the newest attempt of the last one: the list's order is not strict."""
FIRST_PAUSE, LONGEST_PAUSE = 240.0, 6 * 3600.0
"""Seconds before a GUID is asked for again, doubled each time: what we refuse ourselves we would refuse for ever."""
PER_SWEEP = 240
"""Redeliveries asked for by one sweep: four minutes of work. The next sweep, a minute later at most, goes on."""
PER_NOTE = 25
"""Redeliveries after which a sweep notes how far it is: after a crash, these are asked for again at most."""
URGENT = frozenset({"pull_request", "issue_comment", "pull_request_review", "pull_request_review_comment", "issues"})
"""Events by which people talk to the bot: somebody waits for an answer."""
MAX_PAGES = 1_000
READING_SECONDS = 300.0
"""Seconds for which a sweep reads the list: with what it asks for afterwards, it stays below the limit of a job."""
MOST_MISSING = 10_000
"""GUIDs that are remembered as missing. Should there be more, a later sweep reads the others again."""
OLDER = "older deliveries are not looked at"
TOOK_LONG = f"the list took longer than {READING_SECONDS:g} s"

DELIVERIES = "/app/hook/deliveries"
ATTEMPTS = "/app/hook/deliveries/{delivery_id}/attempts"

Known = Callable[[Sequence[str]], Awaitable[Collection[str]]]
"""Returns those of the GUIDs that are in our inbox, in one query."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of GitHub's to deliver; `at` is GitHub's time in seconds since the epoch."""

    id: int
    guid: str
    at: float
    arrived: bool
    event: str = ""

    @classmethod
    def of(cls, item: Payload) -> Attempt:
        """Read an item of GitHub's list; a status code other than 2xx is one that we, or a proxy, did not accept."""
        code = item.integer("status_code") if item.has("status_code") else 0
        at = datetime.fromisoformat(item.string("delivered_at")).timestamp()
        return cls(
            id=item.integer("id"), guid=item.string("guid"), at=at, arrived=200 <= code < 300, event=item.text("event")
        )


@dataclass(frozen=True, slots=True)
class Missing:
    """A delivery that has not reached us: its newest attempt, when it was first tried, how often we asked for it."""

    guid: str
    id: int
    first: float
    last: float
    asked: int = 0
    event: str = ""

    @property
    def due(self) -> float:
        """When it may be asked for, in seconds since the epoch."""
        pause = min(FIRST_PAUSE * 2 ** (self.asked - 1), LONGEST_PAUSE) if self.asked else 0.0
        return self.last + pause

    @property
    def turn(self) -> tuple[bool, float, int]:
        """What it is sorted by: those for which people wait come first, then the oldest."""
        return self.event not in URGENT, self.first, self.id


@dataclass(frozen=True, slots=True)
class MissingDeliveries:
    """The deliveries that have not reached us, and from when on the next sweep reads GitHub's list."""

    since: float = 0.0
    missing: tuple[Missing, ...] = ()


MISSING = Record("missing-deliveries", 1, MissingDeliveries, "the deliveries that have not reached us", days=None)


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep did: GUIDs asked for again, GUIDs that have arrived since we asked, GUIDs still missing."""

    asked: int
    recovered: int
    missing: int


def still_missing(
    before: Mapping[str, Missing], attempts: Iterable[Attempt], known: Collection[str], now: float
) -> dict[str, Missing]:
    """Return what has not reached us, by GUID: what was missing before and what newly failed, less what arrived."""
    missing = dict(before)
    arrived = set(known)
    for attempt in attempts:
        if attempt.arrived:
            arrived.add(attempt.guid)
        entry = missing.get(attempt.guid) or Missing(
            attempt.guid, attempt.id, attempt.at, attempt.at, event=attempt.event
        )
        missing[attempt.guid] = replace(
            entry,
            id=max(entry.id, attempt.id),
            first=min(entry.first, attempt.at),
            last=max(entry.last, attempt.at),
        )
    kept = [m for m in missing.values() if m.guid not in arrived and m.first > now - WINDOW]
    return {m.guid: m for m in sorted(kept, key=lambda m: m.turn)}


class Redelivery:
    """Finds what never reached us and has GitHub send it again; one replica at a time."""

    def __init__(
        self,
        github: GitHub,
        records: Records,
        known: Known,
        metrics: Metrics,
        *,
        pace: float = WRITE_SPACING,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST_MISSING,
    ) -> None:
        """Use the client of the App itself; `pace` is in seconds from one request for a redelivery to the next.

        GitHub asks for a second between writes:
        https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
        `clock` is monotonic, in seconds; `most` is how many GUIDs are remembered.
        """
        self._github = github
        self._records = records
        self._known = known
        self._metrics = metrics
        self._pace = pace
        self._clock = clock
        self._most = most

    async def sweep(self) -> Swept:
        """Look for missed deliveries once.

        Raises `TryAgain` or gidgethub's errors where GitHub cannot be asked; then nothing is forgotten.
        """
        now = time.time()
        noted = await self._records.get(MISSING.of()) or MissingDeliveries()
        before = {entry.guid: entry for entry in noted.missing}
        with ranked(Rank.SWEEP):
            attempts = await self._read(max(noted.since, now - WINDOW))
            suspects = before.keys() | {attempt.guid for attempt in attempts if not attempt.arrived}
            known = await self._known(sorted(suspects)) if suspects else ()
            missing = still_missing(before, attempts, known, now)
            recovered = sum(1 for m in before.values() if m.asked and m.guid not in missing and m.first > now - WINDOW)
            for lost in before.values():
                if lost.first <= now - WINDOW and lost.guid not in known:
                    log.error("missed delivery is lost", delivery=lost.guid, reason="GitHub no longer offers it")
            newest = max((attempt.at for attempt in attempts), default=None)
            since = newest - OVERLAP if newest is not None else noted.since
            missing, since = self._cut(missing, since)
            await self._note(since, missing, asked=0, recovered=recovered)
            due = [m for m in missing.values() if m.due <= now][:PER_SWEEP]
            asked = 0
            for first in range(0, len(due), PER_NOTE):
                some = due[first : first + PER_NOTE]
                done = await self._ask(some, missing, now, at_once=max(0, WRITE_BURST - first))
                asked += done
                await self._note(since, missing, asked=done, recovered=0)
                if missing[some[-1].guid] == some[-1]:  # GitHub wants no more for now
                    break
        if asked or recovered:
            log.info("missed deliveries", asked=asked, recovered=recovered, missing=len(missing))
        return Swept(asked, recovered, len(missing))

    def _cut(self, missing: dict[str, Missing], since: float) -> tuple[dict[str, Missing], float]:
        """Return what is remembered, and a `since` from which the next sweep finds the others again."""
        first = dict(islice(missing.items(), self._most))
        others = [m.first for guid, m in missing.items() if guid not in first]
        if others:
            log.warning("more missed deliveries than are remembered; later sweeps find them", others=len(others))
        return first, min([since, *others])

    async def _note(self, since: float, missing: Mapping[str, Missing], *, asked: int, recovered: int) -> None:
        """Keep how far a sweep is, and tell the metrics."""
        await self._records.put(MISSING.of(), MissingDeliveries(since, tuple(missing.values())))
        self._metrics.redelivered(asked=asked, recovered=recovered)
        if asked:
            log.info("redeliveries asked for", asked=asked, missing=len(missing))

    async def missing(self) -> int:
        """Return how many deliveries were missing after the last sweep, whichever replica made it."""
        return len((await self._records.get(MISSING.of()) or MissingDeliveries()).missing)

    async def _read(self, since: float) -> list[Attempt]:
        """Return the attempts since then; GitHub lists the newest first.

        A list that is too long is read as far as pages and time allow: a job that runs out of time notes nothing.
        """
        attempts: list[Attempt] = []
        until = self._clock() + READING_SECONDS
        try:
            async with aclosing(self._github.getiter(DELIVERIES, max_pages=MAX_PAGES)) as items:
                async for item in items:
                    attempt = Attempt.of(Payload(item, "delivery"))
                    if attempt.at < since:
                        break
                    attempts.append(attempt)
                    if self._clock() >= until:
                        log.warning(
                            OLDER, reason=f"the list took longer than {READING_SECONDS:g} s", read=len(attempts)
                        )
                        break
        except TooManyPages as error:
            log.warning(OLDER, reason=str(error), read=len(attempts))
        return attempts

    async def _ask(self, due: Sequence[Missing], missing: dict[str, Missing], now: float, *, at_once: int) -> int:
        """Ask for each once, note that in `missing`, and return for how many; stop where GitHub wants no more.

        The first `at_once` are asked for without a pause: after a short stop there are only a few.
        """
        asked = 0
        for number, one in enumerate(due):
            try:
                # It makes no content that GitHub's limit of 500 an hour is about, and may happen twice: the GUID stays.
                await self._github.post_repeatable(ATTEMPTS, {"delivery_id": str(one.id)}, data={})
            except (TryAgain, BadRequest) as error:
                if not _is_about_this_one(error):
                    log.warning("redelivery put off", delivery=one.guid, reason=str(error))
                    break
                log.warning("redelivery refused", delivery=one.guid, reason=str(error))
            else:
                asked += 1
                log.info("redelivery asked for", delivery=one.guid)
            if number >= at_once:
                await self._github.sleep(self._pace)
            missing[one.guid] = replace(one, asked=one.asked + 1, last=max(one.last, now))
        return asked


def _is_about_this_one(error: Exception) -> bool:
    """Say whether GitHub cannot redeliver one delivery, such as for its age, while it may redeliver the next.

    It may also answer 5xx for one delivery each time. Its turn comes again after its pause, and the others do not wait.
    """
    return isinstance(error, BadRequest) or (isinstance(error, Unavailable) and error.answering and error.sent)
