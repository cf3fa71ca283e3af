"""A walk through the dashboard in a real browser: what a person sees, on a wide and on a narrow screen."""

from __future__ import annotations

import pytest

from tests.browser.conftest import Walk

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]


async def test_the_overview_page(walk: Walk) -> None:
    assert "octocat/compiler" in await walk.go("/")
    await walk.seen("overview")


async def test_the_grid_down_to_the_tests(walk: Walk) -> None:
    assert "example-lab/hexagon-v73" in await walk.go("/r/octocat/compiler")
    await walk.seen("grid", colors=True)
    await walk.follow("example-lab/hexagon-v73")
    await walk.follow("operators")
    assert "test_softmax[float16-16x64]" in await walk.follow("test_softmax.py::")
    await walk.page.locator("a.c.still").first.click()
    await walk.page.wait_for_load_state()
    assert "Not equal to tolerance" in await walk.text()
    await walk.seen("run", colors=True)
    await walk.follow("in the log")
    assert await walk.page.locator("tr.named:has(#named)").inner_text()
    await walk.seen("log", colors=True)
    await walk.page.go_back()
    await walk.page.locator("main .card li a").first.click()
    await walk.page.wait_for_load_state()
    assert "commits in between" in await walk.text()
    await walk.seen("history")


async def test_the_grid_by_keyboard(walk: Walk) -> None:
    async def focused() -> tuple[int, int]:
        place = "[document.activeElement.closest('tr').rowIndex, document.activeElement.closest('td, th').cellIndex]"
        row, column = await walk.page.evaluate(place)
        return row, column

    await walk.go("/r/octocat/compiler")
    places = []
    for key in ("j", "ArrowRight", "j", "ArrowRight", "ArrowDown", "k", "ArrowLeft"):
        await walk.page.keyboard.press(key)
        places.append(await focused())
    assert places == [(1, 0), (1, 1), (2, 1), (2, 2), (2, 2), (1, 2), (1, 1)]
    await walk.page.keyboard.press("?")
    assert await walk.page.get_by_role("dialog", name="Keyboard").is_visible()
    await walk.audit()
    await walk.page.keyboard.press("Escape")
    for key, focused_id in (("f", ""), ("Control+k", "find")):
        await walk.page.keyboard.press(key)
        focus = await walk.page.evaluate("[document.activeElement.name, document.activeElement.id]")
        assert focus == ["q", focused_id]
    await walk.page.keyboard.type("hubot-lab")
    await walk.page.keyboard.press("Enter")
    await walk.page.wait_for_url("**/r/octocat/compiler/search?q=hubot-lab")
    assert "1 target and 1 lab match" in await walk.text()
    await walk.seen("search")
    assert "is late" in await walk.follow("Labs")
    await walk.seen("labs", colors=True)


async def test_typing_filters_the_tests_of_the_page(walk: Walk) -> None:
    await walk.go("/r/octocat/compiler/slow")
    rows = walk.page.locator("table[data-tests] tbody tr:visible")
    row_count = await rows.count()
    await walk.page.keyboard.press("f")
    await walk.page.keyboard.type("SOFTMAX[float16")
    assert await rows.count() == 2
    assert f"2 of {row_count} on this page" in await walk.text()
    await walk.page.keyboard.press("Enter")
    await walk.page.wait_for_url("**q=SOFTMAX*")
    assert await rows.count() == 3
    assert not walk.complaints


async def test_a_missing_page(walk: Walk) -> None:
    assert "Not Found" in await walk.go("/r/octocat/secret", status=404)
    await walk.seen("not-found")


async def test_the_pages_of_the_nightly_branch_and_the_commands(walk: Walk) -> None:
    await walk.go("/")
    assert "Newer commits" in await walk.follow("Nightly")
    await walk.seen("nightly")
    await walk.page.get_by_role("link", name="Commands").click()
    await walk.page.wait_for_load_state()
    assert "These commands are on in octocat/compiler." in await walk.text()
    await walk.seen("help")


async def test_the_page_of_a_lab_that_stopped_reporting(walk: Walk) -> None:
    overview = await walk.go("/")
    row = next(line for line in overview.splitlines() if line.startswith("hubot-lab/rpi-5@rack:2"))
    assert "stale, over 36 h" in row
    lab = await walk.follow("hubot-lab")
    assert "stale, over 36 h" in lab
    assert "its SHA-256 is another one" in lab
    await walk.seen("lab")


async def test_the_page_of_a_pull_request(walk: Walk) -> None:
    assert "Pending merge" in await walk.go("/r/octocat/compiler/pulls/42")
    await walk.seen("pull", colors=True)
