"""Every page on the two weeks of the demo, on a phone and on a wide screen, in light and dark.

The pages come from the application's own routes, so a new one fails here until it has an example.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Literal
from urllib.parse import quote

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser

from sandbox.demo import two_weeks as story
from sandbox.demo.past import OPEN_PULL, TwoWeeks
from sandbox.demo.stage import OPERATOR, REPOSITORY, Machine, machine
from tests.browser.conftest import COLORS, Walk, walking

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]

WIDTHS = (1280, 390)
HTML = "text/html"
EXAMPLES = {
    "/": [""],
    "/help": ["", f"?repo={REPOSITORY}"],
    "/operate": [""],
    "/operate/deliveries/{guid}": [""],
    "/operate/log": [""],
    "/operate/state": [""],
    "/r/{owner}/{repo}": [
        "",
        f"?target={story.LAB}/{story.TARGET}&suite={story.OPERATORS}",
        "?status=new-failure&q=softmax",
    ],
    "/r/{owner}/{repo}/compare": ["", "?target={lab}/{target}&base={baseline}&head={sha}"],
    "/r/{owner}/{repo}/flaky": [""],
    "/r/{owner}/{repo}/labs/{lab}": [""],
    "/r/{owner}/{repo}/nightly": [""],
    "/r/{owner}/{repo}/pulls/{n}": [""],
    "/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}": [""],
    "/r/{owner}/{repo}/skipped": [""],
    "/r/{owner}/{repo}/slow": [""],
    "/r/{owner}/{repo}/tests": ["?id=tests/python/operators/test_gather.py::test_gather[int8-1x128]"],
}
"""The queries with which each page is opened."""
FORMS = {"/login", "/login/callback"}
"""Routes that lead to GitHub's pages."""
SCROLLS = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
COMMAND = "options => axe.run(options).then(results => results.violations)"
RULES: tuple[tuple[Literal["light", "dark"], Mapping[str, object]], ...] = (
    ("light", {"resultTypes": ["violations"]}),
    ("dark", COLORS),
)
"""What axe checks in each color scheme: only colors differ between the two."""


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
    owner, repo = REPOSITORY.split("/")
    values = {
        "owner": owner,
        "repo": repo,
        "lab": story.LAB,
        "target": story.TARGET,
        "sha": weeks.tested[-1],
        "baseline": weeks.tested[-2],
        "run_id": story.OPERATORS,
        "n": OPEN_PULL,
        "guid": quote(deliveries["deliveries"][0]["guid"], safe=""),
    }
    axe, faults = Axe().axe_script, []
    for path, queries in EXAMPLES.items():
        for query in queries:
            address = f"{path}{query}".format_map(values)
            await walk.go(address)
            await walk.page.evaluate(axe)
            for width in WIDTHS:
                await walk.page.set_viewport_size({"width": width, "height": 900})
                if await walk.page.evaluate(SCROLLS):
                    faults.append(f"{address} at {width} pixels scrolls sideways")
                for scheme, rules in RULES:
                    await walk.page.emulate_media(color_scheme=scheme)
                    for fault in await walk.page.evaluate(COMMAND, rules):
                        nodes = [node["html"][:120] for node in fault["nodes"][:2]]
                        faults.append(f"{address} at {width} pixels, {scheme}: {fault['id']}: {nodes}")
            faults += [f"{address}: {complaint}" for complaint in walk.complaints]
            walk.complaints.clear()
    assert not faults, "\n".join(faults)
