"""A lab or a maintainer pauses a target until a day: no requests, no degradation, and everybody sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from handlers.device_tests.degraded.sweep import DEGRADED_SWEEP
from handlers.device_tests.model import DeviceJobState, JobEnd
from tests.bucket import World
from tests.conversations.devices import HEXAGON, MALI, TARGETS, Devices
from tests.conversations.lab import LAB, junit, lab_town
from tests.conversations.town import BOT, REPOSITORY

CONTACT_ID = 583_231
DAY = 86_400.0
GOOD = junit(test_add="passed")


@pytest.fixture
async def devices(tmp_path: Path, aws_world: World) -> AsyncIterator[Devices]:
    targets = f"{TARGETS}\n          contact_ids: [{CONTACT_ID}]"
    async with lab_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world, targets=targets) as place:
        yield Devices(place)


def day_after(devices: Devices, days: int) -> str:
    return (datetime.fromtimestamp(devices.place.time(), UTC) + timedelta(days=days)).date().isoformat()


async def nightly_run(devices: Devices, *missing: str) -> None:
    """Let the lab test a nightly commit, except on the targets that are missing."""
    sha = devices.place.nightly_run()
    for target in {HEXAGON, "adreno"} - set(missing):
        devices.place.upload(sha, {"a.xml": GOOD}, target=target)
    await devices.place.settle()


async def pass_time(devices: Devices, seconds: float) -> None:
    """Let time pass in steps, with the bot at work."""
    for step in (0.0, seconds, 3600.0):
        devices.place.time.ahead += step
        await devices.place.scan(0.0)
        await devices.place.town.bot.services.part(DEGRADED_SWEEP).tick()
        await devices.place.town.quiet()


async def lab_page(session: aiohttp.ClientSession) -> dict[str, Any]:
    """Return what the API says about the lab."""
    async with session.get(f"/api/v1/repos/{REPOSITORY}/labs/{LAB}") as response:
        page: dict[str, Any] = await response.json()
    return page


async def test_a_paused_target_accepts_no_requests_until_its_day_or_until_it_is_resumed(devices: Devices) -> None:
    town, pull = devices.place.town, devices.pull()
    town.github.user("keeper").id = CONTACT_ID
    until = day_after(devices, 5)
    await devices.says(pull, "hubot", "@ci test on hexagon-v73 adreno")
    reactions, answer = await devices.says(pull, "hubot", f"@ci lab pause hexagon-v73 until {until}")
    assert (reactions, "You need maintain access" in answer) == (["eyes", "confused"], True)
    lists = f"/r/{REPOSITORY}/labs", "/labs"
    async with aiohttp.ClientSession(town.url) as session:
        for address in lists:
            async with session.get(address) as response:  # which the server then has in memory
                assert "1 paused" not in await response.text()
    command = f"@ci lab pause hexagon-v73 until {until} because the board moves to the other room of the house"
    reactions, answer = await devices.says(pull, "keeper", command)
    reason = "because `the board moves to the other room of the house`"
    assert f"`{LAB}/{HEXAGON}` is paused until {until}, {reason}." in answer
    assert reactions == ["eyes", "+1"]
    states = await devices.states(pull)
    assert states == {HEXAGON: DeviceJobState.CANCELLED, "adreno": DeviceJobState.QUEUED}
    check = devices.checks(pull.head_sha)[-1]
    assert (check.title, check.conclusion) == ("Not tested: the target is paused", "neutral")
    assert f"This target is paused until {until}, by `keeper`, {reason}." in str(check.summary)

    async with aiohttp.ClientSession(town.url) as session:
        page = await lab_page(session)
        (row,) = [row for row in page["targets"] if row["target"] == HEXAGON]
        assert row["paused"]["until"].startswith(until)
        assert (row["paused"]["by"], row["tier"]) == ("keeper", 3)
        for address in lists:
            async with session.get(address) as response:
                assert "1 paused" in await response.text()
        for address in (f"/r/{REPOSITORY}/labs/{LAB}", "/"):
            async with session.get(address) as response:
                assert f"paused until {until}" in await response.text()

    other = devices.pull()
    refusal = f"`{LAB}/{HEXAGON}` accepts no requests now: `keeper` paused it until {until}, {reason}."
    _, answer = await devices.says(other, "hubot", "@ci test on all")
    assert refusal in answer
    assert HEXAGON not in await devices.states(other)
    _, answer = await devices.says(other, "hubot", "@ci help")
    assert f"Targets: `adreno`, `mali`. Paused: `{LAB}/{HEXAGON}` until {until}." in answer
    other.label("hubot", "test: hexagon")
    await town.quiet()
    assert [job.end for job in await devices.jobs(other) if job.target == HEXAGON] == [JobEnd.PAUSED]

    for wrong in ("2020-01-01", "tomorrow", day_after(devices, 91)):
        _, answer = await devices.says(other, "octocat", f"@ci lab pause mali until {wrong}")
        assert f"`{wrong}` is not a day in the next 90 days." in answer
    _, answer = await devices.says(other, "octocat", "@ci lab resume hexagon-v73 mali nosuch")
    assert f"`{LAB}/{HEXAGON}` accepts requests again." in answer
    assert f"`{LAB}/{MALI}` is not paused." in answer
    assert "No lab has a target named `nosuch`." in answer
    await devices.says(other, "hubot", "@ci test on hexagon-v73")
    assert (await devices.states(other))[HEXAGON] is DeviceJobState.QUEUED


async def test_runs_that_are_missing_during_a_pause_do_not_degrade_the_target(devices: Devices) -> None:
    pull, town = devices.pull(), devices.place.town
    await nightly_run(devices)
    until = day_after(devices, 4)
    await devices.says(pull, "octocat", f"@ci lab pause hexagon-v73 until {until}")
    await nightly_run(devices, HEXAGON)
    await pass_time(devices, 2 * DAY)
    await nightly_run(devices, HEXAGON)
    async with aiohttp.ClientSession(town.url) as session:
        answer = "".join(part["text"] for part in (await lab_page(session))["answer"])
        async with session.get(f"/r/{REPOSITORY}") as response:
            assert f"paused until {until}" in await response.text()
    assert f"{HEXAGON} is paused until {until}, by octocat" in answer
    await pass_time(devices, 2 * DAY)
    issues = [issue for issue in town.repo.issues.values() if issue.user.login == BOT]
    assert issues == []
    # After the pause, the target has the usual time for a run.
    await nightly_run(devices, HEXAGON)
    await pass_time(devices, 2 * DAY)
    issues = [issue for issue in town.repo.issues.values() if issue.user.login == BOT]
    assert [issue.title for issue in issues] == [f"Target {LAB}/{HEXAGON} is degraded"]
