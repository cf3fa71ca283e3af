"""A browser and a dashboard, shared by all tests in this folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, async_playwright

from tests.handlers.dashboard.nightly_runs import LOG, LOGGED, bucket_of
from tests.handlers.dashboard.site import DashboardSite, dashboard_site
from tests.waiting import DEADLINE

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first one that is installed. Debian's headless shell has no windows, which take half of Chromium's CPU time."""
NO_BROWSER = "The tests need Chromium (Debian: apt install chromium); scripts/chromium-for-tests installs it."
WIDE, NARROW = 1280, 360
PATIENCE = DEADLINE * 1000
"""Milliseconds; Playwright itself waits for 30 seconds."""
SERIOUS = ("serious", "critical")
AXE: str = Axe().axe_script
BARRIERS = "options => axe.run(options).then(results => results.violations)"
ONLY_VIOLATIONS = {"resultTypes": ["violations"]}
"""Otherwise axe also describes each element that follows a rule, which takes more CPU time than the rules."""
COLORS = ("color-contrast", "link-in-text-block")
"""The only rules of axe whose answers differ between light and dark pages: those of its tag cat.color."""
FAULTS = """() => {
  const found = [], seen = one => one.getClientRects().length > 0, root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) found.push(`the page is ${root.scrollWidth} pixels wide`);
  for (const one of document.querySelectorAll("table.rows tbody td"))
    if (one !== one.parentElement.firstElementChild && !one.dataset.label && one.textContent.trim() && seen(one))
      found.push(`a cell without its heading: ${one.textContent.trim().slice(0, 60)}`);
  for (const one of document.querySelectorAll("svg text"))
    if (seen(one) && one.getBoundingClientRect().height < 9) found.push(`too small to read: ${one.textContent}`);
  for (const one of document.querySelectorAll("main time"))
    if (/\\d:\\d/.test(one.textContent) && !/UTC/.test(one.textContent)) found.push(`no zone: ${one.textContent}`);
  for (const one of document.querySelectorAll("main :is(pre, code, td, th, dd, li, p)"))
    if (getComputedStyle(one).overflowX === "hidden" && one.scrollWidth > one.clientWidth + 1
        && !one.closest(".sr")) found.push(`cut off: ${one.textContent.slice(0, 60)}`);
  for (const one of document.querySelectorAll(".scroll"))
    if (!one.querySelector(".grid") && one.scrollWidth > one.clientWidth)
      found.push(`a wide table: ${one.scrollWidth} pixels`);
  for (const one of document.querySelectorAll(".grid th > *"))
    if (seen(one) && one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right)
      found.push(`beyond its cell: ${one.textContent}`);
  for (const one of document.querySelectorAll(".crumb"))
    if (seen(one) && one.scrollWidth > one.clientWidth && one.clientWidth < 60)
      found.push(`a crumb without its text: ${one.textContent}`);
  return [...new Set(found)];
}"""
"""What a person with a small screen would object to."""


@pytest.fixture(autouse=True)
def _all_closed() -> None:
    """Let connections outlive a test: the dashboard lives for the session.

    This replaces the fixture of the same name.
    """


@dataclass
class Walk:
    """A person on a page.

    `complaints` are the browser's reports: refused content, and errors of scripts.
    """

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list)

    async def go(self, path: str, status: int = 200) -> str:
        """Open a page of the dashboard; return its text."""
        answer = await self.page.goto(self.url + path)
        assert answer is not None
        assert answer.status == status, f"{path}: {answer.status}"
        return await self.text()

    async def follow(self, name: str) -> str:
        """Press the first link with this name; return the text of the page that it opens."""
        await self.page.get_by_role("link", name=name).first.click()
        await self.page.wait_for_load_state()
        return await self.text()

    async def text(self) -> str:
        """Return the visible text of the page."""
        return await self.page.inner_text("main")

    async def barriers(self, *rules: str) -> list[dict[str, Any]]:
        """Return what keeps people from using the page, as axe describes it: by some of its rules, or by all."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(AXE)
        options = ONLY_VIOLATIONS | ({"runOnly": rules} if rules else {})
        found: list[dict[str, Any]] = await self.page.evaluate(BARRIERS, options)
        return found

    async def audit(self, *rules: str) -> None:
        """Raise AssertionError for serious barriers, by some rules or by all."""
        serious = [
            (barrier["id"], barrier["help"], [node["html"][:200] for node in barrier["nodes"][:3]])
            for barrier in await self.barriers(*rules)
            if barrier["impact"] in SERIOUS
        ]
        assert not serious, f"{self.page.url}: {serious}"

    async def seen(self, name: str, *, colors: bool = False) -> None:
        """Audit a page on a wide light screen, and require that it fits on a narrow one; allow no complaint.

        `colors`: audit the colors of a dark screen too, for a page that has most of them.
        """
        await self.audit()
        await self.page.set_viewport_size({"width": NARROW, "height": 900})
        faults = await self.page.evaluate(FAULTS)
        assert not faults, f"{name} on a narrow screen: {faults}"
        if colors:
            await self.page.emulate_media(color_scheme="dark")
            await self.audit(*COLORS)
            await self.page.emulate_media(color_scheme="light")
        await self.page.set_viewport_size({"width": WIDE, "height": 900})
        assert not self.complaints, self.complaints

    async def foreign_links(self, *own_beginnings: str) -> list[str]:
        """Return the addresses of links that are neither to our own pages nor begin with one of `own_beginnings`."""
        links = await self.page.eval_on_selector_all("a[href], area, form, iframe", "all => all.map(one => one.href)")
        return [link for link in links if link and not link.startswith((f"{self.url}/", *own_beginnings))]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """Return the dashboard of two weeks of nightly runs."""
    folder = tmp_path_factory.mktemp("browser")
    async with dashboard_site(folder, bucket=bucket_of(folder, {LOGGED: LOG})) as running:
        yield running


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Start Debian's Chromium."""
    command = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    assert command is not None, NO_BROWSER
    # Chromium does not run as root in its own sandbox; the pages are our own.
    rights = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        running = await playwright.chromium.launch(executable_path=command, args=rights, timeout=PATIENCE)
        yield running
        await running.close()


@asynccontextmanager
async def profile(browser: Browser, **options: Any) -> AsyncIterator[BrowserContext]:
    """Open a profile without history; `options` are those of Playwright's `new_context`."""
    async with await browser.new_context(**options) as context:
        context.set_default_timeout(PATIENCE)
        yield context


@asynccontextmanager
async def walking(browser: Browser, url: str) -> AsyncIterator[Walk]:
    """Open a new tab, with scripts, for pages at `url`."""
    async with profile(browser, viewport={"width": WIDE, "height": 900}) as context:
        walker = Walk(await context.new_page(), url)

        def heard(message: ConsoleMessage) -> None:
            # The browser also reports each page with an error status.
            if message.type in ("error", "warning") and "status of 4" not in message.text:
                walker.complaints.append(message.text)

        walker.page.on("console", heard)
        walker.page.on("pageerror", lambda error: walker.complaints.append(str(error)))
        yield walker


@pytest_asyncio.fixture(loop_scope="session")
async def walk(browser: Browser, site: DashboardSite) -> AsyncIterator[Walk]:
    """Return a new tab on the dashboard of two weeks of nightly runs."""
    async with walking(browser, site.url) as walker:
        yield walker
