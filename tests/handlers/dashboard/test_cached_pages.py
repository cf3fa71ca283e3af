"""A page is rendered again when its repository's results, the branch, or late results change, and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.load import parse_config
from bot.github.repositories.visibility import PublicRepositories
from bot.results.state import RunState
from bot.web.pages import Pages
from bot.web.rate_limit import RateLimit
from bot.web.sign_in.cookies import SESSION_COOKIE
from tests.handlers.dashboard.nightly_runs import ADRENO, HEXAGON, NIGHTLY_RUNS, NOW, REPOSITORY, Sent, sha
from tests.handlers.dashboard.site import CONFIG, DashboardSite, dashboard_site
from tests.result_statements import statements

HERE, API = f"/r/{REPOSITORY}", f"/api/v1/repos/{REPOSITORY}"
LATER = Sent(
    NIGHTLY_RUNS - 1, ADRENO, "runtime", (), run_id="run-9", state=RunState.REFUSED, reason="the file is not there"
)
RUN = f"{HERE}/runs/{'/'.join(HEXAGON)}/{sha(NIGHTLY_RUNS - 1)}/operators-run-1"
STORED = ["/", HERE, f"{HERE}/compare", f"{HERE}/flaky", f"{HERE}/labs/{ADRENO[0]}", RUN, f"{API}/grid", f"{API}/slow"]
HOURS = 3600.0


async def tag_of(site: DashboardSite, path: str) -> str:
    status, headers, _ = await site.get(path)
    assert status == 200
    return headers["Etag"]


async def test_a_rendered_page_costs_one_lookup_until_its_data_changes(tmp_path: Path) -> None:
    async with dashboard_site(tmp_path) as site:
        for path in STORED:
            status, first, text = await site.get(path)
            assert status == 200, path
            with statements() as seen:
                assert (await site.get(path))[2] == text
                second_status, headers, body = await site.get(path, If_None_Match=first["Etag"])
            assert (second_status, headers["Etag"], body) == (304, first["Etag"], "")
            selects = [statement for statement in seen if statement != "BEGIN"]
            assert len(selects) == 2, path
            assert all("nightjar_revisions" in statement for statement in selects)
        lab = f"{HERE}/labs/{ADRENO[0]}"
        old_tags = await tag_of(site, lab), await tag_of(site, HERE)
        site.store.put_state(LATER.run)
        _, headers, text = await site.get(lab, If_None_Match=old_tags[0])
        assert "the file is not there" in text
        assert headers["Etag"] != old_tags[0]
        # The tag depends on the content: the grid does not show refused uploads.
        assert (await site.get(HERE, If_None_Match=old_tags[1]))[0] == 304


@pytest.mark.parametrize("headers", [{"Cookie": f"{SESSION_COOKIE}=1.{'a' * 43}"}, {"Authorization": "Bearer x"}])
async def test_nobody_gets_a_page_rendered_by_a_cookie_or_a_token_that_means_nothing(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    async with dashboard_site(tmp_path) as site:
        for path in ("/", HERE, f"{HERE}/grid.png", "/api", "/api/v1/repos"):
            _, _, text = await site.get(path)
            with statements() as seen:
                assert (await site.get(path, **headers))[2] == text
            assert all("nightjar_revisions" in statement for statement in seen if statement != "BEGIN"), path


async def test_a_page_is_rendered_once_for_all_spellings_of_its_address(tmp_path: Path) -> None:
    """Otherwise anybody could have it rendered again and again, and others would get the links of that spelling."""
    target, base = f"target={'/'.join(ADRENO)}", f"base={sha(NIGHTLY_RUNS - 2)[:8]}"
    spellings = [
        [HERE, f"{HERE}?", f"{HERE}?&&&", f"{HERE}?q=", f"/r/{REPOSITORY.upper()}?q=&suite=", "/r/%6fctocat/compiler"],
        [f"{HERE}?q=runtime", f"{HERE}?suite=&&q=%72untime&"],
        [f"{HERE}/flaky", f"{HERE}/flaky?page=1", f"{HERE}/flaky?q=&page=%301"],
        [f"{HERE}/compare?{target}&{base}", f"{HERE}/compare?{base.replace('base=', 'base=+')}&{target}"],
        [f"{API}/grid", f"{API}/grid?&q="],
        [f"{HERE}/grid.png", f"{HERE}/grid.png?&&"],
        [f"{HERE}/badge/{'/'.join(ADRENO)}.svg", f"{HERE}/badge/{'/'.join(ADRENO)}.svg?&&"],
        ["/", "/?page=1", "/?&page=01"],
        ["/api", "/api?&&"],
    ]
    async with dashboard_site(tmp_path) as site:
        for path, *others in spellings:
            status, _, text = await site.get(path)
            assert status == 200, path
            for other in others:
                with statements() as seen:
                    assert (await site.get(other))[2] == text, other
                assert all("nightjar_revisions" in statement for statement in seen if statement != "BEGIN"), other


async def test_a_page_links_its_own_address_without_what_a_reader_added_to_it(tmp_path: Path) -> None:
    async with dashboard_site(tmp_path) as site:
        _, _, text = await site.get(f"/r/{REPOSITORY.upper()}/flaky?&&&page=01&q=runtime&&target=")
    assert f'href="{API}/flaky?q=runtime"' in text
    assert "&amp;&amp;" not in text
    assert REPOSITORY.upper() not in text


async def test_late_results_are_shown_as_late_although_nothing_has_arrived(tmp_path: Path) -> None:
    moment = NOW
    async with dashboard_site(tmp_path, clock=lambda: moment) as site:
        _, early_page = await site.json("/api/v1/repos")
        moment += 100 * HOURS
        _, late_page = await site.json("/api/v1/repos")
    stale = [[target["stale"] for target in page["repositories"][0]["targets"]] for page in (early_page, late_page)]
    assert stale == [[False, False, True], [True, True, True]]


async def test_a_repository_that_becomes_known_by_a_pattern_has_one_spelling_too() -> None:
    """Otherwise each letter case of its address would have a page of its own."""
    settings = parse_config(b"repositories:\n  'octocat/*':\n", "app.yaml")

    async def is_public(_: str) -> bool:
        return True

    async def list_public() -> PublicRepositories:
        return PublicRepositories(list(settings.repositories), incomplete=False)

    pages = Pages({}, RateLimit(300, 0), is_public, list_public, canonical_name=settings.configured.canonical_name)
    settings.configured.know(7, "octocat/Runtime")
    assert pages.canonical_name("OCTOCAT/runtime") == "octocat/Runtime"
    assert pages.canonical_name("octocat/Other") == "octocat/Other"


async def test_a_repository_that_matches_a_pattern_no_more_has_no_page_although_one_is_cached(tmp_path: Path) -> None:
    async with dashboard_site(tmp_path, config=CONFIG.replace(f"{REPOSITORY}:", "'octocat/*':")) as site:
        site.settings.configured.know(7, REPOSITORY)
        paths = [path for path in STORED if path != "/"]
        assert [(await site.get(path))[0] for path in paths] == [200] * len(paths)
        site.settings.configured.forget(7)
        assert [(await site.get(path))[0] for path in paths] == [404] * len(paths)
