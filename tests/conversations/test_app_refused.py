"""GitHub rejects the App's signature, or the clocks differ: no work is lost, and operators are notified."""

from __future__ import annotations

import re
from typing import Any

import aiohttp
import pytest

from bot.app.registration import PERMISSIONS
from sandbox.model.apps import new_private_key
from tests.conversations.town import Town
from tests.conversations.town import town as start_town
from tests.waiting import until

TOKENS = "/app/installations/{installation_id}/access_tokens"


async def readiness(town: Town) -> tuple[int, dict[str, Any]]:
    status, _, answer = await town.ask("/readyz")
    return status, answer


@pytest.mark.parametrize("route", [TOKENS, "/repos/{owner}/{repo}/pulls/{pull_number}"])
async def test_commands_sent_while_github_refused_the_app_are_carried_out_afterwards(town: Town, route: str) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.tokens.expire_all()
    fault = town.github.faults.add("*", route, status=401, message="Bad credentials", times=None)
    pull.comment("hubot", "@ci help")

    async def refused() -> bool:
        return (await readiness(town))[0] == 503

    await until(refused)
    _, answer = await readiness(town)
    assert "GitHub refuses" in answer["reason"]
    assert "Bad credentials" in answer["reason"]
    fault.times = fault.hits
    await town.quiet()
    assert len(town.answers(pull)) == 1
    assert await town.failures() == []
    assert (await readiness(town))[0] == 200


@pytest.mark.one_clock
@pytest.mark.parametrize(("seconds", "direction"), [(-90, "ahead of"), (86_400, "behind")])
async def test_a_wrong_clock_is_corrected_for_and_reported(town: Town, seconds: int, direction: str) -> None:
    pull = town.repo.open_pull_request("hubot", "Faster")
    await town.quiet()
    town.github.tokens.expire_all()
    town.github.clock.advance(seconds=seconds)
    pull.comment("hubot", "@ci help")
    await town.quiet()
    assert len(town.answers(pull)) == 1
    assert await town.failures() == []
    status, answer = await readiness(town)
    assert status == 200
    warning = re.match(
        rf"this machine's clock is (\d+) s {direction} GitHub's; .* synchronize", answer["warnings"]["clock"]
    )
    assert warning is not None
    assert int(warning[1]) == pytest.approx(abs(seconds), abs=2)


async def test_a_server_reports_what_the_doctor_finds_and_still_serves(sqlite_url: str) -> None:
    """A 503 from every replica would stop the bot for everybody because of one repository's problem."""
    permissions = {name: level for name, level in PERMISSIONS.items() if name != "statuses"}
    async with start_town(sqlite_url, permissions=permissions) as town:
        await town.started()
        await town.bot.watch.checked.wait()
        status, answer = await readiness(town)
        assert (status, answer["reason"]) == (200, "")
        warning = "the check permissions fails; `nightjar doctor` and the log say why"
        assert answer["warnings"]["permissions"] == warning
        async with aiohttp.ClientSession() as session, session.get(f"{town.url}/metrics") as response:
            metrics = await response.text()
        assert 'nightjar_check_failing{check="permissions"} 1.0' in metrics
        assert 'nightjar_check_failing{check="events"} 0.0' in metrics


async def test_a_server_with_another_apps_key_is_not_ready(sqlite_url: str) -> None:
    key = new_private_key(4711)
    async with start_town(sqlite_url, environment={"GITHUB_PRIVATE_KEY": key}) as town:
        await town.bot.watch.checked.wait()
        status, answer = await readiness(town)
        assert status == 503
        assert "GITHUB_APP_ID and GITHUB_PRIVATE_KEY must belong to the same App" in answer["reason"]
