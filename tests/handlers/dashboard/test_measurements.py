"""What tests measure: the page of a series, the list of a target, the map, and their twins."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from csv import DictReader
from datetime import datetime
from html import unescape
from io import StringIO
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
import pytest_asyncio
from nightjar_formats.measurements import Measurement

from bot.results.store.measurements.search import GONE
from bot.results.store.store import ResultsStore
from bot.web.answers import AnswerPart, answer_text
from handlers.dashboard.measurements.map_page import MOST_CELLS, MOST_FLOWS
from tests.handlers.dashboard.measured_nights import (
    CONV,
    LOST,
    NIGHTS,
    POOL,
    POOLED,
    SLOWER,
    TARGETS,
    TITLE,
    fill_measured,
)
from tests.handlers.dashboard.site import REPOSITORY, DashboardSite, dashboard_site
from tests.results.uploads import LAB, Upload, sha

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
    answer = sentence_of(page)
    numbers = r"41\d -> 46\d ms, \+1\d % \(1\d to 1\d\)"
    assert re.fullmatch(rf"latency of {re.escape(CONV)} on {FIRST}: {numbers}, since {sha(SLOWER)[:7]}\.", answer)
    slower, steady = page["targets"]
    assert [move["since"] for move in slower["moves"]] == [sha(SLOWER)]
    assert slower["moves"][0]["kind"] == "worse"
    assert slower["moves"][0]["good"] == sha(SLOWER - 1)
    assert steady["moves"] == []
    assert steady["expected_low"] < 412 < steady["expected_high"] < 440
    assert len(slower["nights"]) == NIGHTS
    assert page["other_names"] == ["delegated_nodes"]
    _, _, text = await measured.get(f"{HERE}/series{query}")
    assert "Lower &lt;conv2d&gt; in two steps" in text
    assert f"{sha(SLOWER - 1)}...{sha(SLOWER)}" in text
    charts = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg class=\"chart wide\".*?</svg>", text, re.DOTALL)]
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
    answer = f"delegated_nodes of {CONV} on {FIRST}: 12 -> 11 nodes, since {sha(LOST)[:7]}."
    assert sentence_of(page) == answer
    assert page["targets"][0]["exact"]
    _, _, csv = await measured.get(f"{API}/series{query}&format=csv")
    lines = csv.splitlines()
    assert lines[0] == "target,suite,sha,committed_at,value,unit"
    assert len(lines) == NIGHTS + 1
    assert lines[1].startswith(f"{FIRST},operators,{sha(NIGHTS)},")


async def test_a_change_of_a_removed_test_has_ended_on_every_page(measured: DashboardSite) -> None:
    query = f"?id={quote(POOL)}&measurement=delegated_nodes"
    _, page = await measured.json(f"{API}/series{query}")
    (series,) = page["targets"]
    assert series["gone"]
    assert [(move["text"], move["ended_in"]) for move in series["moves"]] == [
        ("delegated_nodes 6 -> 5 nodes", sha(POOLED + GONE))
    ]
    assert sentence_of(page) == (
        f"delegated_nodes of {POOL} on {SECOND}: nothing was measured in the newest nights; the last value is 5 nodes, "
        f"at {sha(POOLED)[:7]}."
    )
    _, _, badge = await measured.get(f"/r/{REPOSITORY}/badge.svg{query}")
    assert "no value" in badge
    _, _, text = await measured.get(f"{HERE}/series{query}")
    assert "until" in text
    assert '<span class="tag bad">' not in text


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
    assert sentence_of(page) == f"8 measurements of operators on {SECOND}."
    assert [(row["test"], row["ended_in"]) for row in page["moved"]] == [(POOL, sha(POOLED + GONE))]
    _, page = await measured.json(f"{API}?target={FIRST}&measurement=delegated_nodes&q=CONV")
    answer = rf"delegated_nodes of {re.escape(CONV)}: 12 -> 11 nodes, since {sha(LOST)[:7]}; 1 measurement of .*"
    assert re.fullmatch(answer, sentence_of(page))
    assert [(row["measurement"], row["since"], row["kind"]) for row in page["moved"]] == [
        ("delegated_nodes", sha(LOST), "worse"),
        ("latency", sha(SLOWER), "worse"),
    ]
    assert page["moved"][0]["recent"] == [12.0] * 50 + [11.0] * 10
    first, second = page["moved"]
    moment = datetime.fromisoformat(second["since_at"]).timestamp()
    _, page = await measured.json(f"{API}?target={FIRST}&older_than={moment},0")
    assert page["moved"] == []
    _, page = await measured.json(f"{API}?target={FIRST}&older_than={moment + 1},0")
    assert page["moved"] == [second] != [first]
    _, page = await measured.json(f"{API}?target={FIRST}&measurement=delegated_nodes&q=CONV")
    (row,) = page["rows"]
    assert (row["test"], row["value"], row["unit"], row["sha"]) == (CONV, 11.0, "nodes", sha(NIGHTS))
    assert row["recent"] == [12.0] * 20 + [11.0] * 10
    assert page["names"] == ["delegated_nodes", "latency", "snr"]
    _, _, text = await measured.get(f"{HERE}?target={FIRST}")
    assert f"/series?id={quote(CONV)}&amp;measurement=latency&amp;target={quote(FIRST, safe='')}" in text
    assert "from 11 to 12, newest 11" in text
    assert f"?target={quote(FIRST, safe='')}&amp;table=moved&amp;format=csv" in text
    _, _, text = await measured.get(f"{HERE}?target={FIRST}&q=no+such+test")
    assert "No measurement matches" in text
    _, _, csv = await measured.get(f"{API}?target={FIRST}&format=csv")
    assert len(csv.splitlines()) == 8
    _, _, csv = await measured.get(f"{API}?target={FIRST}&table=moved&format=csv")
    moves = list(DictReader(StringIO(csv)))
    assert [(move["measurement"], move["since"], move["level_after"]) for move in moves] == [
        ("delegated_nodes", sha(LOST), "11.0"),
        ("latency", sha(SLOWER), str(second["level_after"])),
    ]


async def test_the_map_compares_operators_and_flows_at_two_commits(measured: DashboardSite) -> None:
    query = f"?target={FIRST}&base={sha(LOST - 1)}&head={sha(LOST)}"
    _, page = await measured.json(f"{API}/map{query}")
    assert (page["measurement"], page["flows"]) == ("delegated_nodes", ["xnnpack"])
    cells = {
        row["operator"]: [(cell["base"], cell["head"], cell["kind"]) for cell in row["cells"]] for row in page["rows"]
    }
    assert cells == {"test_conv2d": [(12.0, 11.0, "worse")], "test_softmax": [(3.0, 3.0, None)]}
    answer = f"delegated_nodes of 2 operators on {FIRST}: 1 value differs between"
    assert sentence_of(page).startswith(answer)
    _, _, text = await measured.get(f"{HERE}/map{query}")
    assert "12 -&gt; 11" in text
    assert f"{sha(LOST - 1)}...{sha(LOST)}" in text
    _, page = await measured.json(f"{API}/map?target={FIRST}&measurement=snr")
    assert (page["head"], page["base"], page["flows"]) == (sha(NIGHTS), sha(NIGHTS - 1), ["0", "1", "2", "3"])
    _, _, csv = await measured.get(f"{API}/map{query}&format=csv")
    assert csv.splitlines()[1:] == [
        f"test_conv2d,xnnpack,{CONV},delegated_nodes,12.0,11.0,nodes,worse,{FIRST}",
        f"test_softmax,xnnpack,test_softmax[xnnpack],delegated_nodes,3.0,3.0,nodes,,{FIRST}",
    ]
    _, page = await measured.json(f"{API}/map{query}&all_targets=true")
    assert page["columns"] == [[FIRST, "xnnpack"], [SECOND, "xnnpack"]]
    conv = next(row for row in page["rows"] if row["operator"] == "test_conv2d")
    sides = [(cell["target"], cell["base"], cell["head"], cell["kind"]) for cell in conv["cells"]]
    assert sides == [(FIRST, 12.0, 11.0, "worse"), (SECOND, 12.0, 12.0, None)]
    assert sentence_of(page).startswith("delegated_nodes of 3 operators on 2 targets: 2 values differ between")
    _, _, text = await measured.get(f"{HERE}/map{query}&all_targets=true")
    assert f"measurement=delegated_nodes&amp;target={quote(SECOND, safe='')}" in text
    status, problem = await measured.json(f"{API}/map?target={FIRST}&head={'f' * 7}")
    assert (status, "not among the newest 60" in problem["detail"]) == (400, True)


async def test_a_map_has_pages_and_those_targets_whose_columns_fit(tmp_path: Path) -> None:
    size, flows = (Measurement("size", 1.0),), MOST_FLOWS // 2
    measured = {f"test_op_{number}[{flow}]": size for flow in range(flows) for number in range(60)}

    def fill(store: ResultsStore) -> None:
        for target in ("first", "second", "third"):
            upload = Upload(1, dict.fromkeys(measured, "passed"), target=target, measured=measured)
            store.put(upload.run, upload.columns)

    async with dashboard_site(tmp_path, filled=fill) as site:
        query = f"?target={LAB}/first&all_targets=true"
        _, page = await site.json(f"{API}/map{query}")
        assert page["shown_targets"] == [f"{LAB}/first", f"{LAB}/second"]
        assert (len(page["columns"]), page["is_cut"]) == (MOST_FLOWS, True)
        assert page["pages"] == -(-len(measured) // (MOST_CELLS // 3))
        assert sentence_of(page) == "size of 16 operators on 2 targets, on this page."
        _, _, text = await site.get(f"{HERE}/map{query}&page=2")
        following = unescape(re.findall(r'rel="next" href="([^"]*)"', text)[-1])
        assert "Page 3 of 4" in (await site.get(following))[2]
        _, beyond = await site.json(f"{API}/map{query}&page=9")
        assert (beyond["rows"], sentence_of(beyond)) == (
            [],
            "No test with this measurement at these commits, on this page.",
        )
        tests, operators = list[str](), list[str]()
        for number in (1, 2):
            _, page = await site.json(f"{API}/map?target={LAB}/first&page={number}")
            assert page["pages"] == 2
            tests += [cell["test"] for row in page["rows"] for cell in row["cells"]]
            operators += [row["operator"] for row in page["rows"]]
        assert sorted(tests) == sorted(measured)
        assert operators == sorted(set(operators)), "the pages are in the order of the operators, and none is on two"
        _, _, csv = await site.get(f"{API}/map?target={LAB}/first&format=csv")
        assert len(csv.splitlines()) == 1 + len(measured)


async def test_extreme_numbers_and_several_units_are_shown(tmp_path: Path) -> None:
    largest = 1.7976931348623157e308

    def fill(store: ResultsStore) -> None:
        for night in (1, 2, 3):
            measured = {
                "test_huge[a]": (Measurement("latency", largest * (-1) ** night, "ms"),),
                "test_size[a]": (Measurement("latency", 5e-324 * night, "µs"),),
            }
            upload = Upload(night, dict.fromkeys(measured, "passed"), measured=measured)
            store.put(upload.run, upload.columns)

    async with dashboard_site(tmp_path, filled=fill) as site:
        _, _, text = await site.get(HERE)
        lines = re.findall(r'points="([^"]*)"', text)
        assert lines, "each series has its line"
        assert not [line for line in lines if "nan" in line or "inf" in line]
        assert "-1.8e+308 ms" in text
        _, page = await site.json(f"{API}/map?base={sha(2)}&head={sha(3)}")
        assert page["unit"] == "", "there are two"
        _, _, text = await site.get(f"{HERE}/map?base={sha(2)}&head={sha(3)}")
        assert "◆ 1.8e+308 -&gt; -1.8e+308 ms" in text
        assert "◆ 9.88e-324 -&gt; 1.48e-323 µs" in text


async def test_a_threshold_that_no_test_measures_is_named_with_the_nearest_name(tmp_path: Path) -> None:
    results = "    results:\n      bucket: device-results\n"
    limits = (
        "{latncy: {least: 5%}, latency: {least: 5%}, snr: {least: 5%}, 'cycles.*': {least: 1%}, '*size': {least: 1%}}"
    )
    target = f"{{{TARGETS[0]}: {{measurements: {{Latency: {{least: 5%}}, 'lat*': {{least: 5%}}}}}}}}"
    config = f"""
repositories:
  {REPOSITORY}:
{results}      measurements: {limits}
      labs: {{{LAB}: {{targets: {target}}}}}
"""

    def fill(store: ResultsStore) -> None:
        for target, name in zip(TARGETS, ("latency", "file_size"), strict=True):
            measured = {"test_one": (Measurement(name, 1.5),)}
            upload = Upload(1, {"test_one": "passed"}, suite=name, target=target, measured=measured)
            store.put(upload.run, upload.columns)

    async with dashboard_site(tmp_path, config=config, filled=fill) as site:
        _, page = await site.json(API)
        assert page["unmeasured"] == [
            {"name": "latncy", "nearest": "latency"},
            {"name": "snr", "nearest": ""},
            {"name": "cycles.*", "nearest": ""},
        ]
        _, _, text = await site.get(HERE)
        assert "correct latncy under measurements in app.yaml: no test measures it (did you mean latency?)" in text
        assert "correct snr under measurements in app.yaml: no test measures it<" in text.replace(".<", "<")


async def test_other_pages_have_the_numbers_and_lead_to_their_series(measured: DashboardSite) -> None:
    api = f"/api/v1/repos/{REPOSITORY}"
    query = f"?target={FIRST}&base={sha(SLOWER - 1)}&head={sha(LOST)}"
    _, page = await measured.json(f"{api}/compare{query}")
    numbers = [(number["test"], number["measurement"], number["outside"]) for number in page["numbers"]]
    assert numbers[:2] == [(CONV, "delegated_nodes", True), (CONV, "latency", True)]
    assert {outside for *_, outside in numbers[2:]} <= {False}
    latency = page["numbers"][1]
    assert latency["low"] < latency["base_value"] < latency["high"] < latency["head_value"]
    _, _, csv = await measured.get(f"{api}/compare{query}&table=numbers&format=csv")
    rows = list(DictReader(StringIO(csv)))
    assert [(row["test"], row["measurement"], row["outside"] == "True") for row in rows] == numbers
    assert float(rows[1]["high"]) == latency["high"]
    _, _, text = await measured.get(f"/r/{REPOSITORY}/compare{query}")
    assert "&amp;table=numbers&amp;format=csv" in text
    assert "12 -&gt; 11 nodes, -8.3 %" in text
    assert f"/measurements/series?id={quote(CONV)}&amp;measurement=latency" in text
    run = f"/runs/{FIRST}/{sha(NIGHTS)}/1"
    _, page = await measured.json(f"{api}{run}")
    assert len(page["numbers"]) == 7
    assert not page["more_numbers"]
    history = f"/tests?id={quote(CONV)}"
    _, page = await measured.json(f"{api}{history}")
    assert [
        (target["target"], number["measurement"], number["value"], number["unit"])
        for target in page["targets"]
        for number in target["numbers"]
        if number["measurement"] == "delegated_nodes"
    ] == [("adreno", "delegated_nodes", 11.0, "nodes"), ("hexagon-v73", "delegated_nodes", 12.0, "nodes")]
    for path in (run, history):
        _, _, text = await measured.get(f"/r/{REPOSITORY}{path}")
        assert "11 nodes" in text
        assert f"/measurements/series?id={quote(CONV)}&amp;measurement=latency" in text


async def test_badges_and_searches_find_measurements(measured: DashboardSite) -> None:
    for target, words, color in ((FIRST, r"46\d ms \(\+1\d %\)", "#b3261e"), (SECOND, r"4\d\d ms", "#1d6b3a")):
        status, headers, badge = await measured.get(
            f"/r/{REPOSITORY}/badge.svg?id={quote(CONV)}&measurement=latency&target={target}"
        )
        assert (status, headers["Content-Type"].partition(";")[0]) == (200, "image/svg+xml")
        title = ElementTree.fromstring(badge).findtext("{http://www.w3.org/2000/svg}title")
        assert re.fullmatch(rf"latency of {re.escape(CONV)}: {words}", title or "")
        assert color in badge
    searches = {
        "latency": [f"latency of {CONV}"],
        "CONV2D": [f"delegated_nodes of {CONV}", f"latency of {CONV}"],
        "softmax deleg": ["delegated_nodes of test_softmax[xnnpack]"],
        "softmax latency": [],
    }
    for text, names in searches.items():
        _, page = await measured.json(f"/api/v1/repos/{REPOSITORY}/search?q={quote(text)}")
        hits = [hit for hit in page["hits"] if hit["kind"] == "measurement"]
        assert sorted(hit["name"] for hit in hits) == names, text
        for hit in hits:
            assert (await measured.get(hit["href"]))[0] == 200
