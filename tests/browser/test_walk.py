"""A walk through the dashboard in a real browser: what a person sees, on a wide and on a narrow screen."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Walk

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]


async def test_the_overview(walk: Walk) -> None:
    assert "octocat/compiler" in await walk.go("/")
    await walk.seen("overview")


async def test_a_page_that_is_not_there(walk: Walk) -> None:
    assert "Not Found" in await walk.go("/r/octocat/secret", status=404)
    await walk.seen("not-found")


async def test_the_commands(walk: Walk) -> None:
    assert "@ci help" in await walk.go("/help")
    await walk.seen("help")


async def test_the_nightly_branch(walk: Walk) -> None:
    assert "Newer commits" in await walk.go("/r/octocat/compiler/nightly")
    await walk.seen("nightly")
