"""The pages of searches for a culprit: their answers, the bar of the range, the runs, and links from other pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from bot.core.events import Repository
from bot.core.parts import PartMap
from bot.effects.remember import StoreRecord
from bot.engine.changes import Changes
from bot.plan.effect import StoreContext, StoredEffect
from bot.web.page_filters import short
from handlers.dashboard.searches.chart import MOST_BARS
from handlers.dashboard.searches.texts import MOST_LISTED
from handlers.main_failures.decide import FailingContext, KnownFailures
from handlers.main_failures.records import FAILURES
from handlers.results.records import CODE_OWNERS, StoredCodeOwners
from handlers.searches.device_time import DEVICE_TIME, DeviceTime
from handlers.searches.effects import FIRST_STEP, StoreSearch
from handlers.searches.records import CULPRIT_SEARCH, CulpritSearch
from tests.handlers.dashboard.nightly_runs import HEXAGON, NIGHTLY_RUNS, NOW, REPOSITORY, SOFTMAX, sha
from tests.handlers.dashboard.site import DashboardSite, dashboard_site
from tests.handlers.dashboard.stored_history import REPOSITORY_ID
from tests.handlers.dashboard.stored_searches import (
    COMMITS,
    CULPRIT,
    NAMED,
    OF_NO_COMMIT,
    OPEN,
    REQUEST,
    a_run,
    a_search,
)

SEARCHES = f"/r/{REPOSITORY}/searches"
API = f"/api/v1/repos/{REPOSITORY}/searches"


async def first_line(site: DashboardSite, search: CulpritSearch) -> str:
    """Return the answer of a search's page."""
    status, document = await site.json(f"{API}/{search.id}")
    assert status == 200, document
    return "".join(part["text"] for part in document["answer"])


async def test_the_page_of_a_search_says_the_answer_first_and_shows_the_evidence(tmp_path: Path) -> None:
    async with dashboard_site(tmp_path) as site:
        answer = await first_line(site, NAMED)
        assert answer == "Began with Fuse softmax into its consumers, by hubot (#23) (99.6 %); this rests on 2 targets."
        answer = await first_line(site, OF_NO_COMMIT)
        assert answer.startswith("No commit is the cause (99.1 %): the device, the lab or its environment changed; the")
        answer = await first_line(site, OPEN)
        assert re.fullmatch(
            "Searching: 9 runs of at most 60 so far, and [0-9]+ commits of 40 left .99 %.; nothing is certain yet.",
            answer,
        )
        assert "Fuse" not in answer, "a wrong name costs more than no name"

        status, _, page = await site.get(f"{SEARCHES}/{NAMED.id}")
        assert status == 200
        assert "data-wait" not in page
        assert page.count('class="bar') == COMMITS + 2
        assert page.count('class="bar named"') == 1
        kinds = re.findall(r'class="run ([a-z]+)"', page)
        assert sorted(kinds) == sorted(["failed"] * 4 + ["passed"] * 5 + ["mixed", "none", "none"])
        assert all(f'href="#run{run.number}"' in page and f'id="run{run.number}"' in page for run in NAMED.runs)
        assert 'aria-label="Fuse softmax into its consumers, by hubot (#23): 9' in page
        assert 'href="https://logs.example.org/1"' in page
        assert "javascript:alert" not in re.sub(r">[^<]*<|aria-label=\"[^\"]*\"", "", page)
        assert "<script>alert" not in page

        _, document = await site.json(f"{API}/{OPEN.id}")
        status, _, page = await site.get(f"{SEARCHES}/{OPEN.id}")
        assert 'id="live" data-wait' in page
        assert '<meta http-equiv="refresh"' in page, "without a script, it refreshes too"
        states = {target["target"]: (target["state"], target["position"]) for target in document["next"]}
        assert states["/".join(HEXAGON)] == ("requested", CULPRIT)
        assert states["example-lab/adreno"] == ("off", None), "this target accepts no requests"
        chances = [commit["probability"] for commit in document["commits"]]
        assert abs(sum(chances) + document["environment"] + document["not_repeated"] - 1) < 1e-6

        status, _, page = await site.get(SEARCHES)
        assert [page.index(f"{SEARCHES}/{search.id}") for search in (NAMED, OPEN, OF_NO_COMMIT)] == sorted(
            page.index(f"{SEARCHES}/{search.id}") for search in (NAMED, OPEN, OF_NO_COMMIT)
        ), "the newest first"
        assert page.count('data-label="Began"><time') == 3
        for unknown in ("0123456789ab", "x", "a" * 300):
            assert (await site.get(f"{SEARCHES}/{unknown}"))[0] == 404


async def test_a_failing_test_leads_to_its_newest_search(tmp_path: Path) -> None:
    run = f"/r/{REPOSITORY}/runs/{'/'.join(HEXAGON)}/{sha(NIGHTLY_RUNS - 1)}/operators-run-1"
    async with dashboard_site(tmp_path) as site:
        for path in (f"/r/{REPOSITORY}/tests?id={quote(SOFTMAX)}", run):
            _, _, page = await site.get(path)
            assert f'<a href="{SEARCHES}/{OPEN.id}">searching' in page, path


async def test_a_search_that_has_just_begun_is_on_stored_pages_at_once(tmp_path: Path) -> None:
    run = f"/r/{REPOSITORY}/runs/{'/'.join(HEXAGON)}/{sha(NIGHTLY_RUNS - 1)}/operators-run-1"
    pages = f"/r/{REPOSITORY}/tests?id={quote(SOFTMAX)}", run
    search = replace(a_search(replace(REQUEST, good=sha(8))), step=FIRST_STEP, began_at=NOW)
    async with dashboard_site(tmp_path) as site:
        for path in pages:
            assert f'<a href="{SEARCHES}/{OPEN.id}">searching' in (await site.get(path))[2], path
        await stored(site, StoreSearch.of(REPOSITORY_ID, search))
        for path in pages:
            assert f'<a href="{SEARCHES}/{search.id}">searching' in (await site.get(path))[2], path


async def test_owners_and_failures_of_branches_that_were_just_stored_are_on_stored_pages_at_once(
    tmp_path: Path,
) -> None:
    test_page, fixes_page = f"/r/{REPOSITORY}/tests?id={quote(SOFTMAX)}", f"/r/{REPOSITORY}/fixes"
    failures = KnownFailures({"lint": FailingContext("lint", "a" * 40, "Break it", "failure", "", NOW - 3_600)})
    async with dashboard_site(tmp_path) as site:
        assert "Owners: " not in (await site.get(test_page))[2]
        assert "release" not in (await site.get(fixes_page))[2]
        owners = StoredCodeOwners("c" * 40, "* @octocat")
        await stored(site, StoreRecord.of(CODE_OWNERS.of(REPOSITORY), owners, is_shown=True))
        assert "Owners: @octocat" in (await site.get(test_page))[2]
        await stored(site, StoreRecord.of(FAILURES.of(REPOSITORY_ID, "release"), failures, is_shown=True))
        assert "release" in (await site.get(fixes_page))[2]


async def stored(site: DashboardSite, effect: StoredEffect) -> None:
    """Store an effect as a plan does."""

    async def no_guids(_: Sequence[str]) -> set[str]:
        return set()

    changes = Changes(site.records, lambda *_: ("", {}), no_guids)
    repository = Repository(REPOSITORY_ID, REPOSITORY, None)
    await effect.store(StoreContext("intent", repository, changes, PartMap({DEVICE_TIME: DeviceTime()})))
    await changes.store()


async def test_a_range_of_two_thousand_commits_is_one_bar_of_bounded_size(tmp_path: Path) -> None:
    search = replace(a_search(replace(REQUEST, suite="large"), 2_000), runs=(a_run(1, 2_000, "example-lab/adreno", 3),))
    async with dashboard_site(tmp_path) as site:
        await site.records.put(CULPRIT_SEARCH.of(REPOSITORY_ID, search.id), search)
        _, _, page = await site.get(f"{SEARCHES}/{search.id}")
        assert page.count('class="bar') <= MOST_BARS + 2
        assert page.count('data-label="Probability"') == MOST_LISTED
        assert len(page) < 150_000
        assert short(search.commits[-1].sha) in page
