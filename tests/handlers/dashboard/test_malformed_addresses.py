"""Any address gets an answer: its page, or what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yarl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.handlers.dashboard.nightly_runs import HEXAGON, sha
from tests.handlers.dashboard.site import DashboardSite, dashboard_site
from tests.malformed import each_alone, read_routes, several

pytestmark = pytest.mark.asyncio(loop_scope="session")
UNSTORABLE = ("\x00", "a\x00b", "\ud800", "9" * 25, "%_\\")
ANSWERS = {200, 304, 400, 404}
KNOWN = {
    "owner": "octocat",
    "repo": "compiler",
    "lab": HEXAGON[0],
    "target": HEXAGON[1],
    "sha": sha(13),
    "id": "tests/test_softmax.py::test_softmax",
}


async def routes_of(site: DashboardSite) -> list[Any]:
    status, document = await site.json("/api/v1/openapi.json")
    assert status == 200
    # Routes of other features are requested in the tests of those features.
    return [
        route
        for route in read_routes(document)
        if route[0].startswith(("/r/", "/api/v1/repos", "/help", "/api/v1/help"))
    ]


async def answer(site: DashboardSite, address: str, accept: str) -> tuple[int, str, str]:
    url = yarl.URL(site.url + address, encoded=True)
    async with site.client.get(url, headers={"Accept": accept}, allow_redirects=False) as got:
        return got.status, got.content_type, await got.text(errors="replace")


@pytest.mark.exhaustive("sqlite")
async def test_text_that_no_database_can_store_finds_nothing(url_with_tables: str, tmp_path: Path) -> None:
    async with dashboard_site(tmp_path, database=url_with_tables) as site:
        await check_each_alone(site, UNSTORABLE)


async def check_each_alone(site: DashboardSite, texts: Sequence[str]) -> None:
    """Require that an address with one wrong part is never answered with a fault of ours."""
    failed = []
    for address in each_alone(await routes_of(site), KNOWN, texts):
        status, kind, text = await answer(site, address, "application/json")
        if status not in ANSWERS:
            failed.append((status, address))
        elif status in (400, 404):
            assert kind == "application/problem+json", address
            assert json.loads(text)["detail"], address
    assert failed == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(data=st.data(), accept=st.sampled_from(["text/html", "application/json"]))
async def test_any_address_gets_an_answer(site: DashboardSite, data: st.DataObject, accept: str) -> None:
    address = data.draw(several(await routes_of(site), KNOWN))
    status, _, text = await answer(site, address, accept)
    assert status in ANSWERS, (address, text[:300])


@pytest.mark.parametrize("page", ["", "/flaky", "/slow", "/skipped", "/compare", "/tests"])
async def test_an_unknown_target_is_answered_with_those_that_exist(site: DashboardSite, page: str) -> None:
    query = "?target=example-lab/hexagon-v74" + ("&id=x" if page == "/tests" else "")
    status, answered = await site.json(f"/api/v1/repos/octocat/compiler{page or '/grid'}{query}")
    assert status == 400
    assert answered["detail"] == (
        "This repository has no target example-lab/hexagon-v74. "
        "Available: example-lab/hexagon-v73, example-lab/adreno, hubot-lab/rpi-5@rack:2."
    )
    status, _, page_text = await site.get(f"/r/octocat/compiler{page}{query}")
    assert (status, "Available: example-lab/hexagon-v73" in page_text.replace("<wbr>", "")) == (400, True)
