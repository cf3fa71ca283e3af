"""From a check run on GitHub to the commit that broke a test: the bot, its GitHub and the bucket are real servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.conftest import walking
from tests.bucket import World
from tests.conversations.lab import junit, lab_town

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]
OURS = "https://ci.example.org"
GOOD = {"test_add": "passed", "test_mul": "passed"}
BAD = {"test_add": "passed", "test_mul": "AssertionError: 3 != 4"}


async def test_details_of_a_check_run_lead_to_the_commit_that_broke_a_test(
    browser: Browser, tmp_path: Path, aws_world: World
) -> None:
    url = f"sqlite:///{tmp_path}/nightjar.db"
    async with lab_town(url, aws_world, settings=f"public_url: {OURS}\n") as place:
        good, broken = place.nightly_run(), place.nightly_run()
        place.upload(good, {"ops.xml": junit(**GOOD)})
        place.upload(broken, {"ops.xml": junit(**BAD)})
        await place.settle()
        details = str(place.check(broken).details_url)
        assert details == f"{OURS}/r/octocat/compiler/runs/example-lab/hexagon-v73/{broken}/run-2"
        async with walking(browser, place.town.url) as walk:
            assert "1 new failure" in await walk.go(details.removeprefix(OURS))
            await walk.page.locator("li a.mono", has_text="test_mul").first.click()
            await walk.page.wait_for_load_state()
            history = await walk.text()
            assert f"■ Failing since {broken[:7]}" in history
            assert "3 != 4" in history
            between = walk.page.get_by_role("link", name="commits in between")
            assert str(await between.get_attribute("href")).endswith(f"/compare/{good}...{broken}")
            issue = str(await walk.page.get_by_role("link", name="new issue").get_attribute("href"))
            assert issue.startswith(f"{place.town.github.url}/octocat/compiler/issues/new?title=Failing+test")
            await walk.follow(broken[:7])
            assert walk.page.url == f"{place.town.url}/r/octocat/compiler/commits/{broken}"
            on_github = f"{place.town.github.url}/octocat/compiler/commit/{broken}"
            assert await walk.page.locator(f"a[href='{on_github}']").count()
            assert not walk.complaints
