"""A replay in a real browser, by an operator and by somebody else."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.conftest import Walk, walking
from tests.handlers.operate.places import OperatedTown, fail, operated_town

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def operated(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OperatedTown]:
    """Return a town with the operator hubot and a failed delivery."""
    async with operated_town(tmp_path_factory.mktemp("operate")) as place:
        yield place


@pytest_asyncio.fixture(loop_scope="session")
async def walk(browser: Browser, operated: OperatedTown) -> AsyncIterator[Walk]:
    """Return a new tab on the town's bot."""
    async with walking(browser, operated.town.url) as walker:
        yield walker


async def sign_in(walk: Walk, login: str) -> None:
    """Open the operators' pages, and sign in there."""
    await walk.go("/operate", status=404)
    await walk.page.get_by_role("link", name="Sign in with GitHub").click()
    await walk.page.get_by_role("button", name=f"@{login}", exact=True).click()
    await walk.page.wait_for_load_state()


async def test_an_operator_finds_a_failure_reads_the_plan_and_replays_it(walk: Walk, operated: OperatedTown) -> None:
    await sign_in(walk, "hubot")
    assert "Deliveries have failed" in await walk.text()
    await walk.seen("operate", colors=True)
    await walk.follow("Show them")
    await walk.page.locator("table a").first.click()
    await walk.page.wait_for_load_state()
    assert "blocked for a reason" in await walk.text()
    await walk.seen("operate-delivery", colors=True)
    await walk.page.get_by_role("button", name="Dry run").click()
    await walk.page.wait_for_load_state()
    assert "Nothing was written" in await walk.text()
    await walk.seen("operate-plan")
    await walk.follow("Back to the delivery")
    await walk.page.get_by_role("button", name="Replay").click()
    await walk.page.wait_for_load_state()
    assert "requested by @hubot" in await walk.text()
    await operated.town.quiet()
    assert "✗ failed" not in await walk.go(f"/operate/deliveries/{operated.failed}")
    await walk.seen("operate-replayed")
    assert "This process runs jobs" in await walk.follow("State")
    await walk.seen("operate-state", colors=True)
    await walk.follow("Log")
    await walk.seen("operate-log")


@pytest.mark.parametrize(("login", "operates"), [("hubot", 1), ("octocat", 0)])
async def test_links_alone_lead_an_operator_from_the_first_page_to_a_replay(
    walk: Walk, operated: OperatedTown, login: str, operates: int
) -> None:
    failed = await fail(operated.town)
    await walk.go("/")
    await walk.page.get_by_role("link", name="Sign in", exact=True).click()
    await walk.page.get_by_role("button", name=f"@{login}", exact=True).click()
    await walk.page.wait_for_load_state()
    assert await walk.page.get_by_role("link", name="Operate").count() == operates
    if operates:
        await walk.follow("Operate")
        await walk.follow("Show them")
        await walk.page.locator("table a").first.click()
        await walk.page.wait_for_load_state()
        assert failed in await walk.text()
        assert await walk.page.get_by_role("button", name="Replay").count() == 1


async def test_somebody_else_is_refused_with_the_reason(walk: Walk, operated: OperatedTown) -> None:
    await sign_in(walk, "octocat")
    assert "Only operators can see this" in await walk.text()
    await walk.seen("operate-refused")
    await walk.go(f"/operate/deliveries/{operated.failed}", status=403)
    assert await walk.page.get_by_role("button", name="Replay").count() == 0
