"""Track GitHub's rate limits: which request may be sent, and when. No I/O and no clock.

The numbers are GitHub's, minus a margin for the web interface and other programs that use the same installation:
https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from math import floor, inf
from urllib.parse import urlsplit

from bot.core.web_json import seconds_in
from bot.engine.budget import WritePace
from bot.github.errors import Answer
from bot.github.limits.ranks import SHARES, Rank
from bot.github.transport.clock import seconds_of

RETURNS_WITHIN = 30.0
"""Seconds after the planned time for a postponed write to be tried again; then it no longer counts as waiting."""


@dataclass(frozen=True, slots=True)
class HeadWrite:
    """A write about a head: `key` names the written object, `since` is the time of the head, in seconds since 1970."""

    key: str
    since: float


HEAD_WRITE: ContextVar[HeadWrite | None] = ContextVar("head write", default=None)
"""The head write that the running code is making, None if it makes none."""


@contextmanager
def about_head(write: HeadWrite | None) -> Iterator[None]:
    """Make the writes inside the block wait behind those about newer heads; with None they wait behind none."""
    token = HEAD_WRITE.set(write)
    try:
        yield
    finally:
        HEAD_WRITE.reset(token)


class WaitingWrites:
    """The writes of one installation that wait: those about older heads leave room for those about newer heads.

    Times are seconds on one monotonic clock. Each process knows only its own writes: see
    docs/decisions/newest-heads-first.md.
    """

    def __init__(self) -> None:
        self._until: dict[HeadWrite, float] = {}

    def wait(self, write: HeadWrite | None, retry_at: float) -> None:
        """Record that a write is postponed until `retry_at`."""
        if write is not None:
            self._until[write] = retry_at + RETURNS_WITHIN

    def end(self, write: HeadWrite | None) -> None:
        """Record that a write no longer waits."""
        if write is not None:
            self._until.pop(write, None)

    def newer(self, write: HeadWrite | None, moment: float) -> int:
        """Return how many waiting writes are about newer heads, in time linear in the number of waiting writes."""
        if write is None or not self._until:
            return 0
        for waiting in [other for other, until in self._until.items() if until <= moment]:
            del self._until[waiting]
        return sum(waiting.since > write.since for waiting in self._until)


WRITES_PER_MINUTE = 80
WRITES_PER_HOUR = 450  # GitHub's own is 500
REST_POINTS_PER_MINUTE = 900
GRAPHQL_POINTS_PER_MINUTE = 2000
READ_POINTS, WRITE_POINTS = 1, 5
"""Points of a read and of a write; GitHub limits the points per minute, separately for REST and GraphQL."""
WRITE_SPACING = 1.0  # seconds between writes when busy ...
WRITE_BURST = 15  # ... but the bot answers a few people in one minute at once: 15 + 60 is under 80
ANONYMOUS_SHARE = 0.05  # maximum part of the hourly quota for requests to our API without a token
USUAL_QUOTA = 5000  # points an hour: the minimum of any installation, until an answer names its own
FIRST_BACKOFF, LONGEST_BACKOFF = 60.0, 3600.0  # seconds, if GitHub names no time


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of one installation. Enterprise Server sets its own; a sandbox has none."""

    writes_per_minute: int = WRITES_PER_MINUTE
    writes_per_hour: int = WRITES_PER_HOUR
    rest_points_per_minute: int = REST_POINTS_PER_MINUTE
    graphql_points_per_minute: int = GRAPHQL_POINTS_PER_MINUTE
    write_spacing: float = WRITE_SPACING
    write_burst: int = WRITE_BURST
    anonymous_share: float = ANONYMOUS_SHARE


def share_of(limit: int, share: float) -> int:
    """Return a share of a limit in whole requests, at least one: with zero, a rank would wait forever."""
    # A product may be just below the intended whole number: 100 * 0.29 is 28.999999999999996.
    return max(1, floor(limit * share + 1e-9))


LIMITED = "GitHub's rate limit is reached"
EXHAUSTED = "GitHub's hourly quota is used up"
RESERVED = "the rest of GitHub's hourly quota is reserved for webhooks"
ANONYMOUS_SPENT = "anonymous requests have used up their share of GitHub's hourly quota"
PACED = "too many requests in a short time"


@dataclass(frozen=True, slots=True)
class Demand:
    """The cost of a request, its rank, and the head that it is about, if any."""

    resource: str = "core"
    points: int = READ_POINTS
    write: bool = False
    rank: Rank = Rank.EVENT
    head: HeadWrite | None = None


@dataclass(frozen=True, slots=True)
class Quota:
    """The primary limit of one resource, from GitHub's headers; `reset`: seconds since 1970; `ends`: by our clock."""

    resource: str
    limit: int
    remaining: int
    reset: int
    ends: float


def resource_of(url: str) -> str:
    """Return the quota that a URL probably counts against. The headers of its answer name the real one."""
    path = urlsplit(url).path
    # Enterprise Server has its API below a path (`/api/graphql`), so only the end is the same everywhere.
    if path.endswith("/graphql"):
        return "graphql"
    # Exclude `/repos/`: a repository may be named `search`.
    if "/search/" in path and "/repos/" not in path:
        return "code_search" if path.endswith("/search/code") else "search"
    return "core"


def quota_in(answer: Answer, resource: str, moment: float) -> Quota | None:
    """Return the quota in an answer's headers, None if there is none; `resource` is used if they name no resource."""
    headers = answer.headers
    try:
        limit, remaining = int(headers["x-ratelimit-limit"]), int(headers["x-ratelimit-remaining"])
        reset = int(headers["x-ratelimit-reset"])
    except (KeyError, ValueError):
        return None
    if (date := seconds_of(headers.get("date"))) is None:
        return None
    # Compare with GitHub's own clock, because ours may be wrong.
    ends = moment + max(0.0, reset - date) + 1
    return Quota(headers.get("x-ratelimit-resource", resource), limit, remaining, reset, ends)


class SlidingWindow:
    """A sliding window: a total cost of at most `limit` in any period of `seconds`."""

    def __init__(self, limit: int, seconds: float) -> None:
        self.limit = limit
        self._seconds = seconds
        self._entries: list[tuple[float, int]] = []
        self._total = 0

    def earliest(self, moment: float, cost: int = 1, *, limit: float | None = None) -> float:
        """Return the time when there is room for `cost`. Costs booked for later count as if they were spent now."""
        expired = 0
        while expired < len(self._entries) and self._entries[expired][0] <= moment - self._seconds:
            self._total -= self._entries[expired][1]
            expired += 1
        del self._entries[:expired]
        excess = self._total + cost - (self.limit if limit is None else limit)
        if excess <= 0:
            return moment
        for booked_at, spent in self._entries:
            excess -= spent
            if excess <= 0:
                return booked_at + self._seconds
        return inf

    def book(self, moment: float, cost: int = 1) -> None:
        """Count `cost` at a moment, which may be in the future."""
        insort(self._entries, (moment, cost))
        self._total += cost


class TokenBucket:
    """A token bucket: a burst, then one every `spacing` seconds."""

    def __init__(self, spacing: float) -> None:
        self._spacing = spacing
        self._full_at = -inf

    def earliest(self, moment: float, *, burst: int) -> float:
        """Return the time when the next request may be sent, for a caller who may send `burst` at once.

        A burst below 1 adds one spacing for each request below 1.
        """
        return max(moment, self._full_at - self._spacing * (burst - 1))

    def book(self, moment: float) -> None:
        """Count one request at a moment."""
        self._full_at = max(self._full_at, moment) + self._spacing


class Ledger:
    """The state of one installation's limits. Moments are seconds on one monotonic clock."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._points = {
            "rest": SlidingWindow(allowance.rest_points_per_minute, 60),
            "graphql": SlidingWindow(allowance.graphql_points_per_minute, 60),
        }
        self._per_minute = SlidingWindow(allowance.writes_per_minute, 60)
        self._per_hour = SlidingWindow(allowance.writes_per_hour, 3600)
        self._bucket = TokenBucket(allowance.write_spacing)
        # Callers pass the limit each time: it is a share of a quota that is known only from GitHub's answers.
        self._anonymous = SlidingWindow(0, 3600)
        self._waiting = WaitingWrites()
        self._turns: dict[tuple[str, Rank, str], float] = {}
        """When the last refused read is to be tried again, by its resource, its rank, and why it was refused."""
        self._quotas: dict[str, Quota] = {}
        self._not_before = -inf
        self._struck_at = -inf
        self._backoff = 0.0

    def earliest(self, moment: float, demand: Demand, share: float = 1.0) -> tuple[float, str]:
        """Return when the request may be sent, and why not sooner; `share` is the usable part of the write limits."""
        waits = [(moment, PACED), (self._not_before, LIMITED), self._quota_allows(moment, demand)]
        points = self._points_of(demand)
        rank_limit = share_of(points.limit, SHARES[demand.rank].points)
        waits.append((points.earliest(moment, demand.points, limit=rank_limit), PACED))
        if demand.write:
            pace = self._pace_of(demand, moment, share)
            waits.append((self._bucket.earliest(moment, burst=pace.burst), PACED))
            waits.append((self._per_minute.earliest(moment, limit=pace.per_minute), PACED))
            waits.append((self._per_hour.earliest(moment, limit=pace.per_hour), PACED))
        elif demand.rank is Rank.ANONYMOUS:
            limit = self._anonymous_limit(demand.resource)
            allowed_at = self._anonymous.earliest(moment, demand.points, limit=limit)
            # With a share of 0, `allowed_at` is infinite.
            waits.append((min(allowed_at, moment + 3600), ANONYMOUS_SPENT))
        return max(waits, key=lambda wait: wait[0])

    def book(self, moment: float, demand: Demand) -> None:
        """Count a request that will be sent at `moment`, which `earliest` returned."""
        self._points_of(demand).book(moment, demand.points)
        if demand.write:
            self._waiting.end(demand.head)
            for limit in (self._bucket, self._per_minute, self._per_hour):
                limit.book(moment)
        elif demand.rank is Rank.ANONYMOUS:
            self._anonymous.book(moment, demand.points)

    def turn(self, allowed_at: float, demand: Demand, reason: str) -> float:
        """Return when to try again what is refused until `allowed_at`, for a reason that `earliest` returned.

        A read goes behind those of its rank that were refused before it, at the pace at which points come back.
        Otherwise all of them would try again for each of the few that may be sent. Writes have an order of their own:
        docs/decisions/newest-heads-first.md. Nothing tries again for those who asked without a token.
        """
        if demand.write or demand.rank is Rank.ANONYMOUS:
            return allowed_at
        points_per_minute = share_of(self._points_of(demand).limit, SHARES[demand.rank].points)
        key = (demand.resource, demand.rank, reason)
        self._turns[key] = max(allowed_at, self._turns.get(key, -inf) + 60 * demand.points / points_per_minute)
        return self._turns[key]

    def put_off(self, retry_at: float, demand: Demand) -> None:
        """Record that a request will be retried at `retry_at`, so that writes about older heads leave room for it."""
        if demand.write:
            self._waiting.wait(demand.head, retry_at)

    def learn(self, quota: Quota, moment: float) -> None:
        """Record a quota. Answers arrive out of order, so a quota that is older than the current one is ignored."""
        current = self._quotas.get(quota.resource)
        if current is not None and moment < current.ends:
            if quota.reset < current.reset:
                return
            if quota.reset == current.reset and quota.remaining > current.remaining:
                return
        self._quotas[quota.resource] = quota

    def blocked(self, moment: float) -> float:
        """Return the seconds for which GitHub accepts no request of this installation."""
        return self._not_before - moment

    def succeed(self, sent_at: float) -> None:
        """Record that a request was not limited, so that the next back-off starts at the minimum."""
        if sent_at > self._struck_at:
            self._backoff = 0.0

    def strike(self, moment: float, sent_at: float, retry_after: float | None) -> float:
        """Pause the whole installation after a rate-limited answer; return the seconds.

        `retry_after` is the wait that GitHub named. Without it, the pause doubles with each limited answer in a row;
        answers to requests that were in flight together count as one.
        """
        if retry_after is None and sent_at > self._struck_at:
            retry_after = self._backoff = min(2 * self._backoff or FIRST_BACKOFF, LONGEST_BACKOFF)
            self._struck_at = moment
        elif retry_after is None:
            retry_after = max(self._not_before - moment, 0.0) or FIRST_BACKOFF
        self._not_before = max(self._not_before, moment + retry_after)
        return self._not_before - moment

    def shared_pace(self, demand: Demand, moment: float) -> WritePace | None:
        """Return the pace that all processes share for such a request; None if the budget is not shared."""
        if demand.write:
            return self._pace_of(demand, moment)
        if demand.rank is Rank.ANONYMOUS:
            limit = max(1, self._anonymous_limit(demand.resource))
            return WritePace(per_minute=limit, per_hour=limit, burst=limit, spacing=0.0)
        return None

    def _pace_of(self, demand: Demand, moment: float, share: float = 1.0) -> WritePace:
        rank_share, allowance, newer = SHARES[demand.rank], self._allowance, self._waiting.newer(demand.head, moment)
        # Waiting writes about newer heads count as already sent. A burst below 1 adds spacings
        # (`TokenBucket.earliest`).
        return WritePace(
            per_minute=max(1, share_of(allowance.writes_per_minute, rank_share.writes * share) - newer),
            per_hour=max(1, share_of(allowance.writes_per_hour, rank_share.writes * share) - newer),
            burst=share_of(allowance.write_burst, rank_share.burst * share) - newer,
            spacing=allowance.write_spacing,
        )

    def _points_of(self, demand: Demand) -> SlidingWindow:
        return self._points["graphql" if demand.resource == "graphql" else "rest"]

    def _quota_allows(self, moment: float, demand: Demand) -> tuple[float, str]:
        quota = self._quotas.get(demand.resource)
        if quota is None or moment >= quota.ends:
            return moment, PACED
        if quota.remaining <= 0:
            return quota.ends, EXHAUSTED
        reserve = quota.limit - share_of(quota.limit, SHARES[demand.rank].reads)
        return (quota.ends, RESERVED) if quota.remaining <= reserve else (moment, PACED)

    def _anonymous_limit(self, resource: str) -> int:
        quota = self._quotas.get(resource)
        return int((quota.limit if quota is not None else USUAL_QUOTA) * self._allowance.anonymous_share)


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that GitHub reported, in seconds. `ends_in`: for a used-up quota; `retry_after`: as GitHub asked."""

    retry_after: float | None = None
    ends_in: float | None = None


def limit_in(answer: Answer, demand: Demand, quota: Quota | None, moment: float) -> Limit | None:
    """Return the limit that an answer reports, None if it reports none: a plain 403 is a missing permission.

    Judged by status, headers and the machine-readable fields of the body, never by its message: see
    docs/decisions/rate-limit-detection.md.
    """
    # Only GraphQL reports limits with a 200; the body of a REST answer may be anybody's file.
    if answer.status not in (403, 429) and not (demand.resource == "graphql" and _names_a_limit(answer)):
        return None
    retry_after = seconds_in(answer.headers.get("retry-after"))
    if quota is not None and quota.remaining <= 0:
        return Limit(ends_in=max(retry_after or 0.0, quota.ends - moment))
    if retry_after is not None:
        return Limit(retry_after=retry_after)
    # Read this header again: `quota` is None if another of its headers is missing or not a number.
    exhausted = answer.headers.get("x-ratelimit-remaining") == "0"
    return Limit() if answer.status != 403 or exhausted or _names_a_limit(answer) else None


# The documentation pages that GitHub's answers link. go-github uses the same test for secondary limits.
_LIMIT_PAGES = ("secondary-rate-limits", "abuse-rate-limits")


def _names_a_limit(answer: Answer) -> bool:
    """Return whether the body links the page on secondary limits or has a GraphQL error of type RATE_LIMITED."""
    # Search the bytes first: most answers name no limit, and decoding each again would waste time.
    if b"rate-limits" not in answer.body and b"RATE_LIMITED" not in answer.body:
        return False
    data = answer.json()
    if not isinstance(data, Mapping):
        return False
    if str(data.get("documentation_url")).endswith(_LIMIT_PAGES):
        return True
    errors = data.get("errors")
    return isinstance(errors, list) and any(
        isinstance(error, Mapping) and error.get("type") == "RATE_LIMITED" for error in errors
    )
