"""What tests measure: the page of a series, the list of a target, the map, and their twins."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
import pytest_asyncio

from bot.web.answers import AnswerPart, answer_text
from tests.handlers.dashboard.measured_nights import CONV, LOST, NIGHTS, SLOWER, TARGETS, TITLE, fill_measured
from tests.handlers.dashboard.site import REPOSITORY, DashboardSite, dashboard_site
from tests.results.uploads import LAB, sha

pytestmark = pytest.mark.asyncio(loop_scope="session")

HERE = f"/r/{REPOSITORY}/measurements"
API = f"/api/v1/repos/{REPOSITORY}/measurements"
FIRST, SECOND = (f"{LAB}/{target}" for target in TARGETS)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def measured(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardSite]:
    """Return the dashboard of a hundred nights."""
    async with dashboard_site(tmp_path_factory.mktemp("measured"), filled=fill_measured) as running:
        yield running


def sentence_of(page: dict[str, list[dict[str, str]]]) -> str:
    return answer_text(AnswerPart(**part) for part in page["answer"])


async def test_a_series_says_what_moved_by_how_much_and_since_when(measured: DashboardSite) -> None:
    query = f"?id={quote(CONV)}&measurement=latency"
    status, page = await measured.json(f"{API}/series{query}")
    assert status == 200
    said = sentence_of(page)
    numbers = r"41\d -> 46\d ms, \+1\d % \(1\d to 1\d\)"
    assert re.fullmatch(rf"latency of {re.escape(CONV)} on {FIRST}: {numbers}, since {sha(SLOWER)[:7]}\.", said)
    slower, steady = page["targets"]
    assert [move["since"] for move in slower["moves"]] == [sha(SLOWER)]
    assert slower["moves"][0]["kind"] == "worse"
    assert slower["moves"][0]["good"] == sha(SLOWER - 1)
    assert steady["moves"] == []
    assert steady["expected_low"] < 412 < steady["expected_high"] < 440
    assert len(slower["nights"]) == NIGHTS
    assert page["others"] == ["delegated_nodes"]
    _, _, text = await measured.get(f"{HERE}/series{query}")
    assert "Lower &lt;conv2d&gt; in two steps" in text
    assert f"{sha(SLOWER - 1)}...{sha(SLOWER)}" in text
    charts = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg class=\"chart\".*?</svg>", text, re.DOTALL)]
    assert [len(chart.findall("circle")) for chart in charts] == [NIGHTS, NIGHTS]
    first = charts[0]
    dots = [float(dot.get("cx", "")) for dot in first.findall("circle")]
    assert dots == sorted(dots)
    titles = [title.text or "" for title in first.iter("title")]
    assert any(TITLE in title for title in titles)
    assert f"from {min(night['value'] for night in slower['nights']):.0f} ms" in first.get("aria-label", "")
    assert len(first.findall("line[@class='level']")) == 2
    assert len(first.findall("line[@class='mark bad']")) == 1
    assert len(first.findall("rect")) == 1
    labels = [label.text or "" for label in first.findall("text")]
    assert "ms" in labels
    assert any(re.fullmatch(r"2026-\d\d-\d\d", label) for label in labels)
    assert sum(label.isdigit() for label in labels) >= 3


async def test_a_count_changes_as_a_fact(measured: DashboardSite) -> None:
    query = f"?id={quote(CONV)}&measurement=delegated_nodes&target={FIRST}"
    _, page = await measured.json(f"{API}/series{query}")
    said = f"delegated_nodes of {CONV} on {FIRST}: 12 -> 11 nodes, since {sha(LOST)[:7]}."
    assert sentence_of(page) == said
    assert page["targets"][0]["exact"]
    _, _, csv = await measured.get(f"{API}/series{query}&format=csv")
    lines = csv.splitlines()
    assert lines[0] == "target,suite,sha,committed_at,value,unit"
    assert len(lines) == NIGHTS + 1
    assert lines[1].startswith(f"{FIRST},operators,{sha(NIGHTS)},")


async def test_what_a_test_does_not_measure_is_said(measured: DashboardSite) -> None:
    status, _, text = await measured.get(f"{HERE}/series?id={quote(CONV)}&measurement=size")
    assert status == 200
    assert "No nightly commit has this measurement" in text
    assert "measurement=latency" in text
    status, _, _ = await measured.get(f"{HERE}/series?id=no_test&measurement=latency")
    assert status == 404


async def test_the_list_of_a_target_has_the_newest_value_of_all_it_measures(measured: DashboardSite) -> None:
    _, page = await measured.json(API)
    assert (page["target"], page["suite"], page["targets"]) == (SECOND, "operators", [SECOND, FIRST])
    assert sentence_of(page) == f"7 measurements of operators on {SECOND}."
    _, page = await measured.json(f"{API}?target={FIRST}&measurement=delegated_nodes&q=CONV")
    (row,) = page["rows"]
    assert (row["test"], row["value"], row["unit"], row["sha"]) == (CONV, 11.0, "nodes", sha(NIGHTS))
    assert row["recent"] == [12.0] * 20 + [11.0] * 10
    assert page["names"] == ["delegated_nodes", "latency", "snr"]
    _, _, text = await measured.get(f"{HERE}?target={FIRST}")
    assert f"/series?id={quote(CONV)}&amp;measurement=latency&amp;target={quote(FIRST, safe='')}" in text
    assert "from 11 to 12, newest 11" in text
    _, _, text = await measured.get(f"{HERE}?target={FIRST}&q=no+such+test")
    assert "No measurement matches" in text
    _, _, csv = await measured.get(f"{API}?target={FIRST}&format=csv")
    assert len(csv.splitlines()) == 8
