"""The page that lists the commands."""

from __future__ import annotations

from tests.web.conftest import Site


async def test_all_commands_are_on_a_page_and_in_json(site: Site) -> None:
    async with site.client.get(f"{site.url}/help") as answer:
        page = await answer.text()
        assert (answer.status, answer.content_type) == (200, "text/html")
    assert "<code>@ci help</code>" in page
    assert "<code>@ci merge</code>" in page
    assert "<code>all</code> restarts every run" in page
    async with site.client.get(f"{site.url}/api/v1/help") as answer:
        listed = await answer.json()
    assert (listed["repository"], listed["mentions"]) == (None, ["@ci"])
    assert "@ci merge when green" in [command["usage"] for command in listed["commands"]]


async def test_the_page_of_a_repository_lists_enabled_commands_with_who_may_use_them(site: Site) -> None:
    async with site.client.get(f"{site.url}/api/v1/help?repo=Octocat/Compiler") as answer:
        listed = await answer.json()
    who_by_usage = {command["usage"].partition(" [")[0]: command["who"] for command in listed["commands"]}
    assert listed["repository"] == "octocat/compiler"
    assert "@ci merge" not in who_by_usage
    assert who_by_usage["@ci rerun"] == "people with maintain access"
    async with site.client.get(f"{site.url}/help?repo=octocat/compiler") as answer:
        assert "These commands are on in octocat/compiler." in await answer.text()
