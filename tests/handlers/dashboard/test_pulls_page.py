"""`/r/{owner}/{repo}/pulls`: what webhooks said of pull requests, by page, state and author."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from bot.core.events import Delivery, Payload
from bot.github.pull_heads import HEAD, LISTED_PULL, ListedPull, PullHead, list_key, note_head, note_id
from bot.web.answers import answer_text
from handlers.dashboard.pull import list_page as pulls
from tests.handlers.dashboard.site import DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")
API, PAGE, REPOSITORY_ID = "/api/v1/repos/octocat/new/pulls", "/r/octocat/new/pulls", 8
PULLS = 120
MERGED, CLOSED = 117, 116


def webhook(number: int, **members: Any) -> Delivery:
    """Return a webhook about a pull request, whose author is octocat only for every tenth."""
    pull = {
        "number": number,
        "title": f"Tile <b>{number}</b>",
        "head": {"sha": f"{number:040x}", "ref": "tiles", "repo": {"id": REPOSITORY_ID}},
        "base": {"ref": "main", "repo": {"id": REPOSITORY_ID}},
        "user": {"id": 1, "login": "hubot" if number % 10 else "octocat", "type": "User"},
        "state": "open",
        "updated_at": "2026-11-20T05:00:00Z",
        "merged_at": None,
        **members,
    }
    repository = {"id": REPOSITORY_ID, "full_name": "octocat/new"}
    return Delivery(
        "guid", "pull_request", Payload({"action": "opened", "pull_request": pull, "repository": repository}), 1.0
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def many(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """Return a dashboard of a repository with many pull requests, in no order."""
    async with dashboard_site(tmp_path_factory.mktemp("pulls"), filled=lambda _: None) as site:
        for number in sorted(range(1, PULLS + 1), key=str):
            await note_head(site.records, webhook(number))
        merged = {"state": "closed", "merged_at": "2026-11-21T09:30:00Z", "merged_by": {"login": "octocat"}}
        await note_head(site.records, webhook(MERGED, **merged, updated_at="2026-11-21T09:30:00Z"))
        await note_head(site.records, webhook(CLOSED, state="closed", updated_at="2026-11-21T09:30:00Z"))
        yield site


async def test_each_pull_request_is_on_one_page_the_newest_first(many: DashboardSite) -> None:
    pages, address = list[list[int]](), API
    while address:
        _, page = await many.json(address)
        pages.append([row["number"] for row in page["pulls"]])
        address = f"{API}?before={page['older']}" if page["older"] else ""
    assert [len(page) for page in pages] == [pulls.ROWS, pulls.ROWS, PULLS - 2 * pulls.ROWS]
    assert [number for page in pages for number in page] == list(range(PULLS, 0, -1))
    _, _, html = await many.get(PAGE)
    assert "#120 Tile &lt;b&gt;120&lt;/b&gt;" in html
    assert '<time datetime="2026-11-20T05:00:00Z">2026-11-20 05:00&nbsp;UTC</time>' in html
    assert f'href="{PAGE}?before={PULLS - pulls.ROWS + 1}">Older pull requests' in html
    assert "48 of the 50 pull requests listed here are open." in html
    _, _, table = await many.get(f"{API}?format=csv")
    assert len(table.splitlines()) == PULLS + 1


async def test_the_first_line_links_what_is_pending() -> None:
    row = pulls.PullRow(
        number=7, title="", author="hubot", state="open", sha="a", updated_at="", merge="", device_tests=1, checks=[]
    )
    rows = [row, row.model_copy(update={"number": 6, "device_tests": 0}), row.model_copy(update={"number": 5})]
    stated = pulls.pulls_answer(rows, "octocat/new")
    assert answer_text(stated) == (
        "3 of the 3 pull requests listed here are open; a merge or a device test is pending for #7, #5."
    )
    assert [part.href for part in stated if part.href] == [f"{PAGE}/7", f"{PAGE}/5"]
    assert pulls.pulls_answer([], "octocat/new") == []


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("state=merged", [MERGED]),
        ("state=closed", [CLOSED]),
        ("author=OCTOCAT", list(range(120, 0, -10))),
        ("state=open&author=hubot&before=4", [3, 2, 1]),
        ("author=nobody", []),
    ],
)
async def test_filters(many: DashboardSite, query: str, numbers: list[int]) -> None:
    _, page = await many.json(f"{API}?{query}")
    assert [row["number"] for row in page["pulls"]] == numbers


async def test_a_search_that_reads_too_many_continues_on_the_next_page(many: DashboardSite) -> None:
    newest, docs = pulls.MOST_READ + 20, 9
    heads = {
        number: PullHead("a" * 40, {}, "", "main", 1, True, "", author="octocat" if number in (5, newest) else "hubot")
        for number in range(1, newest + 1)
    }
    await many.records.put_all({HEAD.of(docs, number): head for number, head in heads.items()})
    await many.records.put_all({LISTED_PULL.of(docs, list_key(number)): ListedPull(number) for number in heads})
    await note_id(many.records, "octocat/docs", docs)
    pages = [
        (await many.json(f"/api/v1/repos/octocat/docs/pulls?author=octocat{more}"))[1] for more in ("", "&before=21")
    ]
    assert [([row["number"] for row in page["pulls"]], page["older"]) for page in pages] == [
        ([newest], 21),
        ([5], None),
    ]


async def test_the_page_says_who_merged_it_and_when(many: DashboardSite) -> None:
    _, page = await many.json(f"{API}/{MERGED}")
    assert "".join(part["text"] for part in page["answer"]) == (
        "Merged by octocat on 2026-11-21 09:30 UTC. Nothing is pending. "
    )
    _, page = await many.json(f"{API}/{CLOSED}")
    assert "".join(part["text"] for part in page["answer"]) == "Closed without a merge. Nothing is pending. "


async def test_a_head_of_an_earlier_release_has_a_page_without_a_title(many: DashboardSite) -> None:
    old = PullHead("a" * 40, {"a" * 40: ""}, "", "main", 1, True, "2026-11-20T05:00:00Z")
    await many.records.put(HEAD.of(REPOSITORY_ID, 7_000), old)
    status, _, html = await many.get(f"{PAGE}/7000")
    assert (status, "<h1>#7000</h1>" in html) == (200, True)
