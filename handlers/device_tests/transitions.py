"""The transitions of a job for a device. Pure: each function returns the changed job.

All are safe to repeat. A job that has ended stays unchanged, with one exception: results take precedence. Results of a
run that was handed out complete the job whenever they arrive, before or after a cancellation or an expiry. So every
order of the same events leads to the same end.
"""

from __future__ import annotations

from dataclasses import replace

from bot.results.few_tests import FewTestsOutcome
from handlers.device_tests.model import (
    APPROVAL_SECONDS,
    LEASE_SECONDS,
    MOST_ATTEMPTS,
    OPEN,
    QUEUE_SECONDS,
    DeviceJob,
    DeviceJobState,
    JobEnd,
    ShownStep,
    Someone,
    run_id_of,
)

NO_SLOT = -1
MOST_NOTE = 500
"""Characters of a lab's text that are stored."""


class LeaseLost(Exception):
    """The lease is not valid for the job: it expired, was given back, or never was. The caller must stop."""


class NotHandedOut(Exception):
    """A lab reports results of a job that no lab was given."""


def submitted(job: DeviceJob, *, approval_needed: bool) -> DeviceJob:
    """Return a new job: it waits for approval, or is queued at once."""
    if approval_needed:
        return replace(job, state=DeviceJobState.WAITING, expires_at=job.requested_at + APPROVAL_SECONDS)
    return _queued(job, job.requested_at)


def refused(job: DeviceJob, end: JobEnd) -> DeviceJob:
    """Return a new job that ends at once, because the target takes no more requests."""
    return _ended(job, DeviceJobState.ENDED, end, job.requested_at)


def approve(job: DeviceJob, sha: str, approver: Someone, moment: float) -> DeviceJob:
    """Let labs see a job that waits, if `sha` is exactly its commit; otherwise the job stays as it is."""
    if job.state is not DeviceJobState.WAITING or sha != job.sha:
        return job
    return _queued(replace(job, approved_by=approver, approved_at=moment), moment)


def hand_out(job: DeviceJob, lease: str, slot: int, timeout: float, moment: float) -> DeviceJob:
    """Give a queued job to a lab, under the digest of a lease; `timeout` is the time limit of the test in seconds.

    Raises ValueError for a job that is not queued: the caller must check that.
    """
    if job.state not in (DeviceJobState.QUEUED, DeviceJobState.IDLE):
        raise ValueError(f"a job that is {job.state} cannot be handed out")
    attempt, deadline = job.attempt + 1, moment + timeout
    expires = min(moment + LEASE_SECONDS, deadline)
    return replace(
        job,
        state=DeviceJobState.LEASED,
        attempt=attempt,
        slot=slot,
        lease=lease,
        lease_expires_at=expires,
        leased_at=moment,
        deadline=deadline,
        expires_at=expires,
        run_id=run_id_of(job.id, attempt),
        # The previous attempt had its own.
        log_url="",
        note="",
    )


def heartbeat(job: DeviceJob, lease: str, moment: float, *, log_url: str | None = None, note: str = "") -> DeviceJob:
    """Extend a lease, but not beyond the deadline; store the lab's log and progress if it sends them.

    If the lease has expired but the job was not handed out again, it is extended too: the lab is back. Raises
    `LeaseLost`.
    """
    _check_lease(job, lease)
    if moment >= job.deadline:
        raise LeaseLost
    # A heartbeat that was delayed on the way does not shorten the lease.
    expires = max(job.lease_expires_at, min(moment + LEASE_SECONDS, job.deadline))
    return replace(
        job,
        lease_expires_at=expires,
        expires_at=expires,
        log_url=job.log_url if log_url is None else log_url,
        note=note[:MOST_NOTE] or job.note,
    )


def give_way(job: DeviceJob, lease: str, moment: float) -> DeviceJob:
    """Take a job that the bot requested from its lab, because a person asked for the device. Raises `LeaseLost`.

    This is no failure, so it happens any number of times.
    """
    _check_lease(job, lease)
    return _given_back(job, moment)


def fail(job: DeviceJob, lease: str, reason: str, moment: float) -> DeviceJob:
    """Return a job that its lab cannot do to the queue; after the last attempt, it ends without results.

    A repeated call changes nothing. Raises `LeaseLost`.
    """
    # The lab repeats a call whose answer was lost.
    if lease and lease == job.old_lease:
        return job
    _check_lease(job, lease)
    given_back = replace(job, note=reason[:MOST_NOTE], old_lease=lease)
    return _try_again(given_back, JobEnd.LAB_FAILED, moment)


def complete(job: DeviceJob, suite: str, moment: float) -> DeviceJob:
    """Note that results of a suite arrived: of this attempt or an earlier one, in time or late.

    The job is done once the results of all its suites arrived. Raises `NotHandedOut` for a job that no lab was given.
    """
    if not job.was_handed_out:
        raise NotHandedOut
    # Manifests arrive any number of times: by a queue, by the listing of the bucket, and when runs are read again.
    if job.state is DeviceJobState.DONE or suite in job.arrived:
        return job
    updated = replace(job, arrived=tuple(sorted({*job.arrived, suite})))
    if not updated.has_all_suites:
        return updated
    done = _ended(updated, DeviceJobState.DONE, JobEnd.NONE, moment)
    # Late results replace the reason of the end, but not its time: the test did not take longer.
    return replace(done, ended_at=job.ended_at or moment)


def complete_few_tests(job: DeviceJob, suite: str, outcome: FewTestsOutcome, moment: float) -> DeviceJob:
    """Note what a few tests did in a suite, as `complete` does for a whole suite. Raises `NotHandedOut`.

    Only the first run of each suite counts: a second one repeats it after an interrupted upload.
    """
    completed = complete(job, suite, moment)
    if completed == job:
        return job
    # An end that was announced without results is announced again with them.
    together = FewTestsOutcome.load(job.outcome).plus(outcome)
    return replace(completed, outcome=together.dump(), shown=ShownStep.NOTHING)


def cancel(job: DeviceJob, end: JobEnd, moment: float) -> DeviceJob:
    """Cancel a job. A lab that has it loses its lease."""
    return _ended(job, DeviceJobState.CANCELLED, end, moment) if job.is_open else job


def cancel_if_waiting(job: DeviceJob, end: JobEnd, moment: float) -> DeviceJob:
    """End a job that no lab has yet; a running test continues."""
    return (
        cancel(job, end, moment)
        if job.state in (DeviceJobState.WAITING, DeviceJobState.QUEUED, DeviceJobState.IDLE)
        else job
    )


def remove_target(job: DeviceJob, moment: float) -> DeviceJob:
    """End a job whose target is no longer in app.yaml."""
    return _ended(job, DeviceJobState.ENDED, JobEnd.TARGET_REMOVED, moment) if job.is_open else job


def expire(job: DeviceJob, moment: float) -> DeviceJob:
    """Change a job whose `expires_at` has passed; before that, do nothing."""
    if moment < job.expires_at:
        return job
    match job.state:
        case DeviceJobState.WAITING:
            return _ended(job, DeviceJobState.CANCELLED, JobEnd.NOT_APPROVED, moment)
        case DeviceJobState.QUEUED | DeviceJobState.IDLE:
            return _ended(job, DeviceJobState.ENDED, JobEnd.NO_DEVICE, moment)
        case DeviceJobState.LEASED if moment >= job.deadline and job.lease_expires_at >= job.deadline:
            # The lab sent heartbeats to the end, so another attempt would take too long as well.
            return _ended(job, DeviceJobState.ENDED, JobEnd.TOO_LONG, moment)
        case DeviceJobState.LEASED:
            return _try_again(job, JobEnd.NO_ANSWER, moment)
        case _:
            return job


def show(job: DeviceJob, step: ShownStep) -> DeviceJob:
    """Note that the check run was written for a step."""
    return replace(job, shown=max(job.shown, step))


def _check_lease(job: DeviceJob, lease: str) -> None:
    # An empty lease must not match the empty lease of a job that no lab has.
    if job.state is not DeviceJobState.LEASED or not lease or lease != job.lease:
        raise LeaseLost


def _queued(job: DeviceJob, moment: float) -> DeviceJob:
    # A job that is queued again keeps its place in the queue, but may wait for another day.
    state = DeviceJobState.IDLE if job.is_bots else DeviceJobState.QUEUED
    return replace(job, state=state, queued_at=job.queued_at or moment, expires_at=moment + QUEUE_SECONDS)


def _try_again(job: DeviceJob, end: JobEnd, moment: float) -> DeviceJob:
    if job.attempt >= MOST_ATTEMPTS:
        return _ended(job, DeviceJobState.ENDED, end, moment)
    return _given_back(job, moment)


def _given_back(job: DeviceJob, moment: float) -> DeviceJob:
    return _queued(replace(job, lease="", lease_expires_at=0.0, deadline=0.0, slot=NO_SLOT), moment)


def _ended(job: DeviceJob, state: DeviceJobState, end: JobEnd, moment: float) -> DeviceJob:
    assert state not in OPEN
    return replace(
        job,
        state=state,
        end=end,
        ended_at=moment,
        expires_at=0.0,
        lease="",
        lease_expires_at=0.0,
        deadline=0.0,
        slot=NO_SLOT,
    )
