"""A change wakes one claim of each kind that may get the job, and no other."""

from __future__ import annotations

import asyncio
import contextlib

from handlers.device_tests.bell import ClaimKind, JobBell
from tests.waiting import until

LAB, TARGET = "example-lab", "hexagon-v73"
REPOSITORIES = frozenset({"octocat/compiler"})
KIND = ClaimKind(LAB, frozenset({TARGET}), REPOSITORIES)
WIDER = ClaimKind(LAB, frozenset({TARGET, "adreno"}), REPOSITORIES)
OTHER_TARGET = ClaimKind(LAB, frozenset({"adreno"}), REPOSITORIES)
OTHER_LAB = ClaimKind("other-lab", frozenset({TARGET}), REPOSITORIES)


def listening(stack: contextlib.ExitStack, bell: JobBell, *kinds: ClaimKind) -> list[asyncio.Event]:
    """Return the events of claims that wait until the stack is closed."""
    return [stack.enter_context(bell.listen(kind)) for kind in kinds]


async def test_a_job_wakes_the_longest_waiting_claim_of_each_kind() -> None:
    bell = JobBell()
    with contextlib.ExitStack() as stack:
        waiting = listening(stack, bell, *[KIND] * 100, WIDER, OTHER_TARGET, OTHER_LAB)
        bell.ring(LAB, TARGET)
        assert [number for number, rung in enumerate(waiting) if rung.is_set()] == [0, 100]
        bell.ring(LAB, TARGET)
        assert [number for number, rung in enumerate(waiting) if rung.is_set()] == [0, 1, 100]
        assert (bell.waiting(), bell.waiting(LAB)) == (103, 102)
    assert bell.waiting() == 0


async def test_a_claim_that_leaves_before_it_tried_wakes_the_next_one() -> None:
    bell = JobBell()
    with contextlib.ExitStack() as stack, bell.listen(KIND) as leaving:
        (staying,) = listening(stack, bell, KIND)
        with contextlib.ExitStack() as early:
            (first,) = listening(early, bell, WIDER)
            bell.ring(LAB, TARGET)
            assert first.is_set()
        assert leaving.is_set()
        assert not staying.is_set()
    bell.ring(LAB, TARGET)
    assert bell.waiting() == 0


async def test_jobs_of_other_replicas_are_read_only_while_claims_wait() -> None:
    bell, read = JobBell(), list[str]()

    async def queued_targets(lab: str) -> list[str]:
        read.append(lab)
        return [TARGET]

    watching = asyncio.create_task(bell.watch(queued_targets, pause=0.0))
    for _ in range(10):
        await asyncio.sleep(0)
    assert read == []
    with bell.listen(KIND) as rung:
        await until(rung.is_set)
        assert set(read) == {LAB}
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
