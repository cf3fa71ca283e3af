"""Everything that can happen to a device job, in any order and any number of times."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.device_tests import transitions
from handlers.device_tests.model import (
    APPROVAL_SECONDS,
    LEASE_SECONDS,
    MOST_ATTEMPTS,
    QUEUE_SECONDS,
    DeviceJob,
    DeviceJobState,
    JobEnd,
    JobOrigin,
    ShownStep,
)
from handlers.device_tests.transitions import NO_SLOT, LeaseLost, NotHandedOut
from tests.handlers.device_tests.cases import HOUR, NOW, OCTOCAT, OTHER_SHA, SHA, leased, new_job, queued

EVENTS: dict[str, Callable[[DeviceJob, float], DeviceJob]] = {
    "approve": lambda job, moment: transitions.approve(job, SHA, OCTOCAT, moment),
    "approve another": lambda job, moment: transitions.approve(job, OTHER_SHA, OCTOCAT, moment),
    "hand out": lambda job, moment: (
        transitions.hand_out(job, f"lease {job.attempt + 1}", 0, 2 * HOUR, moment)
        if job.state is DeviceJobState.QUEUED
        else job
    ),
    "heartbeat": lambda job, moment: transitions.heartbeat(job, f"lease {job.attempt}", moment, note="1 of 3"),
    "old heartbeat": lambda job, moment: transitions.heartbeat(job, f"lease {job.attempt - 1}", moment),
    "fail": lambda job, moment: transitions.fail(job, f"lease {job.attempt}", "the device does not answer", moment),
    "complete": lambda job, moment: transitions.complete(job, "operators", moment),
    "push": lambda job, moment: transitions.cancel_if_waiting(job, JobEnd.PUSHED, moment),
    "cancel": lambda job, moment: transitions.cancel(job, JobEnd.BY_PERSON, moment),
    "expire": lambda job, moment: transitions.expire(job, moment),
    "remove target": lambda job, moment: transitions.remove_target(job, moment),
    "show": lambda job, _: transitions.show(job, job.to_show),
}


def apply_event(job: DeviceJob, event: str, moment: float) -> DeviceJob:
    """Return the job after an event; an event that is refused changes nothing."""
    with contextlib.suppress(LeaseLost, NotHandedOut):
        return EVENTS[event](job, moment)
    return job


CANCELLING = frozenset({JobEnd.NOT_APPROVED, JobEnd.PUSHED, JobEnd.CLOSED, JobEnd.BY_PERSON})


def is_state_of_end(state: DeviceJobState, end: JobEnd) -> bool:
    """Return whether a job in this state may have ended for this reason."""
    if state is DeviceJobState.CANCELLED:
        return end in CANCELLING
    if state is DeviceJobState.ENDED:
        return end is not JobEnd.NONE and end not in CANCELLING
    return end is JobEnd.NONE


histories = st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), st.floats(0, 30 * HOUR)), max_size=25)


@given(histories, st.booleans())
def test_a_job_stays_consistent_through_any_events(history: list[tuple[str, float]], approval_needed: bool) -> None:
    job, moment = transitions.submitted(new_job(), approval_needed=approval_needed), NOW
    for event, pause in history:
        moment += pause
        previous, job = job, apply_event(job, event, moment)
        assert apply_event(job, event, moment) == job, "each event may be repeated"
        assert is_state_of_end(job.state, job.end)
        is_leased = job.state is DeviceJobState.LEASED
        assert (bool(job.lease), job.slot >= 0, job.deadline > 0) == (is_leased, is_leased, is_leased)
        assert job.attempt <= MOST_ATTEMPTS
        assert job.is_open == (job.expires_at > 0), "an open job always has a deadline"
        assert job.shown >= previous.shown, "the check run never goes back"
        if not previous.is_open and job != previous:
            assert event in ("complete", "show")
        if job.was_handed_out and not previous.was_handed_out and approval_needed:
            assert job.approved_by == OCTOCAT


@given(histories)
def test_no_job_stays_open_for_ever(history: list[tuple[str, float]]) -> None:
    job, moment = queued(), NOW
    for event, pause in history:
        moment += pause
        job = apply_event(job, event, moment)
    for _ in range(2 * MOST_ATTEMPTS):
        job = transitions.expire(job, job.expires_at)
    assert not job.is_open
    assert transitions.show(job, job.to_show).shown in (job.shown, ShownStep.ENDED)


def test_results_win_in_any_order() -> None:
    job = leased(lease="lease 1")
    for order in permutations(["complete", "cancel", "expire", "fail"]):
        ended = job
        for event in order:
            ended = apply_event(ended, event, NOW + 30 * HOUR)
        assert (ended.state, ended.end) == (DeviceJobState.DONE, JobEnd.NONE)


def test_an_approval_is_for_one_commit_only() -> None:
    job = transitions.submitted(new_job(), approval_needed=True)
    assert transitions.approve(job, OTHER_SHA, OCTOCAT, NOW) == job
    approved = transitions.approve(job, SHA, OCTOCAT, NOW + 1)
    assert (approved.state, approved.approved_by, approved.approved_at) == (DeviceJobState.QUEUED, OCTOCAT, NOW + 1)


def test_an_unapproved_job_is_cancelled_and_never_gets_a_check_run() -> None:
    job = transitions.submitted(new_job(), approval_needed=True)
    ended = transitions.expire(job, NOW + APPROVAL_SECONDS)
    assert (ended.state, ended.end, ended.to_show) == (DeviceJobState.CANCELLED, JobEnd.NOT_APPROVED, ShownStep.NOTHING)


def test_an_expired_lease_is_handed_out_again_at_most_three_times() -> None:
    job = queued()
    for attempt in range(1, MOST_ATTEMPTS + 1):
        job = transitions.hand_out(job, f"lease {attempt}", 0, 2 * HOUR, NOW)
        assert job.run_id == f"job-{attempt}"
        assert transitions.expire(job, NOW + LEASE_SECONDS - 1) == job
        job = transitions.expire(job, NOW + LEASE_SECONDS)
    assert (job.state, job.end) == (DeviceJobState.ENDED, JobEnd.NO_ANSWER)


def test_a_heartbeat_extends_the_lease_up_to_the_deadline_and_never_shortens_it() -> None:
    job = leased()
    later = transitions.heartbeat(job, "digest", NOW + 60, log_url="https://example.org/log", note="1 of 3")
    assert (later.lease_expires_at, later.log_url, later.note) == (
        NOW + 60 + LEASE_SECONDS,
        "https://example.org/log",
        "1 of 3",
    )
    assert transitions.heartbeat(later, "digest", NOW + 30) == later
    last = transitions.heartbeat(later, "digest", NOW + 2 * HOUR - 1)
    assert last.lease_expires_at == NOW + 2 * HOUR
    with pytest.raises(LeaseLost):
        transitions.heartbeat(last, "digest", NOW + 2 * HOUR)
    assert transitions.expire(last, NOW + 2 * HOUR).end is JobEnd.TOO_LONG


def test_a_lab_that_returns_before_its_job_is_given_away_keeps_it() -> None:
    job = leased()
    assert transitions.heartbeat(job, "digest", NOW + HOUR).state is DeviceJobState.LEASED


@pytest.mark.parametrize("lease", ["", "another"])
def test_nobody_else_can_report_for_a_job(lease: str) -> None:
    for job in (leased(), queued(), transitions.cancel(leased(), JobEnd.BY_PERSON, NOW)):
        with pytest.raises(LeaseLost):
            transitions.heartbeat(job, lease, NOW)
        with pytest.raises(LeaseLost):
            transitions.fail(job, lease, "", NOW)


def test_a_lab_failure_costs_an_attempt_and_may_be_reported_twice() -> None:
    failed = transitions.fail(leased(), "digest", "x" * 10_000, NOW)
    assert (failed.state, len(failed.note)) == (DeviceJobState.QUEUED, transitions.MOST_NOTE)
    assert transitions.fail(failed, "digest", "again", NOW) == failed
    second = transitions.hand_out(failed, "second", 0, HOUR, NOW)
    assert transitions.fail(second, "digest", "again", NOW) == second


def test_results_of_a_job_that_no_lab_has_claimed_are_refused() -> None:
    with pytest.raises(NotHandedOut):
        transitions.complete(queued(), "operators", NOW)


def test_a_job_is_done_once_all_its_suites_arrived() -> None:
    job = leased(suites=("operators", "models"))
    partial = transitions.complete(job, "models", NOW)
    assert (partial.state, partial.slot) == (DeviceJobState.LEASED, 0)
    assert transitions.complete(partial, "models", NOW) == partial
    assert transitions.complete(partial, "operators", NOW).state is DeviceJobState.DONE
    ended = transitions.expire(partial, partial.expires_at)
    ended = replace(ended, attempt=MOST_ATTEMPTS)
    assert ended.to_show is ended.shown, "the check run shows the results that arrived"


def test_a_push_leaves_a_running_test() -> None:
    assert transitions.cancel_if_waiting(leased(), JobEnd.PUSHED, NOW).state is DeviceJobState.LEASED
    assert transitions.cancel_if_waiting(queued(), JobEnd.PUSHED, NOW).state is DeviceJobState.CANCELLED
    assert transitions.cancel(leased(), JobEnd.BY_PERSON, NOW).state is DeviceJobState.CANCELLED


def test_a_check_run_is_written_once_for_each_step() -> None:
    job = transitions.show(queued(), ShownStep.QUEUED)
    job = transitions.hand_out(job, "digest", 0, HOUR, NOW)
    assert job.to_show is ShownStep.QUEUED, "the job stays queued until the lab reports"
    job = transitions.heartbeat(job, "digest", NOW + 1)
    assert job.to_show is ShownStep.RUNNING
    job = transitions.show(job, ShownStep.RUNNING)
    job = transitions.expire(job, NOW + 1 + LEASE_SECONDS)
    assert (job.state, job.to_show) == (DeviceJobState.QUEUED, ShownStep.RUNNING)
    assert transitions.complete(job, "operators", NOW).to_show is ShownStep.RUNNING
    assert transitions.expire(job, NOW + 2 * QUEUE_SECONDS).to_show is ShownStep.ENDED


def test_a_job_that_nobody_requested_gets_a_check_run_once_it_runs() -> None:
    job = queued(origin=JobOrigin.PUSH)
    assert job.to_show is ShownStep.NOTHING
    assert transitions.expire(job, NOW + QUEUE_SECONDS).to_show is ShownStep.NOTHING
    running = transitions.hand_out(job, "digest", 0, HOUR, NOW)
    assert transitions.heartbeat(running, "digest", NOW, log_url="https://example.org").to_show is ShownStep.RUNNING


def test_the_report_of_a_benchmark_counts_once_in_time_or_late() -> None:
    with pytest.raises(transitions.NotHandedOut):
        transitions.complete_benchmark(queued(), "{}", NOW)
    job = leased()
    done = transitions.complete_benchmark(job, "{}", NOW + 5)
    assert (done.state, done.end, done.outcome, done.ended_at) == (DeviceJobState.DONE, JobEnd.NONE, "{}", NOW + 5)
    assert transitions.complete_benchmark(done, "other", NOW + 9) is done
    announced = transitions.show(transitions.end_unable(job, NOW + 2), ShownStep.ENDED)
    assert (announced.state, announced.end) == (DeviceJobState.ENDED, JobEnd.UNABLE)
    assert transitions.end_unable(announced, NOW + 3) is announced
    late = transitions.complete_benchmark(announced, "{}", NOW + 5)
    assert (late.state, late.outcome, late.ended_at, late.shown) == (
        DeviceJobState.DONE, "{}", NOW + 2, ShownStep.NOTHING,
    )  # fmt: skip


LATER = NOW + 60
WAITING = transitions.submitted(new_job(), approval_needed=True)
QUEUED, LEASED = queued(), leased()
LAST = replace(LEASED, attempt=MOST_ATTEMPTS, slot=2, note="slow", log_url="https://logs.example.org/7")
NO_LEASE = {"lease": "", "lease_expires_at": 0.0, "deadline": 0.0, "slot": NO_SLOT}
ENDED_FIELDS = {"ended_at": LATER, "expires_at": 0.0}
STATE, END = DeviceJobState, JobEnd


def changes_of(job: DeviceJob, change: Callable[[DeviceJob], DeviceJob]) -> dict[str, object]:
    """Return the fields that a transition changes, with their new values."""
    before, after = asdict(job), asdict(change(job))
    return {name: value for name, value in after.items() if value != before[name]}


@pytest.mark.parametrize(
    ("job", "change", "changes"),
    [
        (
            new_job(),
            lambda job: transitions.submitted(job, approval_needed=True),
            {"expires_at": NOW + APPROVAL_SECONDS},
        ),
        (
            new_job(),
            lambda job: transitions.submitted(job, approval_needed=False),
            {"state": STATE.QUEUED, "queued_at": NOW, "expires_at": NOW + QUEUE_SECONDS},
        ),
        (
            new_job(),
            lambda job: transitions.refused(job, END.NO_DEVICE),
            {"state": STATE.ENDED, "end": END.NO_DEVICE, "ended_at": NOW},
        ),
        (WAITING, lambda job: transitions.approve(job, OTHER_SHA, OCTOCAT, LATER), {}),
        (
            WAITING,
            lambda job: transitions.approve(job, SHA, OCTOCAT, LATER),
            {
                **{"state": STATE.QUEUED, "queued_at": LATER, "expires_at": LATER + QUEUE_SECONDS},
                **{"approved_by": asdict(OCTOCAT), "approved_at": LATER},
            },
        ),
        (
            replace(QUEUED, note="old", log_url="old"),
            lambda job: transitions.hand_out(job, "digest", 3, 2 * HOUR, LATER),
            {
                **{"state": STATE.LEASED, "attempt": 1, "slot": 3, "lease": "digest", "leased_at": LATER, "note": ""},
                **{"lease_expires_at": LATER + LEASE_SECONDS, "expires_at": LATER + LEASE_SECONDS, "log_url": ""},
                **{"deadline": LATER + 2 * HOUR, "run_id": "job-1"},
            },
        ),
        (
            LEASED,
            lambda job: transitions.heartbeat(job, "digest", LATER, log_url="log", note="x" * 501),
            {
                **{"lease_expires_at": LATER + LEASE_SECONDS, "expires_at": LATER + LEASE_SECONDS},
                **{"log_url": "log", "note": "x" * 500},
            },
        ),
        (LAST, lambda job: transitions.heartbeat(job, "digest", NOW), {}),
        (
            LAST,
            lambda job: transitions.give_way(job, "digest", LATER),
            {**NO_LEASE, "state": STATE.QUEUED, "expires_at": LATER + QUEUE_SECONDS},
        ),
        (
            LEASED,
            lambda job: transitions.fail(job, "digest", "y" * 501, LATER),
            {
                **{**NO_LEASE, "state": STATE.QUEUED, "expires_at": LATER + QUEUE_SECONDS},
                **{"note": "y" * 500, "old_lease": "digest"},
            },
        ),
        (
            LAST,
            lambda job: transitions.fail(job, "digest", "no device", LATER),
            {
                **{**NO_LEASE, **ENDED_FIELDS, "state": STATE.ENDED, "end": END.LAB_FAILED},
                **{"note": "no device", "old_lease": "digest"},
            },
        ),
        (
            LAST,
            lambda job: transitions.end_unable(job, LATER),
            {**NO_LEASE, **ENDED_FIELDS, "state": STATE.ENDED, "end": END.UNABLE},
        ),
        (
            LAST,
            lambda job: transitions.cancel(job, END.NOT_APPROVED, LATER),
            {**NO_LEASE, **ENDED_FIELDS, "state": STATE.CANCELLED, "end": END.NOT_APPROVED},
        ),
        (LAST, lambda job: transitions.cancel_if_waiting(job, END.NOT_APPROVED, LATER), {}),
        (
            LAST,
            lambda job: transitions.remove_target(job, LATER),
            {**NO_LEASE, **ENDED_FIELDS, "state": STATE.ENDED, "end": END.TARGET_REMOVED},
        ),
        (WAITING, lambda job: transitions.expire(job, WAITING.expires_at - 1), {}),
        (
            LAST,
            lambda job: transitions.expire(job, LAST.expires_at),
            {**NO_LEASE, "state": STATE.ENDED, "end": END.NO_ANSWER, "expires_at": 0.0, "ended_at": LAST.expires_at},
        ),
        (LAST, lambda job: transitions.show(job, ShownStep.NOTHING), {}),
    ],
)
def test_what_each_step_changes(
    job: DeviceJob, change: Callable[[DeviceJob], DeviceJob], changes: dict[str, object]
) -> None:
    assert changes_of(job, change) == changes


def test_no_step_changes_a_job_that_has_ended() -> None:
    ended = transitions.cancel(LEASED, JobEnd.NOT_APPROVED, NOW)
    for change in (transitions.end_unable, transitions.remove_target, transitions.expire):
        assert change(ended, LATER) == ended
    assert transitions.cancel(ended, JobEnd.UNABLE, LATER) == ended
    assert transitions.cancel_if_waiting(ended, JobEnd.UNABLE, LATER) == ended
    assert transitions.approve(ended, SHA, OCTOCAT, LATER) == ended
