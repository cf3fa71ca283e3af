"""A bot to which nothing happens neither writes nor sends requests nor wakes up more than its goals allow."""

from __future__ import annotations

import pytest

from bot.engine.worker.supervisor import WorkerPace
from tests.app.idle_hour import HOUR, Idled, idle_hour
from tests.bucket import World
from tests.simulated_hours import in_simulated_time

MOST_ROWS, MOST_ROWS_OF_LABS = 40, 4
"""Rows that an hour may change, and of each repository with labs: a few timers store one or two runs, and twice an hour
it is stored that a bucket was listed. A row is less than a page of 4 kB."""
HEARTBEATS = int(HOUR / WorkerPace().reap)
"""One row each, which several workers on PostgreSQL need (`bot.engine.worker.supervisor`)."""
MOST_REQUESTS = 120
"""One a minute for missed deliveries, and the doctor's."""
MOST_LISTINGS = 16
"""Requests to S3 for each repository: one every five minutes, and each hour a search for misspelled folders."""
DOCTORS_LISTINGS = 14
"""Two every ten minutes."""
MOST_WAKES = 3 * HOUR
"""Wake-ups of the event loop and of threads. Beside much other work there are more, because answers come one by one."""


@pytest.fixture
def idled(database_url: str, labs: int, aws_world: World) -> Idled:
    """Run a bot for an hour in which nothing happens."""
    bucket = aws_world if labs else None
    return in_simulated_time(lambda loop: idle_hour(database_url, loop, max(labs, 1), bucket))


# On PostgreSQL, a bot with labs has the same goal as one without, so that one is enough.
@pytest.mark.exhaustive("sqlite-10")
@pytest.mark.parametrize(
    ("database_url", "labs"), [("sqlite", 0), ("sqlite", 10), ("postgresql", 10)], indirect=["database_url"]
)
def test_an_idle_hour_stays_below_its_goals(idled: Idled, labs: int, database_url: str) -> None:
    if database_url.startswith("sqlite"):
        assert idled.rows <= MOST_ROWS + labs * MOST_ROWS_OF_LABS, idled
    else:
        # PostgreSQL counts transactions.
        assert idled.rows <= HEARTBEATS + MOST_ROWS, idled
    assert idled.requests.total() <= MOST_REQUESTS, idled
    assert idled.listings.total() <= labs * MOST_LISTINGS + DOCTORS_LISTINGS, idled
    assert idled.wakes <= MOST_WAKES, idled
