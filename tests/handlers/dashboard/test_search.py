"""`/search`: one field finds tests, targets, labs, commits, pull requests and repositories, and nothing private."""

from __future__ import annotations

import pytest

from bot.core.page_paths import history_path, measurement_path
from bot.results.store.lists.search import names_with_text
from tests.handlers.dashboard.nightly_runs import REPOSITORY, SOFTMAX, sha
from tests.handlers.dashboard.site import DashboardSite
from tests.handlers.dashboard.stored_story import NUMBER

pytestmark = pytest.mark.asyncio(loop_scope="session")
HERE = f"/r/{REPOSITORY}"
FLOAT16 = SOFTMAX.replace("16x64", "1x128")
CASES = [
    ("softmax[float16-1x", "1 test and 2 measurements match", [
        ("test", history_path(REPOSITORY, FLOAT16)),
        *(("measurement", measurement_path(REPOSITORY, FLOAT16, name)) for name in ("delegated_nodes", "latency")),
    ]),
    ("ADRENO", "1 target matches", [("target", f"{HERE}?target=example-lab%2Fadreno")]),
    ("hubot-lab", "1 target and 1 lab match", [
        ("target", f"{HERE}?target=hubot-lab%2Frpi-5%40rack%3A2"), ("lab", f"{HERE}/labs/hubot-lab"),
    ]),
    (f"#{NUMBER}", "1 pull request matches", [("pull request", f"{HERE}/pulls/{NUMBER}")]),
    (sha(9)[:7].upper(), "1 commit matches", [("commit", f"{HERE}/commits/{sha(9)}")]),
    ("FUSE", "1 commit matches", [("commit", f"{HERE}/commits/{sha(13)}")]),
    ("octocat/comp", "1 repository matches", [("repository", HERE)]),
    ("secret", "Nothing matches", []),
    ("99999999999", "Nothing matches", []),
    ("%", "Nothing matches", []),
]  # fmt: skip


async def test_one_field_finds_each_kind_and_every_hit_opens(site: DashboardSite) -> None:
    for text, answer, hits in CASES:
        status, results = await site.json(f"/api/v1/search?q={text.replace('%', '%25').replace('#', '%23')}")
        assert status == 200, text
        assert [(hit["kind"], hit["href"]) for hit in results["hits"]] == hits, text
        assert results["answer"][0]["text"].startswith(answer), text
        for _, href in hits:
            assert (await site.get(href))[0] == 200, href
    _, everything = await site.json("/api/v1/search?q=test_")
    assert (everything["incomplete_kinds"], len(everything["hits"])) == (["test", "measurement"], 40)


async def test_every_page_has_the_field_and_a_repository_searches_itself(site: DashboardSite) -> None:
    assert '<form class="find" action="/search" method="get"' in (await site.get("/"))[2]
    assert f'<form class="find" action="{HERE}/search"' in (await site.get(HERE))[2]
    _, own = await site.json(f"/api/v1/repos/{REPOSITORY}/search?q=example-lab")
    assert {hit["repository"] for hit in own["hits"]} == {REPOSITORY}
    assert "octocat/new" in (await site.get("/search?q=example-lab"))[2]
    status, _, page = await site.get(f"{HERE}/search?q=%3Cscript%3E")
    assert (status, "<script>" in page) == (200, False)
    assert "Find tests, targets" in (await site.get("/search?q="))[2]


async def test_a_suite_that_is_too_large_is_not_read_and_its_repository_is_named(site: DashboardSite) -> None:
    results = site.store.read(names_with_text, [REPOSITORY], "test_", 40, most_names=100)
    assert results.unsearched == [REPOSITORY]
    assert len(results.tests) == 25
    assert all("/runtime/" in test for _, test in results.tests)
