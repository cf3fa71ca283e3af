"""Writes that happen once: when another try may send one again, by GitHub's clock alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from bot.core.errors import UserError
from bot.engine.writes import CHECK_AFTER, CHECKS_OF_WRITE, CheckAgain, UnclearWrite, Writes

WHAT = "POST /repos/octocat/compiler/issues/1/comments"


async def send(writes: Writes, moment: float, error: Exception | None = None, request: str = WHAT) -> None:
    """Send a write at a time of GitHub's clock; an error is its outcome."""
    async with writes.once(request, lambda: moment):
        if error is not None:
            raise error


async def unclear(writes: Writes, moment: float = 1000.0) -> Writes:
    """Send a write whose outcome stays unknown; return the state for the next try."""
    with pytest.raises(UnclearWrite):
        await send(writes, moment, UnclearWrite("502"))
    return Writes(writes.state)


async def refused(writes: Writes, moment: float) -> tuple[float | None, Writes]:
    """Try the write at a time, and expect a refusal; return the wait, and the state for the next try."""
    with pytest.raises(CheckAgain) as held:
        await send(writes, moment)
    return held.value.retry_in, Writes(writes.state)


async def test_a_write_is_recorded_before_it_is_sent() -> None:
    noted: list[Mapping[str, Any]] = []

    async def save(state: Mapping[str, Any]) -> None:
        noted.append(state)

    writes = Writes(save=save)
    async with writes.once(WHAT, lambda: 1000.0):
        assert [write["what"] for write in noted[0]["sent"]] == [WHAT]
    assert len(noted) == 1


@pytest.mark.parametrize(
    ("elapsed", "counts"), [(CHECK_AFTER - 1, False), (CHECK_AFTER, True), (CHECK_AFTER + 1, True)]
)
async def test_a_check_counts_only_once_the_write_would_be_visible(elapsed: float, counts: bool) -> None:
    writes = await unclear(Writes())
    _, writes = await refused(writes, 1000.0 + elapsed)
    assert writes.state["sent"][0]["checks"] == int(counts)


async def test_a_write_is_sent_again_after_two_checks_and_then_checked_twice_more() -> None:
    writes, moment = await unclear(Writes()), 1000.0
    for _ in range(CHECKS_OF_WRITE - 1):
        moment += CHECK_AFTER
        wait, writes = await refused(writes, moment)
        assert wait is not None
        assert wait > CHECK_AFTER
    await send(writes, moment + CHECK_AFTER)
    for checks_left in range(CHECKS_OF_WRITE, 0, -1):
        assert isinstance(writes.check_for_twins(lambda: {"outcome": "applied", "text": "done"}), CheckAgain)
        writes = Writes(writes.state)
        assert (writes.checks_left, writes.outcome["text"]) == (checks_left, "done")
        await refused(writes, moment + 1e6)
    assert writes.check_for_twins(dict) is None


async def test_a_clock_that_was_set_back_does_not_lengthen_the_wait() -> None:
    wait, _ = await refused(await unclear(Writes()), -1e9)
    assert wait is not None
    assert wait <= CHECK_AFTER + 1


async def test_a_refused_write_leaves_no_record_and_may_be_sent_at_once() -> None:
    writes = Writes()
    with pytest.raises(UserError):
        await send(writes, 1000.0, UserError("no"))
    assert writes.state == {}
    await send(Writes(writes.state), 1000.1)


async def test_a_worker_that_died_while_sending_leaves_the_record() -> None:
    noted: list[Mapping[str, Any]] = []

    async def save(state: Mapping[str, Any]) -> None:
        noted.append(state)

    with pytest.raises(asyncio.CancelledError):
        async with Writes(save=save).once(WHAT, lambda: 1000.0):
            raise asyncio.CancelledError
    await refused(Writes(noted[0]), 1001.0)


async def test_other_writes_of_the_job_need_not_wait_nor_does_the_same_one_in_the_same_try() -> None:
    writes = await unclear(Writes())
    await send(writes, 1001.0, request="POST /repos/octocat/compiler/statuses/1")
    await send(writes, 1001.0, request="POST /repos/octocat/compiler/statuses/1")


async def test_without_a_second_sending_nobody_checks_for_duplicates() -> None:
    writes = Writes()
    await send(writes, 1000.0)
    assert writes.check_for_twins(lambda: {"outcome": "applied", "text": ""}) is None
