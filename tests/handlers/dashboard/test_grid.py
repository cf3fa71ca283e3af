"""`/r/{owner}/{repo}`: rows, columns and cells; their numbers are those of the check runs."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from nightjar_formats.columns import SEEN, STATUS_BYTES, status_of
from nightjar_formats.columns.collect import collect
from nightjar_formats.model import SeenTest, Status

from bot.results.compare.diff import compare
from bot.results.store.store import ResultsStore
from bot.results.store.tables.cells import (
    TestGroups,
    count_cell,
    renamed_column,
)
from handlers.dashboard.grid.rows import below_each, only_folder
from tests.engine.filled import Traced
from tests.handlers.dashboard.nightly_runs import Sent, operators, sha
from tests.handlers.dashboard.site import CONFIG, DashboardSite, dashboard_site

pytestmark = pytest.mark.asyncio(loop_scope="session")
GRID = "/api/v1/repos/octocat/compiler/grid"
BYTES = [byte for byte in range(STATUS_BYTES) if byte == 0 or status_of(byte)]


async def rows(site: DashboardSite, query: str = "") -> dict[str, list[Any]]:
    status, page = await site.json(GRID + query)
    assert status == 200, page
    return {row["name"]: row["cells"] for row in page["rows"]}


async def states(site: DashboardSite, name: str, query: str = "") -> list[str]:
    return [cell["state"] for cell in (await rows(site, query))[name]]


async def test_columns_are_the_tested_commits_newest_first(site: DashboardSite) -> None:
    _, page = await site.json(GRID)
    assert [commit["sha"] for commit in page["commits"]] == [sha(number) for number in reversed(range(14))]


async def test_a_failure_is_new_once_and_missing_results_are_never_green(site: DashboardSite) -> None:
    hexagon = await states(site, "example-lab/hexagon-v73")
    assert hexagon[:4] == ["still-failing", "new-failure", "still-failing", "new-failure"]
    adreno = await states(site, "example-lab/adreno")
    assert (adreno[0], adreno[1], adreno[6]) == ("new-failure", "incomplete", "infra")
    # One suite of the target arrived, the other one did not.
    assert (adreno[4], adreno[9]) == ("incomplete", "incomplete")
    board = await states(site, "hubot-lab/rpi-5@rack:2")
    assert (board[:4], board[-2:]) == (["waiting", "waiting", "missing", "passed"], ["not-run", "not-run"])


async def test_rows_expand_from_target_to_suite_to_file_to_test(site: DashboardSite) -> None:
    _, _, page = await site.get("/r/octocat/compiler")
    assert 'href="/r/octocat/compiler?target=example-lab%2Fhexagon-v73"' in page
    target = "?target=example-lab/hexagon-v73"
    assert set(await rows(site, target)) == {"operators", "runtime"}
    files = await rows(site, f"{target}&suite=operators")
    assert [cell["failed"] for cell in files["test_softmax.py::"]][:5] == [3, 3, 3, 3, 0]
    tests = await rows(site, f"{target}&suite=operators&folder=tests/python/operators/test_softmax.py::")
    assert len(tests) == 12
    assert [cell["state"] for cell in tests["test_softmax[float16-16x64]"]][:5] == [
        *["still-failing"] * 3,
        "new-failure",
        "passed",
    ]


async def test_rows_that_fail_come_first_unless_the_address_says_otherwise(site: DashboardSite) -> None:
    suite = "?target=example-lab/hexagon-v73&suite=operators"
    by_name = await rows(site, f"{suite}&order=name")
    assert list(by_name) == sorted(by_name)
    first, *others = await rows(site, suite)
    assert by_name[first][0]["failed"] > by_name[next(iter(by_name))][0]["failed"] == 0
    assert [name for name in by_name if name in others and not by_name[name][0]["failed"]] == [
        name for name in others if not by_name[name][0]["failed"]
    ]
    for order, link in (("", "&amp;order=name"), ("&order=name", "Show rows that fail first")):
        _, _, page = await site.get(f"/r/octocat/compiler{suite}{order}")
        assert link in page
    # New failures come before those that are known for a while, and the rest is in the order of app.yaml.
    targets = ["example-lab/adreno", "example-lab/hexagon-v73", "hubot-lab/rpi-5@rack:2"]
    assert list(await rows(site)) == targets
    assert list(await rows(site, "?order=name"))[:2] == targets[1::-1]


async def test_counts_of_a_target_are_the_sums_of_its_parts(site: DashboardSite) -> None:
    target = (await rows(site))["example-lab/hexagon-v73"]
    parts = (await rows(site, "?target=example-lab/hexagon-v73")).values()
    for name in ("passed", "failed", "new", "flaky", "skipped"):
        assert [cell[name] for cell in target] == [sum(cells[n][name] for cells in parts) for n in range(14)], name


@pytest.mark.parametrize(
    ("query", "count"),
    [("?status=failing", 7), ("?status=new-failure", 1), ("?q=SOFTMAX&status=failing", 4), ("?q=nothing-like-it", 0)],
)
async def test_filters_in_the_address_list_tests(site: DashboardSite, query: str, count: int) -> None:
    _, page = await site.json(GRID + query)
    assert len(page["rows"]) == count
    assert (await site.get(f"/r/octocat/compiler{query}"))[0] == 200


async def test_a_day_hides_older_commits_and_the_next_page_continues_where_one_ends(site: DashboardSite) -> None:
    _, page = await site.json(f"{GRID}?since=2026-11-20")
    assert [commit["sha"] for commit in page["commits"]] == [sha(13), sha(12), sha(11)]


@pytest.mark.parametrize(
    "query",
    ["?target=x", "?status=green", "?since=yesterday", "?before=now", "?other=1", "?q=a&q=b", f"?q={'a' * 201}"],
)
async def test_a_malformed_address_is_explained(site: DashboardSite, query: str) -> None:
    status, _, page = await site.get(f"/r/octocat/compiler{query}")
    assert (status, "<h1>Bad Request</h1>" in page) == (400, True)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/r/octocat/new", "No lab has uploaded results"),
        ("/r/octocat/docs", "accepts no results"),
        ("/r/octocat/compiler?since=2030-01-01", "no results of nightly commits for these filters"),
        ("/r/octocat/compiler?q=nothing-like-it", "No test matches"),
    ],
)
async def test_an_empty_page_says_what_to_do(site: DashboardSite, path: str, words: str) -> None:
    status, _, page = await site.get(path)
    assert (status, words in page) == (200, True)


def seen(column: bytes) -> dict[str, SeenTest]:
    return {f"t{place}": SEEN[byte] for place, byte in enumerate(column) if byte}


@pytest.mark.parametrize("seed", range(30))
async def test_counts_match_those_of_the_check_run(seed: int) -> None:
    random_ = random.Random(seed)
    base, head = (bytes(random_.choices(BYTES, k=random_.randrange(1, 60))) for _ in range(2))
    compared = compare(seen(head), seen(base), exit_status=None)
    counts = count_cell(base, head)
    # The comparison may recognize renamed tests; the grid gets those from the series.
    if not (compared.renamed or compared.infra):
        assert (counts.new, counts.failed) == (len(compared.new_failures), len(compared.failing))
        assert counts.known == len(compared.known_flaky)
        assert (counts.flaky, counts.skipped) == (compared.counts.flaky, compared.counts.skipped)
    # Some tests are in no group, and some are not in the columns.
    group_of = [random_.randrange(-1, 3) for _ in range(len(head) + seed % 2)]
    numbers = sorted({number for number in group_of if number >= 0})
    groups = [[place for place, of_place in enumerate(group_of) if of_place == number] for number in numbers]
    masks = [
        bytes(byte if of_place == number else 0 for byte, of_place in zip(head, group_of, strict=False))
        for number in numbers
    ]
    assert TestGroups(groups).count(base, head) == [count_cell(base, mask) for mask in masks]
    assert TestGroups(groups).count(None, head) == [count_cell(None, mask) for mask in masks]


async def test_a_renamed_test_keeps_its_outcome() -> None:
    failed, passed = (SEEN.index(SeenTest(status)) for status in (Status.FAILED, Status.PASSED))
    base, head = bytes([failed, passed]), bytes([0, passed, failed])
    assert count_cell(base, head).new == 1
    assert count_cell(renamed_column(base, {2: 0}), head).new == 0


def many(store: ResultsStore) -> None:
    """Store twenty targets of two labs with five suites each, for one commit."""
    tests = tuple(operators())
    for number in range(2):
        for suite in range(5):
            for lab in ("example-lab", "hubot-lab"):
                for target in range(10):
                    upload = Sent(number, (lab, f"target-with-a-long-name-{target}"), f"suite-{suite}", tests)
                    store.put(upload.run, collect(upload.cases(), lambda case: (case.nodeid, case.path)))


async def test_the_first_page_is_small_and_no_statement_scans_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traced = Traced(tmp_path / "nightjar.db", monkeypatch)
    async with dashboard_site(tmp_path, filled=many) as site:
        traced.statements.clear()
        _, _, page = await site.get("/r/octocat/compiler")
        _, _, newest = await site.get("/r/octocat/compiler?since=2026-11-10")
        assert page.count("<tr>") == newest.count("<tr>") == 24
        column = len("".join(re.findall("<td>.*?</td>", page))) // 2
        # The lines of a row have a point for each column.
        assert len(page) + 12 * (column + 2 * 24 * len("12.3,12.3 ")) < 100_000
        await site.get("/r/octocat/compiler?target=example-lab/target-with-a-long-name-3&suite=suite-2")
        await site.get("/r/octocat/compiler?status=passed")
        assert [scan for scan, _ in traced.scans() if "nightjar_" in scan] == []


async def test_slashes_and_colons_in_parameters_create_no_folder() -> None:
    names = [f"tests/test_io.py::test_read[{parameter}]" for parameter in ("a/b", "a::b", "c")]
    assert only_folder(names, "") == "tests/test_io.py::"
    assert list(below_each(names, "tests/test_io.py::")) == names
    classes = ["tests/test_io.py::TestRead::test_one", "tests/test_io.py::TestRead::test_two", "lib/x.py::test"]
    assert list(below_each(classes, "tests/")) == ["tests/test_io.py::", "tests/test_io.py::", ""]
    assert only_folder(classes, "") == ""
    assert only_folder(classes, "tests/") == "tests/test_io.py::TestRead::"
    assert only_folder([], "") == ""


async def test_failures_of_a_target_that_left_app_yaml_are_no_news(tmp_path: Path) -> None:
    config = CONFIG.replace("[hexagon-v73, adreno]", "[hexagon-v73]")
    sentences = []
    for number, text in enumerate((CONFIG, config)):
        (tmp_path / str(number)).mkdir()
        async with dashboard_site(tmp_path / str(number), config=text) as site:
            _, page = await site.json("/api/v1/repos/octocat/compiler/grid")
            sentences.append("".join(part["text"] for part in page["answer"]))
    assert " of 3 targets" in sentences[0]
    assert " of 2 targets" in sentences[1]
