"""Texts of a hostile lab in a real browser, which has nothing to refuse, because every text is only text."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.conftest import FAULTS, NARROW, WIDE, walking
from tests.handlers.dashboard.hostile import GITHUB, LOG, LOGGED, PAGES, fill_with_hostile_text
from tests.handlers.dashboard.nightly_runs import bucket_of
from tests.handlers.dashboard.site import dashboard_site

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]


async def test_no_page_runs_or_links_text_from_a_lab(browser: Browser, tmp_path: Path) -> None:
    async with (
        dashboard_site(tmp_path, filled=fill_with_hostile_text, bucket=bucket_of(tmp_path, {LOGGED: LOG})) as site,
        walking(browser, site.url) as walk,
    ):
        walk.page.on("dialog", lambda dialog: walk.complaints.append(dialog.message))
        for path in PAGES:
            await walk.go(path)
            assert (path, await walk.foreign_links(GITHUB)) == (path, [])
            await walk.page.set_viewport_size({"width": NARROW, "height": 900})
            wide = [fault for fault in await walk.page.evaluate(FAULTS) if fault.startswith("the page is")]
            assert (path, wide) == (path, [])
            await walk.page.set_viewport_size({"width": WIDE, "height": 900})
        assert walk.complaints == []
