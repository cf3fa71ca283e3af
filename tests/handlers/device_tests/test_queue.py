"""Which job a lab gets next."""

from __future__ import annotations

import pytest

from handlers.device_tests import transitions
from handlers.device_tests.model import DeviceJob
from handlers.device_tests.queue import LastServed, expected_wait
from tests.devices.picking import pick_job
from tests.handlers.device_tests.cases import HUBOT, MONA, NOW, OCTOCAT, OTHER_SHA, leased, limits, queued

ALL = ("hexagon-v73", "adreno")
NONE_SERVED = LastServed()


def order(jobs: list[DeviceJob]) -> list[str]:
    """Return the names of the jobs in the order in which one device gets them."""
    remaining, served, names, moment = list(jobs), LastServed(), list[str](), NOW + 1000
    while picked := pick_job(remaining, ALL, limits(), served):
        job, moment = picked.job, moment + 1
        names.append(job.id)
        remaining.remove(job)
        served = LastServed(
            {**served.repositories, job.repository_id: moment},
            {**served.people, (job.repository_id, job.requested_by.id): moment},
        )
    return names


def test_a_busy_repository_does_not_delay_another() -> None:
    busy = [queued(f"busy {n}", pull_request=n, requested_at=NOW + n) for n in range(3)]
    idle = queued("other", repository_id=8, requested_at=NOW + 50)
    assert order([*busy, idle]) == ["busy 0", "other", "busy 1", "busy 2"]


def test_a_busy_person_does_not_delay_another() -> None:
    busy = [queued(f"busy {n}", pull_request=n, requested_at=NOW + n, requested_by=HUBOT) for n in range(3)]
    idle = [queued("other", pull_request=9, requested_at=NOW + 50, requested_by=OCTOCAT)]
    idle.append(queued("third", pull_request=10, requested_at=NOW + 60, requested_by=MONA))
    assert order([*busy, *idle]) == ["busy 0", "other", "third", "busy 1", "busy 2"]


def test_the_newest_head_goes_first_in_its_pull_requests_place() -> None:
    jobs = [
        queued("old head", requested_at=NOW),
        queued("another", pull_request=43, requested_at=NOW + 1),
        queued("new head", sha=OTHER_SHA, requested_at=NOW + 2),
    ]
    assert order(jobs) == ["new head", "old head", "another"]


def test_a_device_runs_one_job_whatever_the_repository() -> None:
    running = leased("running", repository_id=8)
    assert pick_job([running, queued()], ALL, limits(), NONE_SERVED) is None
    picked = pick_job([running, queued()], ALL, limits(2), NONE_SERVED)
    assert picked is not None
    assert (picked.job.id, picked.slot) == ("job", 1)


def test_a_free_device_is_used_again() -> None:
    picked = pick_job([leased("running", slot=1), queued()], ALL, limits(2), NONE_SERVED)
    assert picked is not None
    assert picked.slot == 0


@pytest.mark.parametrize("targets", [(), ("adreno",)])
def test_a_lab_gets_only_jobs_for_the_targets_in_its_claim(targets: tuple[str, ...]) -> None:
    assert pick_job([queued()], targets, limits(), NONE_SERVED) is None


def test_a_target_that_accepts_no_requests_hands_out_no_jobs() -> None:
    assert pick_job([queued()], ALL, limits({}), NONE_SERVED) is None


def test_jobs_that_wait_for_approval_or_have_ended_are_not_handed_out() -> None:
    waiting = transitions.submitted(queued(), approval_needed=True)
    done = transitions.complete(leased(), "operators", NOW)
    assert pick_job([waiting, done], ALL, limits(), NONE_SERVED) is None


@pytest.mark.parametrize(
    ("place", "slots", "durations", "wait"),
    [(0, 1, [600.0], 0), (1, 2, [600.0], 0), (1, 1, [600.0, 60, 500], 500), (4, 2, [600.0], 1200), (1, 1, [], 3600)],
)
def test_the_expected_time_comes_from_earlier_durations(
    place: int, slots: int, durations: list[float], wait: float
) -> None:
    assert expected_wait(place, slots, durations, timeout=7200) == wait
