"""Whatever a lab puts into names, reports and manifests, every page shows it as text."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.handlers.dashboard.hostile import ATTACK, LOG, LOGGED, PAGES, TESTS, PageMarkup, fill_with_hostile_text
from tests.handlers.dashboard.nightly_runs import bucket_of
from tests.handlers.dashboard.site import DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """Return the dashboard of a hostile lab."""
    folder = tmp_path_factory.mktemp("hostile")
    bucket = bucket_of(folder, {LOGGED: LOG})
    async with dashboard_site(folder, filled=fill_with_hostile_text, bucket=bucket) as running:
        yield running


@pytest.mark.parametrize("path", PAGES)
async def test_text_from_a_lab_is_escaped_and_links_nothing(hostile_site: DashboardSite, path: str) -> None:
    status, headers, page = await hostile_site.get(path)
    assert status == 200
    assert "script-src 'self';" in headers["Content-Security-Policy"]
    assert PageMarkup(page).faults == []


async def test_people_see_the_text_unchanged(hostile_site: DashboardSite) -> None:
    text = {path: "".join(PageMarkup((await hostile_site.get(path))[2]).text) for path in PAGES}
    assert sum(TESTS[0] in page_text for page_text in text.values()) >= 4
    assert sum(ATTACK in page_text for page_text in text.values()) >= 10
    assert "49" not in text["/"]
