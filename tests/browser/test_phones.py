"""Every page on a small phone: nothing scrolls sideways, is cut off, or loses its heading.

Layouts do not depend on the color scheme; `tests/web/test_contrast.py` checks the colors of both.
"""

from __future__ import annotations

import pytest

from tests.browser.conftest import FAULTS, NARROW, Walk
from tests.handlers.dashboard.test_statements import ADDRESSES, PARTS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("browser")]

NEW, WITHOUT_LABS = "/r/octocat/new", "/r/octocat/docs"
VIEWS = (
    "",
    "/compare",
    "/fixes",
    "/flaky",
    "/slow",
    "/skipped",
    "/nightly",
    "/measurements",
    "/measurements/map",
    "/searches",
)
PAGES = [
    *(
        path.format(**PARTS) + query
        for path, queries in ADDRESSES.items()
        for query in queries
        if not path.endswith((".svg", ".atom", ".png", "/raw"))
    ),
    "/help",
    "/help?repo=octocat/compiler",
    *(f"{NEW}{view}" for view in VIEWS),
    f"{NEW}/labs/example-lab",
    *(f"{WITHOUT_LABS}{view}" for view in VIEWS),
]
MISSING = ["/r/nobody/nothing", "/r/octocat/compiler/pulls/x", "/r/octocat/compiler/tests"]

BROKEN = """() => {
  const main = document.querySelector("main");
  main.innerHTML = `<table class="rows"><tbody><tr><th>a</th><td>7</td></tr></tbody></table> <time>07:30</time>
    <svg width="64" height="20" viewBox="0 0 640 200"><text y="90">tiny</text></svg> <pre>long long long</pre>
    <div class="scroll"><table><tbody><tr><td><time>${"wide ".repeat(99)}</time></td></tr></tbody></table></div>
    <div class="scroll"><table class="grid"><tbody><tr><th>a<time>${"long ".repeat(9)}</time></th></tr></tbody></table>
    </div>`;
  document.querySelector(".top nav").innerHTML = `<a class="crumb" href="/">octocat</a>`;
  Object.assign(document.querySelector(".crumb").style, {maxWidth: "2em"});
  Object.assign(main.querySelector("pre").style, {overflow: "hidden", whiteSpace: "nowrap", width: "3em"});
  Object.assign(main.style, {width: "500px"});
}"""


@pytest.mark.parametrize("paths", [PAGES, MISSING], ids=["pages", "errors"])
async def test_pages_fit_on_a_small_phone(walk: Walk, paths: list[str]) -> None:
    await walk.page.set_viewport_size({"width": NARROW, "height": 800})
    widths = {}
    for path in paths:
        await walk.page.goto(walk.url + path)
        if faults := await walk.page.evaluate(FAULTS):
            widths[path] = faults
    assert widths == {}


async def test_a_fault_is_detected(walk: Walk) -> None:
    await walk.page.set_viewport_size({"width": NARROW, "height": 800})
    await walk.go("/help")
    await walk.page.evaluate(BROKEN)
    kinds = [fault.split(":")[0] for fault in await walk.page.evaluate(FAULTS)]
    assert kinds == [
        "the page is 500 pixels wide",
        "a cell without its heading",
        "too small to read",
        "no zone",
        "cut off",
        "a wide table",
        "beyond its cell",
        "a crumb without its text",
    ]


PAUSED = """() => document.querySelector(".grid tbody th a").insertAdjacentHTML(
  "afterend", "<span class='tag warn'>paused until 2026-12-12</span>")"""


async def test_the_state_of_a_target_stays_beside_its_cells(walk: Walk) -> None:
    await walk.page.set_viewport_size({"width": NARROW, "height": 800})
    await walk.go("/r/octocat/compiler")
    await walk.page.evaluate(PAUSED)
    assert await walk.page.evaluate(FAULTS) == []


TURNED = """element => {
  const main = document.querySelector("main");
  main.innerHTML = `<p>${element.replace("TEXT", "x\\u202ey")}<i>1</i><i>2</i></p>`;
  const [first, second] = main.querySelectorAll("i");
  return second.getBoundingClientRect().left < first.getBoundingClientRect().left;
}"""
"""Whether what follows an element is written from right to left because the text in it says so."""


async def test_text_from_outside_turns_nothing_that_follows_it(walk: Walk) -> None:
    await walk.page.goto(walk.url)
    elements = (
        "<a href='/'>TEXT</a>",
        "<code>TEXT</code>",
        "<strong>TEXT</strong>",
        "<span class='dim mono'>TEXT</span>",
    )
    assert [await walk.page.evaluate(TURNED, element) for element in elements] == [False] * len(elements)
    assert await walk.page.evaluate(TURNED, "<b>TEXT</b>")
