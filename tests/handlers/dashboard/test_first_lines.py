"""The sentence with which each page begins: what it says is what the rows behind its links say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nightjar_formats.columns.collect import collect

from bot.core.page_paths import commit_path, history_path, lab_path, run_path, view_path
from bot.results.store.store import ResultsStore
from bot.web.answers import answer_text
from handlers.dashboard.grid.answer import matching_answer
from handlers.dashboard.grid.rows import GridRow, ListedRows, RowKind
from tests.handlers.dashboard.nightly_runs import (
    FLAKY,
    NOW,
    REPOSITORY,
    SOFTMAX,
    TITLE,
    committed_at,
    nightly_runs,
    sha,
)
from tests.handlers.dashboard.site import DashboardSite, dashboard_site
from tests.results import uploads
from tests.results.uploads import Upload

pytestmark = pytest.mark.asyncio(loop_scope="session")
API = f"/api/v1/repos/{REPOSITORY}"
HEXAGON, ADRENO, BOARD = "example-lab/hexagon-v73", "example-lab/adreno", "hubot-lab/rpi-5@rack:2"


def words(parts: list[dict[str, str]]) -> str:
    return "".join(part["text"] for part in parts)


async def follow(site: DashboardSite, page: Any, start: str) -> Any:
    """Return what the API says about the address of the part of the answer that begins so."""
    (href,) = [part["href"] for part in page["answer"] if part["text"].startswith(start)]
    _, _, query = href.partition("?")
    view = href.removeprefix(f"/r/{REPOSITORY}").partition("?")[0].removeprefix("/")
    status, target = await site.json(f"{API}/{view or 'grid'}?{query}")
    assert status == 200, href
    return target


async def test_each_page_begins_with_its_answer(site: DashboardSite) -> None:
    late = f"{BOARD} has not reported for 3 days"
    answers = {
        "/api/v1/repos": f"7 failures on 2 of 3 targets of {REPOSITORY}; {late}.",
        f"{API}/grid": f"1 new failure on 1 of 3 targets since {sha(12)[:7]} (16 commits); {late}.",
        f"{API}/grid?target={HEXAGON}": f"Nothing new since 2026-11-21 ({sha(12)[:7]}): "
        "6 tests still fail on 1 of 2 suites.",
        f"{API}/grid?status=failing": "6 tests fail in the newest nightly runs of 2 targets.",
        f"{API}/compare?target={HEXAGON}": f"6 still failing on {HEXAGON}, from {sha(12)[:7]} to {sha(13)[:7]}.",
        f"{API}/flaky": f"1 test was flaky in the last 30 days; {FLAKY} on {HEXAGON} most clearly: "
        "it both passed and failed at 3 commits.",
        f"{API}/slow?target={HEXAGON}": f"115 tests on {HEXAGON} take 29.6 s; none takes longer than 10 s.",
        f"{API}/skipped": "35 tests are skipped in the newest nightly runs; 30 tests did not run for a week.",
        f"{API}/tests?id={SOFTMAX}": f"Fails on 2 of 2 targets: {ADRENO}, {HEXAGON}.",
        f"{API}/tests?id={SOFTMAX}&target={HEXAGON}": f"Fails on {HEXAGON} since {sha(10)[:7]}.",
        f"{API}/tests?id={FLAKY}&target={HEXAGON}": f"Does not fail on {HEXAGON}; flaky on {HEXAGON}.",
    }
    stated = {}
    for path in answers:
        status, page = await site.json(path)
        assert status == 200, path
        stated[path] = words(page["answer"])
        assert len(page["next_steps"]) <= 3
    assert stated == answers


async def test_a_run_begins_with_what_failed_since_when_and_whether_all_of_it_arrived(site: DashboardSite) -> None:
    see_lab = "Lab: see what {lab} sent, and what is missing"
    runs = {
        (HEXAGON, 12, "operators-run-1"): (
            f"3 new failures since {sha(11)[:7]}; 3 still failing; complete.",
            [
                f"Maintainer: read the commits since {sha(11)[:7]}, or mute "
                "tests/python/operators/test_gather.py::test_gather[int8-16x64]",
                "Contributor: to reproduce it, run pytest "
                "'tests/python/operators/test_gather.py::test_gather[int8-16x64]'",
            ],
        ),
        (HEXAGON, 13, "operators-run-1"): (f"No new failure since {sha(12)[:7]}; 6 still failing; complete.", []),
        (ADRENO, 7, "runtime-run-1"): (
            f"No new failure since {sha(6)[:7]}; runtime: no usable results.",
            [see_lab.format(lab="example-lab")],
        ),
        (ADRENO, 12, "runtime-run-1"): (
            f"No new failure since {sha(11)[:7]}; incomplete: 1 of 2 shards of runtime.",
            [see_lab.format(lab="example-lab")],
        ),
        (BOARD, 13, "runtime-run-2"): (
            "This run was refused: te.xml is not what the manifest says: its SHA-256 is another one.",
            [see_lab.format(lab="hubot-lab")],
        ),
        (HEXAGON, 0, "runtime-run-1"): ("No test failed; complete.", []),
    }
    stated = {}
    for target, number, run_id in runs:
        path = run_path(REPOSITORY, target, sha(number), run_id)
        _, page = await site.json(f"/api/v1{path.replace('/r/', '/repos/', 1)}")
        stated[target, number, run_id] = words(page["answer"]), [words(step) for step in page["next_steps"]]
        _, _, text = await site.get(path)
        assert all(f'id="{section}"' in text for section in sections(page)), path
        assert text.index('<p class="answer">') < text.index("<h2")
    assert stated == runs
    _, page = await site.json(f"{API}/runs/{HEXAGON}/{sha(12)}/operators-run-1")
    new, _, base, _, still, *_ = page["answer"]
    first, second = page["causes"]
    assert (new["href"], first["new"], still["href"], second["new"]) == ("#cause1", 3, "#cause2", 0)
    compared = {"target": HEXAGON, "base": sha(11), "head": sha(12)}
    assert base["href"] == view_path(REPOSITORY, "compare", **compared)


async def test_a_lab_begins_with_its_late_and_unusable_targets_and_whom_to_ask(
    site: DashboardSite, tmp_path: Path
) -> None:
    _, page = await site.json(f"{API}/labs/example-lab")
    assert (words(page["answer"]), page["next_steps"]) == ("2 targets reported within the last 36 hours.", [])
    _, page = await site.json(f"{API}/labs/hubot-lab")
    assert words(page["answer"]) == "rpi-5@rack:2 has not reported for 3 days."
    assert page["answer"][1]["href"] == run_path(REPOSITORY, BOARD, sha(10), "runtime-run-1")
    assert [words(step) for step in page["next_steps"]] == [
        "Lab: read why uploads have no result",
        f"Lab: send the results of rpi-5@rack:2 for {sha(11)[:7]}",
        "Maintainer: add contacts to the lab in app.yaml, so that people know whom to ask",
    ]
    _, _, text = await site.get(lab_path(REPOSITORY, "hubot-lab"))
    assert all(f'id="{section}"' in text for section in sections(page))
    assert text.index('<p class="answer">') < text.index('<dl class="facts"')

    def of_one_target(store: ResultsStore) -> None:
        for sent in nightly_runs():
            if f"{sent.target[0]}/{sent.target[1]}" == ADRENO and sent.suite == "runtime" and sent.number < 8:
                store.put(sent.run, collect(sent.cases(), lambda case: (case.nodeid, case.path)))

    async with dashboard_site(tmp_path, filled=of_one_target, moment=committed_at(7) + 11 * 3600) as broken:
        _, page = await broken.json(f"{API}/labs/example-lab")
        assert words(page["answer"]) == (
            f"hexagon-v73 has never reported; adreno has had no usable results since 2026-11-16 ({sha(7)[:7]}); "
            "ask @example-lab-ci."
        )
        _, run = await broken.json(f"{API}/runs/{ADRENO}/{sha(7)}/runtime-run-1")
        assert words(run["answer"]).startswith("No usable results: ")


def sections(page: Any) -> list[str]:
    """Return the IDs of the sections of the same page that its answer and its next steps lead to."""
    parts = [*page["answer"], *(part for step in page["next_steps"] for part in step)]
    return [part["href"][1:] for part in parts if part["href"].startswith("#")]


async def test_each_count_is_that_of_the_rows_behind_its_link(site: DashboardSite) -> None:
    _, grid = await site.json(f"{API}/grid")
    rows = (await follow(site, grid, "1 new failure"))["rows"]
    assert [(row["target"], row["folder"]) for row in rows] == [(ADRENO, SOFTMAX)]
    changed = await follow(site, grid, "16 commits")
    assert (changed["target"], changed["counts"]["new-failure"]) == (ADRENO, 1)
    _, target = await site.json(f"{API}/grid?target={HEXAGON}")
    assert len((await follow(site, target, "6 tests"))["rows"]) == 6
    _, compared = await site.json(f"{API}/compare?target={HEXAGON}")
    assert (await follow(site, compared, "6 still"))["matching"] == 6
    _, overview = await site.json("/api/v1/repos")
    assert lab_path(REPOSITORY, "hubot-lab") in [part["href"] for part in overview["answer"]]
    assert len((await follow(site, overview, "7 failures"))["rows"]) == 7
    _, _, page = await site.get(view_path(REPOSITORY))
    assert page.index('<p class="answer">') < page.index('<table class="grid"')
    assert page.count('<nav class="next"') == 1
    # Three of the six failures of a run are new.
    assert page.count("<i>▲</i>3 of 6</a>") == 1


async def test_a_suite_that_is_older_than_all_commits_of_the_grid_counts_and_is_listed(tmp_path: Path) -> None:
    passed, failed = {"old::test_one": "passed"}, {"old::test_one": "failed"}

    def fill_old_suite(store: ResultsStore) -> None:
        for commit in range(1, 20):
            # It runs only at the first three commits, and fails since the second.
            runs = [Upload(commit, {"new::test_one": "passed"}, at=NOW - (20 - commit) * 86400.0)]
            if commit < 4:
                tests = passed if commit == 1 else failed
                runs.append(Upload(commit, tests, run_id="2", suite="old", at=NOW - (20 - commit) * 86400.0))
            for upload in runs:
                store.put(replace(upload.run, received_at=NOW), upload.columns)

    config = (
        f"repositories:\n  {uploads.REPOSITORY}:\n    results:\n      bucket: device-results\n      labs:\n"
        f"        {uploads.LAB}: {{targets: [{uploads.TARGET}]}}\n"
    )
    async with dashboard_site(
        tmp_path, config=config, public=frozenset({uploads.REPOSITORY}), filled=fill_old_suite
    ) as site:
        address = f"/api/v1/repos/{uploads.REPOSITORY}/grid"
        _, overview = await site.json("/api/v1/repos")
        assert overview["repositories"][0]["targets"][0]["failing"] == 1
        (row,) = (await site.json(f"{address}?target={uploads.LAB}/{uploads.TARGET}&status=failing"))[1]["rows"]
        assert (row["suite"], row["folder"], len(row["cells"])) == ("old", "old::test_one", 14)
        _, grid = await site.json(address)
        assert "1 test still fails on 1 of 1 target" in words(grid["answer"])
        (row,) = (await site.json(f"{address}?status=failing"))[1]["rows"]
        assert row["suite"] == "old"
        # Nothing of it is newer than this day, and before the third commit it is as new as the others.
        assert (await site.json(f"{address}?status=failing&since=2026-11-20"))[1]["rows"] == []
        assert len((await site.json(f"{address}?status=new-failure&before={NOW - 17 * 86400.0}"))[1]["rows"]) == 1


async def test_a_failing_test_is_one_row_with_its_targets(site: DashboardSite) -> None:
    _, overview = await site.json("/api/v1/repos")
    failing = overview["repositories"][0]["failing_now"]
    # One target lists five failures, the other one.
    assert len(failing) == 5
    first = failing[0]
    assert (first["test"], [(target["target"], target["since"]) for target in first["targets"]]) == (
        SOFTMAX,
        [(ADRENO, sha(13)), (HEXAGON, sha(10))],
    )
    times = [test["targets"][0]["since_at"] for test in failing]
    assert times == sorted(times, reverse=True)
    _, _, page = await site.get("/")
    assert page.count(f'href="{history_path(REPOSITORY, SOFTMAX).replace("&", "&amp;")}"') >= 1


async def test_a_commit_is_named_by_its_title_and_has_a_page_of_all_targets(site: DashboardSite) -> None:
    path = commit_path(REPOSITORY, sha(13))
    status, page = await site.json(f"/api/v1{path.replace('/r/', '/repos/')}")
    assert status == 200
    assert words(page["answer"]) == f"1 new failure on 1 of 3 targets: {ADRENO}; {BOARD}: not all results have arrived."
    cells = [(row["target"], row["suite"], row["cell"]["state"], row["cell"]["failed"]) for row in page["rows"]]
    assert cells == [
        (ADRENO, "operators", "new-failure", 1),
        (HEXAGON, "operators", "still-failing", 6),
        (ADRENO, "runtime", "passed", 0),
        (HEXAGON, "runtime", "passed", 0),
        (BOARD, "runtime", "waiting", 0),
    ]
    assert page["known_commits"][sha(13)] == {"title": TITLE, "author": "Mona Lisa", "pull_request": 41}
    (new,) = (await follow(site, page, ADRENO))["tests"]
    assert new["test"] == SOFTMAX
    # Part of a SHA finds the commit; so does an address in upper case.
    for digits in (sha(13)[:10], sha(13).upper()):
        assert (await site.get(commit_path(REPOSITORY, digits)))[0] == 200
    for wrong, code in (("zzzzzzz", 400), ("123456", 400), ("0" * 40, 404)):
        assert (await site.get(commit_path(REPOSITORY, wrong)))[0] == code
    _, _, text = await site.get(view_path(REPOSITORY))
    assert f'href="{path}" title="Fuse &lt;softmax&gt;, by Mona Lisa (#41)"' in text
    run = run_path(REPOSITORY, HEXAGON, sha(13), "operators-run-1")
    for view in (path, run, view_path(REPOSITORY, "compare"), view_path(REPOSITORY, "nightly"), "/"):
        _, _, text = await site.get(view)
        assert "Fuse &lt;softmax&gt;" in text, view
        assert TITLE not in text
    status, _, text = await site.get(f"/api/v1{path.replace('/r/', '/repos/')}?format=csv")
    assert (status, text.count("\n")) == (200, 6)


async def test_a_target_has_its_pass_rate_and_run_time_as_lines_with_words(site: DashboardSite) -> None:
    _, overview = await site.json("/api/v1/repos")
    rates = {target["target"]: target["rates"] for target in overview["repositories"][0]["targets"]}
    assert [(rate["sha"], rate["failed"]) for rate in rates["hexagon-v73"]][-2:] == [(sha(12), 6), (sha(13), 6)]
    assert len(rates["hexagon-v73"]) == 14
    # A commit without usable results has no rate.
    assert sha(7) not in {rate["sha"] for rate in rates["adreno"] if rate["passed"] < 40}
    words_of_rate = "Pass rate of 14 nightly commits, oldest first: 94.7 % to 100.0 %, newest 94.7 %"
    for path in ("/", view_path(REPOSITORY)):
        _, _, page = await site.get(path)
        assert f"<title>{words_of_rate}</title>" in page, path
    _, grid = await site.json(f"{API}/grid")
    seconds = {row["target"]: row["seconds"] for row in grid["rows"]}
    assert seconds[HEXAGON] == [2 * 31 * 60.0] * 14
    # One of the two suites is missing at two commits.
    assert [number for number, value in enumerate(reversed(seconds[ADRENO])) if value is None] == [4, 9]


@pytest.mark.parametrize(
    ("of_one_target", "text"),
    [
        (False, "101 results match in the newest nightly runs, each of one test on one target."),
        (True, "101 tests fail in the newest nightly runs."),
    ],
)
async def test_rows_that_are_not_listed_are_tests_only_if_all_are_of_one_target(of_one_target: bool, text: str) -> None:
    row = GridRow(kind=RowKind.TEST, name="t", target=ADRENO, suite="te", folder="t", cells=[])
    answer = matching_answer(ListedRows([row], unlisted=100), "failing", of_one_target=of_one_target)
    assert answer_text(answer) == text
