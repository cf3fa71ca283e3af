"""What all pages share, in a browser: times in the reader's zone, filters that apply at once, the header of a phone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from playwright.async_api import Browser, ViewportSize

from tests.browser.conftest import Walk, profile
from tests.handlers.dashboard.nightly_runs import NOW
from tests.handlers.dashboard.site import DashboardSite

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]
HERE = "/r/octocat/compiler"
PHONE: ViewportSize = {"width": 390, "height": 800}
HEADER = "document.querySelector('.top').getBoundingClientRect().height"
CURRENT_VIEW = """(({left, right}) => [left, right])(
  document.querySelector(".views [aria-current]").getBoundingClientRect())"""
REGION = """() => [...document.querySelectorAll(".scroll")].filter(one => one.scrollWidth > one.clientWidth + 1)
  .map(one => [one.tabIndex, one.getAttribute("role"), one.getAttribute("aria-label").slice(0, 22)])"""


async def test_times_count_from_now_and_the_exact_one_is_in_the_zone_of_the_reader(
    browser: Browser, site: DashboardSite
) -> None:
    async with profile(browser, timezone_id="Asia/Tokyo", viewport=PHONE) as context:
        page = await context.new_page()
        await page.clock.set_fixed_time(datetime.fromtimestamp(NOW, UTC))
        await page.goto(f"{site.url}{HERE}/labs")
        (first, *_), titles = await page.locator("main time").all_inner_texts(), page.locator("main time").first
        title, moment = await titles.get_attribute("title"), await titles.get_attribute("datetime")
        assert first.replace("\u00a0", " ") == "3 days ago"
        assert title is not None
        assert moment is not None
        utc = datetime.fromisoformat(moment)
        assert title == f"{datetime.fromtimestamp(utc.timestamp() + 9 * 3600, UTC):%Y-%m-%d %H:%M:%S} Asia/Tokyo; " + (
            f"{utc:%Y-%m-%d %H:%M:%S} UTC"
        )
        assert "(Asia/Tokyo)" in await page.inner_text("footer")
        assert await page.evaluate(HEADER) < 50
    async with profile(browser, java_script_enabled=False) as context:
        page = await context.new_page()
        await page.goto(f"{site.url}{HERE}/labs")
        assert "UTC" in await page.locator("main time").first.inner_text()
        assert "All times are UTC." in await page.inner_text("footer")
        await page.goto(f"{site.url}{HERE}/slow")
        assert await page.locator(".filters button").is_visible()
        await page.fill("#find", "hubot-lab")
        await page.press("#find", "Enter")
        assert "1 target and 1 lab match" in await page.inner_text("main")


async def test_filters_apply_when_they_change_and_what_scrolls_can_be_reached(walk: Walk) -> None:
    await walk.go(f"{HERE}?target=example-lab/hexagon-v73")
    await walk.page.select_option("select[name=status]", "failing")
    await walk.page.wait_for_url(f"**{HERE}?target=example-lab%2Fhexagon-v73&status=failing")
    assert await walk.page.evaluate("document.activeElement.name") == "status"
    await walk.page.set_viewport_size(PHONE)
    for path in (HERE, f"{HERE}/compare", "/api", f"{HERE}/search?q=test_", f"{HERE}/labs"):
        await walk.go(path)
        assert await walk.page.evaluate(HEADER) < 50
        assert await walk.page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        await walk.audit("scrollable-region-focusable", "landmark-unique", "region")
        if path == f"{HERE}/labs":
            (start, end) = await walk.page.evaluate(CURRENT_VIEW)
            assert 0 <= start < end <= PHONE["width"]
        if path == HERE:
            assert await walk.page.evaluate(REGION) == [[0, "region", "Rows by nightly commit"]]
    await walk.page.click(".find button")
    await walk.page.wait_for_url(f"**{HERE}/search?q=")
    assert "Find tests" in await walk.text()
    assert not walk.complaints
