"""Record all requests to the sandbox, for tests and benchmarks that count them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sandbox.world import World

# https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#calculating-points-for-the-secondary-rate-limit
READ_POINTS, WRITE_POINTS = 1, 5
TokenKind = Literal["none", "app", "installation", "person", "invalid"]


@dataclass(frozen=True)
class Violation:
    """Something that GitHub's rules forbid: a client's `request`, or the sandbox's own `response` or `webhook`."""

    kind: Literal["request", "response", "webhook"]
    route: str
    problem: str

    def __str__(self) -> str:
        return f"{self.kind} {self.route}: {self.problem}"


@dataclass
class Request:
    """One request and its answer; `status` is None while it runs and 0 if the connection was dropped."""

    method: str
    route: str
    path: str
    token: TokenKind
    received_at: datetime
    status: int | None = None
    id: str = ""

    @property
    def points(self) -> int:
        """Return the points of the request under the secondary limit."""
        return READ_POINTS if self.method in {"GET", "HEAD", "OPTIONS"} else WRITE_POINTS

    def __str__(self) -> str:
        return f"{self.method} {self.path} → {self.status} ({self.token})"


class RequestJournal:
    """Every API request in the order of arrival; `route` is the template, as in GitHub's documentation.

    `most_in_flight` is the greatest number of requests that ever ran at the same time.
    """

    def __init__(self, github: World) -> None:
        self._github = github
        self.records: list[Request] = []
        self.in_flight = 0
        self.most_in_flight = 0

    def add(self, record: Request) -> None:
        """Record a request that has just arrived."""
        self.records.append(record)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self._github.changed()

    def finish(self, record: Request, status: int) -> None:
        """Note how a request ended."""
        record.status = status
        self.in_flight -= 1
        self._github.changed()

    def count(self, method: str = "", route: str = "") -> int:
        """Return the number of requests, of one method or route if given."""
        return sum(method in {"", r.method} and route in {"", r.route} for r in self.records)

    def counts(self) -> Counter[str]:
        """Return the number of requests by `METHOD route`."""
        return Counter(f"{record.method} {record.route}" for record in self.records)

    @property
    def of_installation(self) -> list[Request]:
        """Return the requests with an installation's token: without those for tokens, and those of the bot's clock.

        Lists of the installation itself are left out too: a bot reads them at times of its own.
        """
        return [
            record
            for record in self.records
            if record.token == "installation" and record.route != "/installation/repositories"
        ]

    @property
    def writes(self) -> list[Request]:
        """Return the requests with a writing method, without those for tokens."""
        return [r for r in self.records if r.points == WRITE_POINTS and not r.route.endswith("/access_tokens")]

    @property
    def points(self) -> int:
        """Return the points of all requests under the secondary limit."""
        return sum(record.points for record in self.records)

    def clear(self) -> None:
        """Remove all records, to count from now on."""
        self.records.clear()
        self.most_in_flight = self.in_flight
