"""Every page on the two weeks of the demo, on a phone and on a wide screen, in light and dark.

The pages come from the application's own routes, so a new one fails here until it has an example.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from re import Pattern
from typing import Literal
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from sandbox.demo import two_weeks as story
from sandbox.demo.past import GPU_CI, OPEN_PULL, TwoWeeks
from sandbox.demo.stage import OPERATOR, REPOSITORY, Machine, machine
from tests.browser.conftest import COLORS, Walk, walking

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]

MOST_CLICKS = 2
HTML = "text/html"
FAILING = "tests/python/operators/test_gather.py::test_gather[int8-1x128]"
SLOWER = f"{story.KERNEL_FILE}::{story.SLOWER}"
EXAMPLES = {
    "/": [""],
    "/api": [""],
    "/help": ["", f"?repo={REPOSITORY}"],
    "/labs": [""],
    "/operate": [""],
    "/operate/deliveries/{guid}": [""],
    "/operate/log": [""],
    "/operate/state": [""],
    "/r/{owner}/{repo}": [
        "",
        f"?target={story.LAB}/{story.TARGET}&suite={story.OPERATORS}",
        "?status=new-failure&q=softmax",
    ],
    "/r/{owner}/{repo}/commits/{sha}": [""],
    "/r/{owner}/{repo}/compare": ["", "?target={lab}/{target}&base={baseline}&head={sha}"],
    "/r/{owner}/{repo}/compare/targets": [""],
    "/r/{owner}/{repo}/fixes": [""],
    "/r/{owner}/{repo}/flaky": [""],
    "/r/{owner}/{repo}/labs": [""],
    "/r/{owner}/{repo}/labs/{lab}": [""],
    "/r/{owner}/{repo}/measurements": ["", f"?target={story.LAB}/{story.TARGET}"],
    "/r/{owner}/{repo}/measurements/map": [""],
    "/r/{owner}/{repo}/measurements/series": [
        f"?id={SLOWER}&measurement=latency",
        f"?id={FAILING}&measurement=latency",
    ],
    "/r/{owner}/{repo}/mute": [f"?id={FAILING}"],
    "/r/{owner}/{repo}/nightly": [""],
    "/r/{owner}/{repo}/pulls": [""],
    "/r/{owner}/{repo}/pulls/{n}": [""],
    "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}": [""],
    "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}/files/{name}": ["", f"?test={FAILING}"],
    "/r/{owner}/{repo}/search": ["?q=softmax"],
    "/r/{owner}/{repo}/searches": [""],
    "/r/{owner}/{repo}/searches/{id}": [""],
    "/r/{owner}/{repo}/skipped": [""],
    "/r/{owner}/{repo}/slow": [""],
    "/r/{owner}/{repo}/tests": [f"?id={FAILING}"],
    "/search": ["", "?q=softmax"],
}
"""The queries with which each page is opened."""
FORMS = {"/login", "/login/callback"}
"""Routes that lead to GitHub's pages."""
SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
FEWER_SECTIONS = """() => {
  const sections = document.querySelectorAll("main section");
  if (sections.length > 40) sections.forEach((one, number) => number % 12 && one.remove());
}"""
"""The API reference has a hundred routes in the same form, and would take more than half of axe's time."""
SCREENS: tuple[tuple[int, Literal["light", "dark"]], ...] = (
    (390, "light"),
    (390, "dark"),
    (1280, "dark"),
    (1280, "light"),
)
"""In an order in which each differs from the last by one of them: the browser lays out a page for each width."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def demo() -> AsyncIterator[tuple[Machine, TwoWeeks]]:
    """Return the demo after its two weeks, with the bot in this process."""
    async with machine() as place, place.after_two_weeks() as weeks:
        yield place, weeks


@pytest_asyncio.fixture(loop_scope="session")
async def walk(browser: Browser, demo: tuple[Machine, TwoWeeks]) -> AsyncIterator[Walk]:
    """Return a new tab on the demo's bot, in which nobody has signed in."""
    async with walking(browser, demo[0].url) as walker:
        yield walker


async def sign_in(walk: Walk, link: str = "Sign in") -> None:
    """Sign in as the operator from the page that is open."""
    await walk.page.get_by_role("link", name=link).first.click()
    await walk.page.get_by_role("button", name=f"@{OPERATOR}", exact=True).click()
    await walk.page.wait_for_load_state()


async def test_every_page_fits_and_has_no_barrier(walk: Walk, demo: tuple[Machine, TwoWeeks]) -> None:
    _, weeks = demo
    await walk.go("/")
    await sign_in(walk)
    document = await (await walk.page.request.get(f"{walk.url}/api/v1/openapi.json")).json()
    pages = {path for path, methods in document["paths"].items() if HTML in str(methods.get("get"))}
    assert pages - FORMS == set(EXAMPLES)
    deliveries = await (await walk.page.request.get(f"{walk.url}/api/v1/operate")).json()
    searches = await (await walk.page.request.get(f"{walk.url}/api/v1/repos/{REPOSITORY}/searches")).json()
    owner, repo = REPOSITORY.split("/")
    values = {
        "owner": owner,
        "repo": repo,
        "lab": story.LAB,
        "target": story.TARGET,
        "sha": weeks.tested_shas[-1],
        "baseline": weeks.tested_shas[-2],
        "run_id": story.OPERATORS,
        "name": story.LOG_NAME,
        "n": OPEN_PULL,
        "id": searches["searches"][0]["id"],
        "guid": quote(deliveries["deliveries"][0]["guid"], safe=""),
    }
    faults = []
    for path, queries in EXAMPLES.items():
        for query in queries:
            address = f"{path}{query}".format_map(values)
            await walk.go(address)
            for width in (1280, 390):
                await walk.page.set_viewport_size({"width": width, "height": 900})
                if await walk.page.evaluate(SCROLLS):
                    faults.append(f"{address} at {width} pixels scrolls sideways")
            await walk.page.evaluate(FEWER_SECTIONS)
            for width, scheme in SCREENS:
                await walk.page.set_viewport_size({"width": width, "height": 900})
                await walk.page.emulate_media(color_scheme=scheme)
                for fault in await walk.barriers(*(COLORS if scheme == "dark" else ())):
                    nodes = [node["html"][:120] for node in fault["nodes"][:2]]
                    faults.append(f"{address} at {width} pixels, {scheme}: {fault['id']}: {nodes}")
            faults += [f"{address}: {complaint}" for complaint in walk.complaints]
            walk.complaints.clear()
    assert not faults, "\n".join(faults)


@dataclass
class Clicks:
    """A person who begins at the first page, and presses links and buttons."""

    walk: Walk
    count: int = 0

    async def press(self, *names: str | Pattern[str], role: Literal["link", "button"] = "link") -> str:
        """Press one link or button after the other, each found by its name; return the text of the last page."""
        for name in names:
            self.count += 1
            await self.walk.page.locator("body").get_by_role(role, name=name).first.click()
            await self.walk.page.wait_for_load_state()
        return await self.walk.text()

    async def search(self, text: str) -> None:
        """Search for a text, and wait for the page with the answer."""
        field = self.walk.page.get_by_role("searchbox").first
        await field.fill(text)
        await field.press("Enter")
        await self.walk.page.wait_for_load_state()


@pytest_asyncio.fixture(loop_scope="session")
async def clicks(walk: Walk) -> AsyncIterator[Clicks]:
    """Return a person on the first page; fail if they needed more than two clicks."""
    await walk.go("/")
    person = Clicks(walk)
    yield person
    assert person.count <= MOST_CLICKS
    assert not walk.complaints


async def test_which_targets_are_broken_by_todays_commits(clicks: Clicks) -> None:
    text = await clicks.press(REPOSITORY, re.compile("new failures"))
    assert f"{story.LAB}/{story.TARGET}" in text
    assert "test_softmax[float16-1x128]" in text


async def test_is_this_failure_mine(clicks: Clicks) -> None:
    await clicks.search(f"#{OPEN_PULL}")
    text = await clicks.press(re.compile(f"#{OPEN_PULL}"))
    assert "1 new failure" in text
    assert "test_layer_norm[float16-16x64]" in text


async def test_who_owns_the_lab_that_is_late(clicks: Clicks) -> None:
    text = await clicks.press(re.compile(f"{story.OTHER_LAB}"))
    assert "@hubot" in text
    assert story.LATE in text


async def test_what_does_the_bot_wait_for_on_a_pull_request(clicks: Clicks) -> None:
    await clicks.search(f"#{OPEN_PULL}")
    text = await clicks.press(re.compile(f"#{OPEN_PULL}"))
    for reason in (GPU_CI, f"{story.OTHER_LAB}/{story.BOARD}"):
        assert reason in text


async def test_mute_this_test_for_a_week(clicks: Clicks, demo: tuple[Machine, TwoWeeks]) -> None:
    place, weeks = demo
    await sign_in(clicks.walk)
    before = datetime.now(UTC)
    await clicks.press("mute")
    await clicks.walk.page.get_by_label("Reason").fill("The fix is in review")
    await clicks.walk.page.get_by_label("Issue").fill("1")
    await clicks.press("Open a pull request", role="button")
    await weeks.settled()
    pull = place.repo.pulls[-1]
    assert "quarantine" in "".join(change.patch for change in pull.files)
    proposed = {(moment + timedelta(days=7)).date().isoformat() for moment in (before, datetime.now(UTC))}
    assert any(day in change.patch for day in proposed for change in pull.files)
