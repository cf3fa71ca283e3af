"""When a failed job is tried again."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import pairwise

import psycopg
import pytest
from gidgethub import BadRequest, GitHubBroken, InvalidField, QueryError, RedirectionException
from procrastinate.jobs import Job

from bot.core.errors import OUTAGE_PATIENCE, PayloadError, StorageError, TryAgain, UserError
from bot.engine.processor import ErrorKind
from bot.engine.retry import (
    JITTER,
    LONGEST_AWAY_WAIT,
    LONGEST_NAMED_WAIT,
    LONGEST_WAIT,
    MAX_ALONE,
    MAX_FAULT_TRIES,
    MAX_MISSING_TRIES,
    MAX_NAMED_WAITS,
    MAX_TRIES,
    Failed,
    LostTooOften,
    Postponed,
    RunAgain,
    Tries,
    next_try,
)
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.worker.queue import EngineRetry
from bot.engine.writes import CheckAgain
from bot.github.errors import (
    PARTIAL_PATIENCE,
    AccessPaused,
    AppRefused,
    NotInstalled,
    Unavailable,
    UnclearAnswer,
    Vanished,
    kind_of,
)

NOW = 1_800_000_000.0


def waits_until_final(error: Exception) -> list[float]:
    """Fail repeatedly with the same error; return the waits until it is final."""
    tries, waits, moment = Tries(), list[float](), NOW
    while (seconds := next_try(error, tries, moment, kind=kind_of(error))) is not None:
        waits.append(seconds)
        tries = tries.after(error, moment)
        moment += seconds
    return waits


@pytest.mark.parametrize(
    "error",
    [
        UserError("no"),
        PayloadError("pull_request.head", "is missing"),
        BadRequest(HTTPStatus.FORBIDDEN),
        InvalidField([], "Validation Failed"),
        RedirectionException(HTTPStatus.MOVED_PERMANENTLY),
        NotInstalled("installation 1: the App is no longer installed there"),
        QueryError({"errors": [{"type": "UNPROCESSABLE", "message": "The conversation is locked"}]}),
        QueryError({"errors": [{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}]}),
        LostTooOften(9),
    ],
)
def test_refusals_and_answers_to_people_are_final_at_once(error: Exception) -> None:
    assert waits_until_final(error) == []


@pytest.mark.parametrize(
    "error",
    [
        TryAgain("not yet"),
        GitHubBroken(HTTPStatus.BAD_GATEWAY),
        TimeoutError(),
        ConnectionResetError(),
        DatabaseFailure("the statement has no rows to give"),
        StorageError("what an effect announces could not be stored in time"),
    ],
)
def test_transient_errors_are_tried_twelve_times_with_growing_waits(error: Exception) -> None:
    waits = waits_until_final(error)
    assert len(waits) == MAX_TRIES - 1
    for n, seconds in enumerate(waits):
        expected = min(2.0**n, LONGEST_WAIT)
        assert expected <= seconds <= expected * (1 + JITTER)


def test_a_fault_of_ours_is_tried_three_times() -> None:
    assert len(waits_until_final(KeyError("oops"))) == MAX_FAULT_TRIES - 1


def test_a_wait_that_github_asks_for_is_never_shortened() -> None:
    seconds = next_try(TryAgain("limited", retry_in=61), Tries(), NOW)
    assert seconds is not None
    assert 61 <= seconds <= 61 * (1 + JITTER)


def test_waits_that_github_asks_for_use_up_no_tries() -> None:
    tries = Tries()
    for _ in range(MAX_TRIES * 2):
        tries = tries.after(TryAgain("limited", retry_in=1), NOW)
    assert next_try(TryAgain("not yet"), tries, NOW) is not None
    assert next_try(TryAgain("limited", retry_in=1), tries, NOW) is not None


def test_waits_that_github_asks_for_end_after_a_while() -> None:
    assert len(waits_until_final(TryAgain("limited", retry_in=1))) == MAX_NAMED_WAITS


@pytest.mark.parametrize(("named", "least", "most"), [(-5.0, 0.0, 0.0), (1e9, LONGEST_NAMED_WAIT, 4 * 3600)])
def test_an_absurd_wait_is_limited(named: float, least: float, most: float) -> None:
    seconds = next_try(TryAgain("odd", retry_in=named), Tries(), NOW)
    assert seconds is not None
    assert least <= seconds <= most


def test_a_fault_after_many_transient_errors_has_its_own_tries() -> None:
    assert next_try(KeyError("oops"), Tries(backed_off=MAX_TRIES - 1, named=7), NOW) is not None


@pytest.mark.parametrize(
    ("attempts", "tries", "lost"),
    [
        (0, Tries(), 0),
        (3, Tries(), 3),
        (5, Tries(1, 2, 1), 1),
        (9, Tries(1, 2, 1, away=4), 1),
        (9, Tries(1, 2, 1, stopped=3, away=1), 1),
        (2, Tries(stopped=3), 0),
    ],
)
def test_a_try_without_a_record_was_lost_with_its_worker(attempts: int, tries: Tries, lost: int) -> None:
    assert tries.lost(attempts) == lost


@pytest.mark.parametrize(
    ("error", "counted"),
    [
        (Unavailable("502"), {"away": 7}),
        (CheckAgain("on its way", retry_in=13), {"away": 7}),
        (RunAgain(1.0, None), {"stopped": 5}),
        (Postponed(1.0, None), {"stopped": 5, "alone": 5}),
        (LostTooOften(5, runs_again=True), {"stopped": 5, "alone": MAX_ALONE - 1}),
        (asyncio.CancelledError(), {"stopped": 5}),
        (TryAgain("limited", retry_in=1), {"named": 3, "away_since": 0.0}),
        (TryAgain("not yet"), {"backed_off": 2, "away_since": 0.0}),
        (KeyError("oops"), {"faults": 4, "away_since": 0.0}),
    ],
)
def test_a_try_is_counted_by_how_it_ended(error: BaseException, counted: dict[str, float]) -> None:
    tries = Tries(backed_off=1, named=2, faults=3, stopped=4, alone=5, away=6, away_since=NOW)
    counted_tries = tries.after(error, NOW + 100)
    assert asdict(counted_tries) == {**asdict(tries), "alone": 0, **counted}
    assert isinstance(counted_tries.alone, int)


@pytest.mark.parametrize("earlier", [MAX_MISSING_TRIES - 3, MAX_MISSING_TRIES - 2, MAX_MISSING_TRIES - 1])
def test_a_404_is_tried_a_few_times_with_growing_waits(earlier: int) -> None:
    seconds = next_try(KeyError("404"), Tries(faults=earlier), NOW, 10.0, ErrorKind.MISSING)
    if earlier == MAX_MISSING_TRIES - 1:
        assert seconds is None
    else:
        assert seconds is not None
        assert 10 * 2**earlier <= seconds <= 10 * 2**earlier * (1 + JITTER)


@pytest.mark.parametrize("error", [TryAgain("not yet"), KeyError("oops"), Unavailable("no answer in time")])
@pytest.mark.parametrize("first_wait", [0.1, 10.0])
def test_the_first_wait_is_a_parameter(error: Exception, first_wait: float) -> None:
    seconds = next_try(error, Tries(), NOW, first_wait)
    assert seconds is not None
    assert first_wait <= seconds <= first_wait * (1 + JITTER)


def test_tries_that_their_process_survived_do_not_count_as_lost_and_reset_the_crash_count() -> None:
    tries = Tries(backed_off=2, stopped=1, alone=2)
    assert tries.after_outlived(0) == tries
    assert tries.after_outlived(1) == Tries(backed_off=2, stopped=2, alone=0)
    assert tries.after_outlived(3) == Tries(backed_off=2, stopped=4, alone=0)


def test_the_error_of_a_crashing_job_counts_its_crashes() -> None:
    assert "3 times in a row" in str(LostTooOften(3))


def test_counts_of_tries_are_read_as_they_were_written() -> None:
    tries = Tries(1, 2, 3, away=4, away_since=NOW)
    assert Tries.read(tries.asdict()) == tries
    assert Tries.read({}) == Tries()


def partial() -> Unavailable:
    """Return the error of a request that fails while GitHub answers others."""
    error = Unavailable("GET /repos/{+repo}/compare/{base}...{head}: GitHub answered 502", status=502)
    error.answering = True
    return error


def unanswered(cause: Exception) -> DatabaseFailure:
    """Return the error of a statement while our database is down."""
    error = DatabaseFailure(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "patience"),
    [
        (Unavailable("GET /repos/{+repo}: no answer in time"), OUTAGE_PATIENCE),
        (UnclearAnswer("POST /repos/{+repo}/issues: GitHub answered 502"), OUTAGE_PATIENCE),
        (Vanished("GET /repos/{+repo}/issues/{number}"), OUTAGE_PATIENCE),
        (AppRefused("GitHub answered 401"), OUTAGE_PATIENCE),
        (AccessPaused.suspended(1), OUTAGE_PATIENCE),
        (AccessPaused.removed(1), OUTAGE_PATIENCE),
        (partial(), PARTIAL_PATIENCE),
        (unanswered(sqlite3.OperationalError("database or disk is full")), OUTAGE_PATIENCE),
        (unanswered(psycopg.OperationalError("the connection is lost")), OUTAGE_PATIENCE),
        (unanswered(psycopg.InterfaceError("the connection is closed")), OUTAGE_PATIENCE),
    ],
)
@pytest.mark.parametrize("elapsed", [45 * 60.0, 120 * 60.0])
def test_an_outage_uses_up_no_tries(error: Exception, patience: float, elapsed: float) -> None:
    tries, moment = Tries(), NOW
    while moment < NOW + elapsed:
        seconds = next_try(error, tries, moment, kind=kind_of(error))
        assert seconds is not None
        assert seconds <= LONGEST_AWAY_WAIT * (1 + JITTER)
        tries = tries.after(error, moment)
        moment += seconds
    assert tries.away_since == NOW
    assert len(waits_until_final(TryAgain("not yet"))) == MAX_TRIES - 1
    assert [next_try(error, tries, NOW + patience + late, kind=kind_of(error)) is None for late in (-1, 0, 1)] == [
        False,
        False,
        True,
    ]


def test_a_new_outage_gets_its_own_time() -> None:
    away = Unavailable("GET /repos/{+repo}: no answer in time")
    tries = Tries().after(away, NOW).after(TryAgain("answered, but not yet"), NOW + OUTAGE_PATIENCE)
    assert next_try(away, tries, NOW + 2 * OUTAGE_PATIENCE) is not None


def test_checks_for_a_late_write_use_up_no_tries_and_end_no_outage() -> None:
    tries, scan = Tries().after(Unavailable("502"), NOW), CheckAgain("on its way", retry_in=13)
    for _ in range(MAX_NAMED_WAITS):
        assert next_try(scan, tries, NOW) == 13
        tries = tries.after(scan, NOW)
    assert (tries.away_since, tries.named) == (NOW, 0)


def test_during_a_long_outage_the_waits_grow() -> None:
    waits = waits_until_final(Unavailable("no answer in time"))
    assert 1 <= waits[0] <= 1 + JITTER
    assert all(later >= earlier / (1 + JITTER) for earlier, later in pairwise(waits))
    assert waits[-1] >= LONGEST_AWAY_WAIT


JOB = Job(id=1, queue="default", lock=None, queueing_lock=None, task_name="effect", attempts=2)


@pytest.mark.one_clock
def test_the_queue_gets_the_time_and_the_priority() -> None:
    began = datetime.now(UTC)
    decision = EngineRetry().get_retry_decision(exception=RunAgain(50, 6), job=JOB)
    assert decision is not None
    assert decision.priority == 6
    assert decision.retry_at is not None
    assert decision.retry_at.tzinfo is UTC
    assert timedelta(0) <= decision.retry_at - began - timedelta(seconds=50) < timedelta(seconds=50)


def test_only_a_job_stored_as_failed_ends() -> None:
    strategy = EngineRetry()
    assert strategy.get_retry_decision(exception=Failed(), job=JOB) is None
    for unforeseen in (DatabaseFailure("away while failing"), RuntimeError("unforeseen")):
        decision = strategy.get_retry_decision(exception=unforeseen, job=JOB)
        assert decision is not None
        assert decision.retry_at is not None
    decision = strategy.get_retry_decision(exception=asyncio.CancelledError(), job=JOB)
    assert decision is not None
    assert decision.retry_at is None, "the next worker runs it at once"
