"""From a status on GitHub to the page that explains it."""

from __future__ import annotations

from html import escape
from pathlib import Path

import aiohttp

from bot.app.features import REGISTRY
from bot.commands.answers import offered_commands
from tests.conversations.nightly_runs import nightly_town
from tests.conversations.town import CONFIG
from tests.conversations.town import town as start_town


async def test_details_of_a_status_link_the_story_of_the_pull_request(tmp_path: Path) -> None:
    config = f"public_url: https://ci.example.org\n{CONFIG}"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        pull.comment("hubot", "what a person says\n\n@ci run slow tests")
        pull.comment("hubot", "@ci rum slow tests")
        await town.quiet()
        status = town.repo.status(pull.head_sha, "ci/slow-tests")
        assert status is not None
        path = f"/r/octocat/compiler/pulls/{pull.number}"
        assert status.target_url == f"https://ci.example.org{path}"
        (answer,) = town.answers(pull)
        assert f"](https://ci.example.org{path})" in answer
        assert "](https://ci.example.org/help?repo=octocat%2Fcompiler)" in answer
        client, headers = aiohttp.ClientSession(), {"Accept": "text/html"}
        async with client as session, session.get(f"{town.url}{path}", headers=headers) as response:
            page = await response.text()
            assert (response.status, response.content_type) == (200, "text/html")
        assert "Someone commented" in page
        assert "On: requested by hubot" in page
        assert "what a person says" not in page


async def test_the_page_of_a_pull_request_lists_the_commands_that_people_can_give_there(tmp_path: Path) -> None:
    config = f"public_url: https://ci.example.org\n{CONFIG}    rerun: {{allow: [write]}}\n"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        pull = town.repo.open_pull_request("hubot", "Faster")
        await town.quiet()
        path = f"/r/octocat/compiler/pulls/{pull.number}"
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{town.url}{path}", headers={"Accept": "text/html"}) as response:
                page = await response.text()
            async with session.get(f"{town.url}/api/v1/repos/octocat/compiler/pulls/{pull.number}") as response:
                commands = {command["usage"]: command for command in (await response.json())["commands"]}
        configured = town.bot.config.repository("octocat/compiler")
        assert configured is not None
        offered = offered_commands(REGISTRY, configured)
        assert list(commands) == [f"@ci {spec.usage}" for spec in offered]
        for command in commands.values():
            assert f"<code>{escape(command['usage'])}</code>" in page
        assert commands["@ci rerun [failed | all | NAME…]"]["who"] == "people with write access"
        assert not [usage for usage in commands if "merge" in usage]


async def test_a_private_repositorys_status_has_the_link_too_and_strangers_see_nothing_there(tmp_path: Path) -> None:
    config = f"public_url: https://ci.example.org\n{CONFIG}"
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=config) as town:
        town.repo.private = True
        pull = town.repo.open_pull_request("hubot", "Faster")
        pull.comment("hubot", "@ci run slow tests")
        await town.quiet()
        status = town.repo.status(pull.head_sha, "ci/slow-tests")
        assert status is not None
        path = f"/r/octocat/compiler/pulls/{pull.number}"
        assert status.target_url == f"https://ci.example.org{path}"
        client, headers = aiohttp.ClientSession(), {"Accept": "text/html"}
        async with client as session, session.get(f"{town.url}{path}", headers=headers) as response:
            assert response.status == 404
            page = await response.text()
        assert "hubot" not in page


async def test_details_of_the_nightly_status_link_the_page_of_the_branch(tmp_path: Path) -> None:
    async with nightly_town(f"sqlite:///{tmp_path}/nightjar.db", also="public_url: https://ci.example.org\n") as place:
        first = place.push()
        await place.nightly_run()
        status = place.town.repo.status(first, "nightly")
        assert status is not None
        assert status.target_url == "https://ci.example.org/r/octocat/compiler/nightly"
