"""One dashboard for all tests that only read it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.handlers.dashboard.site import DashboardSite, dashboard_site


@pytest.fixture(autouse=True)
def _all_closed() -> None:
    """Let connections outlive a test: the dashboard lives for the session.

    This replaces the fixture of the same name.
    """


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """Return the dashboard of two weeks of nightly runs."""
    async with dashboard_site(tmp_path_factory.mktemp("dashboard")) as running:
        yield running
