"""A walk through the dashboard in a real browser: what a person sees, on a wide and on a narrow screen."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Walk

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]


async def test_the_overview(walk: Walk) -> None:
    assert "octocat/compiler" in await walk.go("/")
    await walk.seen("overview")


async def test_the_grid_down_to_the_tests(walk: Walk) -> None:
    assert "example-lab/hexagon-v73" in await walk.go("/r/octocat/compiler")
    await walk.seen("grid")
    await walk.follow("example-lab/hexagon-v73")
    await walk.follow("operators")
    assert "test_softmax[float16-16x64]" in await walk.follow("test_softmax.py::")
    await walk.seen("grid-tests")
    await walk.page.locator("a.c.still").first.click()
    await walk.page.wait_for_load_state()
    assert "Not equal to tolerance" in await walk.text()
    await walk.seen("run")
    await walk.page.locator("main .card li a").first.click()
    await walk.page.wait_for_load_state()
    assert "commits in between" in await walk.text()
    await walk.seen("history")


async def test_arrow_keys_move_between_cells(walk: Walk) -> None:
    await walk.go("/r/octocat/compiler")
    await walk.page.locator("table.grid tbody a.c").first.focus()
    for key in ("ArrowRight", "ArrowDown"):
        await walk.page.keyboard.press(key)
    cell = await walk.page.evaluate("document.activeElement.closest('td').cellIndex")
    row = await walk.page.evaluate("document.activeElement.closest('tr').rowIndex")
    assert (cell, row) == (2, 2)
    await walk.page.keyboard.press("/")
    assert await walk.page.evaluate("document.activeElement.name") == "q"


async def test_a_page_that_is_not_there(walk: Walk) -> None:
    assert "Not Found" in await walk.go("/r/octocat/secret", status=404)
    await walk.seen("not-found")


async def test_the_commands(walk: Walk) -> None:
    assert "@ci help" in await walk.go("/help")
    await walk.seen("help")


async def test_the_nightly_branch(walk: Walk) -> None:
    await walk.go("/")
    assert "Newer commits" in await walk.follow("Nightly")
    await walk.seen("nightly")


async def test_a_lab(walk: Walk) -> None:
    assert "its SHA-256 is another one" in await walk.go("/r/octocat/compiler/labs/hubot-lab")
    await walk.seen("lab-refused")
    await walk.go("/")
    assert "Missed nightly runs" in await walk.follow("example-lab")
    await walk.seen("lab")


async def test_a_pull_request(walk: Walk) -> None:
    assert "Pending merge" in await walk.go("/r/octocat/compiler/pulls/42")
    await walk.seen("pull")
    assert "<script>" in await walk.go("/r/octocat/compiler/pulls/43")
    await walk.seen("pull-hostile")
