"""A private repository in a real browser, without and with sign-in: the bot and its GitHub are real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from tests.browser.conftest import Walk, walking
from tests.conversations.town import Town, town
from tests.visitor import SIGN_IN, may_sign_in

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]

CONFIG = """
repositories:
  octocat/compiler:
  octocat/secret:
    nightly:
"""
SECRET = "/r/octocat/secret/nightly"


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sign_in_town(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    """Return a town where people can sign in, and where hubot may read the private repository."""
    url = f"sqlite:///{tmp_path_factory.mktemp('sign-in')}/nightjar.db"
    async with town(url, config=CONFIG, environment=SIGN_IN) as place:
        place.app.install(place.github.create_repository("octocat/secret", private=True, people={"hubot": "read"}))
        may_sign_in(place)
        await place.started()
        yield place


@pytest_asyncio.fixture(loop_scope="session")
async def walk(browser: Browser, sign_in_town: Town) -> AsyncIterator[Walk]:
    """Return a new tab on the town's bot."""
    async with walking(browser, sign_in_town.url) as walker:
        yield walker


async def sign_in(walk: Walk, login: str) -> None:
    """Press the link on the page, and choose an account on GitHub's page."""
    await walk.page.get_by_role("link", name="Sign in with GitHub").click()
    await walk.page.get_by_role("button", name=f"@{login}", exact=True).click()
    await walk.page.wait_for_load_state()


async def test_readers_can_see_a_private_repository_after_they_sign_in(walk: Walk) -> None:
    assert "Sign in with GitHub" in await walk.go(SECRET, status=404)
    await walk.seen("private-signed-out")
    await sign_in(walk, "hubot")
    assert walk.page.url == walk.url + SECRET
    assert "No move yet" in await walk.text()
    await walk.seen("private-signed-in")
    assert "octocat/secret" in await walk.go("/")
    await walk.seen("overview-signed-in")
    assert await walk.page.evaluate("document.cookie") == ""
    await walk.page.get_by_role("button", name="Sign out").click()
    await walk.page.wait_for_load_state()
    assert "octocat/secret" not in await walk.text()
    await walk.go(SECRET, status=404)


async def test_links_alone_lead_from_the_first_page_to_a_private_repository(walk: Walk) -> None:
    assert "octocat/secret" not in await walk.go("/")
    await walk.page.get_by_role("link", name="Sign in", exact=True).click()
    await walk.page.get_by_role("button", name="@hubot", exact=True).click()
    await walk.page.wait_for_load_state()
    await walk.follow("octocat/secret")
    assert walk.page.url == f"{walk.url}/r/octocat/secret"


async def test_nobody_else_can_see_it(walk: Walk) -> None:
    await walk.go(SECRET, status=404)
    await sign_in(walk, "reader")
    assert "Not Found" in await walk.text()
    assert await walk.page.get_by_text("@reader").count() == 1
    await walk.seen("private-not-readable")


async def test_a_cancelled_sign_in_is_reported(walk: Walk) -> None:
    await walk.go(SECRET, status=404)
    await walk.page.get_by_role("link", name="Sign in with GitHub").click()
    await walk.page.get_by_role("button", name="Cancel").click()
    await walk.page.wait_for_load_state()
    assert "the sign-in was cancelled" in await walk.text()
    await walk.seen("sign-in-cancelled")
