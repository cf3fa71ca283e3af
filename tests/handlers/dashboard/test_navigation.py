"""Links between pages: every page of a repository has the same navigation."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

from bot.core.page_paths import history_path, lab_path, pull_path, run_path, search_path, view_path
from tests.handlers.dashboard.nightly_runs import REPOSITORY, SOFTMAX, sha
from tests.handlers.dashboard.site import DashboardSite
from tests.handlers.dashboard.stored_searches import OPEN
from tests.handlers.dashboard.stored_story import NUMBER

pytestmark = pytest.mark.asyncio(loop_scope="session")
VIEWS = ["", "/compare", "/flaky", "/slow", "/measurements", "/skipped", "/nightly", "/pulls", "/searches", "/labs"]
HEXAGON = "example-lab/hexagon-v73"
PAGES = {
    view_path(REPOSITORY): "Grid",
    view_path(REPOSITORY, "compare"): "Compare",
    view_path(REPOSITORY, "flaky"): "Flaky",
    view_path(REPOSITORY, "slow"): "Slow",
    view_path(REPOSITORY, "skipped"): "Skipped",
    view_path(REPOSITORY, "nightly"): "Nightly",
    view_path(REPOSITORY, "labs"): "Labs",
    view_path(REPOSITORY, "search"): "",
    run_path(REPOSITORY, HEXAGON, sha(12), "operators-run-1"): "",
    history_path(REPOSITORY, SOFTMAX, HEXAGON): "",
    lab_path(REPOSITORY, "example-lab"): "",
    view_path(REPOSITORY, "pulls"): "Pulls",
    pull_path(REPOSITORY, NUMBER): "Pulls",
    view_path(REPOSITORY, "searches"): "Searches",
    search_path(REPOSITORY, OPEN.id): "Searches",
}


@pytest.mark.parametrize(("path", "current"), PAGES.items())
async def test_every_page_of_a_repository_links_all_its_views(site: DashboardSite, path: str, current: str) -> None:
    status, _, page = await site.get(path)
    assert status == 200
    views = page.split('<nav class="views"')[1].split("</nav>")[0]
    assert [link.partition("?")[0] for link in re.findall(r'href="([^"]+)"', views)] == [
        f"/r/{REPOSITORY}{view}" for view in VIEWS
    ]
    assert re.findall(r'aria-current="page">([^<]+)<', views) == ([current] if current else [])
    crumbs = page.split('<nav aria-label="Site">')[1].split("</nav>")[0]
    assert crumbs.count(f'href="/r/{REPOSITORY}">') == 1


async def test_the_links_to_other_views_keep_the_chosen_target(site: DashboardSite) -> None:
    _, _, page = await site.get(history_path(REPOSITORY, SOFTMAX, HEXAGON))
    assert 'href="/r/octocat/compiler/slow?target=example-lab%2Fhexagon-v73"' in page
    assert 'href="/r/octocat/compiler/nightly"' in page


async def test_the_help_of_a_hidden_repository_is_that_of_a_missing_one(site: DashboardSite) -> None:
    pages = []
    for name in ("octocat/secret", "octocat/nothing"):
        status, _, page = await site.get(f"/help?repo={name}")
        assert status == 200
        pages.append(page.replace(name, "NAME").replace(quote(name, safe=""), "NAME"))
    assert pages[0] == pages[1]
    assert "These are all commands." in pages[0]
    assert (await site.get("/help?repo=%3Cscript%3E"))[0] == 400
    assert "These commands are on in octocat/docs." in (await site.get("/help?repo=Octocat/Docs"))[2]
