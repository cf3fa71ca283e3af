"""`/r/{owner}/{repo}/fixes`: how long fixes take, from planted failures whose percentiles are known."""

from __future__ import annotations

from pathlib import Path

from nightjar_formats.model import TargetKey

from bot.results.store.failures.failures import RECOVERED, Failure, store_reports
from bot.results.store.store import ResultsStore
from handlers.dashboard.fixes.page import fixes_answer
from handlers.dashboard.fixes.times import ALL, FixTimes
from handlers.main_failures.decide import FailingContext, FixedContext, KnownFailures
from handlers.main_failures.records import FAILURES
from tests.handlers.dashboard.nightly_runs import ADRENO, HEXAGON, NOW, REPOSITORY, SOFTMAX, fill, sha
from tests.handlers.dashboard.site import CONFIG, dashboard_site
from tests.handlers.dashboard.stored_history import REPOSITORY_ID

HOUR, DAY = 3600.0, 86400.0
OTHER = "tests/python/operators/test_matmul.py::test_matmul"
API = f"/api/v1/repos/{REPOSITORY}/fixes"


def reported(store: ResultsStore) -> None:
    """Report five regressions of a target, which were fixed after 1 to 5 days, and one of another, which lasts."""
    fill(store)
    hexagon, adreno = TargetKey(REPOSITORY, *HEXAGON), TargetKey(REPOSITORY, *ADRENO)
    for days in range(1, 6):
        failure, began = Failure("operators", SOFTMAX, sha(days), sha(days - 1)), NOW - 40 * DAY + days * HOUR
        store.write(store_reports, hexagon, sha(days), began, [failure], {})
        store.write(store_reports, hexagon, sha(days + 1), began + days * DAY, [], {RECOVERED: [failure]})
    store.write(store_reports, adreno, sha(9), NOW - DAY, [Failure("operators", SOFTMAX, sha(9), sha(8))], {})
    removed = Failure("operators", SOFTMAX, sha(10), sha(9))
    store.write(store_reports, hexagon, sha(10), NOW - 3 * DAY, [removed], {})
    store.write(store_reports, hexagon, sha(11), NOW - 2 * DAY, [], {"removed": [removed]})


async def test_times_to_fix_by_branch_target_and_owner(tmp_path: Path) -> None:
    config = CONFIG.replace("    results:", '    owners: [{test: "*", owners: ["@hubot"]}]\n    results:', 1)
    async with dashboard_site(tmp_path, config=config, filled=reported) as site:
        failing = FailingContext("lint", sha(3), "", "", "", NOW - HOUR)
        fixed = (
            FixedContext("cpu/branch", NOW - 200 * DAY, NOW - 190 * DAY),  # too long ago
            *(FixedContext("cpu/branch", NOW - hours * HOUR, NOW) for hours in range(1, 6)),
        )
        await site.records.put(FAILURES.of(REPOSITORY_ID, "main"), KnownFailures({"lint": failing}, fixed=fixed))
        status, answered = await site.json(API)
        assert status == 200
        columns = ("kind", "name", "fixed", "failing", "median_seconds", "ninety_percent_seconds")
        assert [tuple(row[column] for column in columns) for row in answered["rows"]] == [
            ("all", "", 10, 2, 5 * HOUR, 4 * DAY),
            ("branch", "main", 5, 1, 3 * HOUR, 5 * HOUR),
            ("target", "example-lab/adreno", 0, 1, None, None),
            ("target", "example-lab/hexagon-v73", 5, 0, 3 * DAY, 5 * DAY),
            ("owner", "@hubot", 5, 1, 3 * DAY, 5 * DAY),
        ]
        sentence = "".join(part["text"] for part in answered["answer"])
        assert sentence == (
            "Of 10 failures fixed in the last 90 days, half took 5 h at most, and 90 % took 4 days; "
            "2 failures not fixed yet."
        )
        _, _, page = await site.get(f"/r/{REPOSITORY}/fixes")
        for words in (sentence, "By branch", "By target", "By owner", "3 days", ">\N{EN DASH}<"):
            assert words in page, words
        _, _, table = await site.get(f"{API}?format=csv")
        assert table.splitlines()[:2] == [",".join(columns), f"all,,10,2,{5 * HOUR},{4 * DAY}"]
        _, _, empty = await site.get("/r/octocat/docs/fixes")
        assert "The bot has reported no failure in the last 90 days." in empty


def test_there_may_be_too_few_fixes_or_none() -> None:
    def words(fixed: int) -> str:
        return "".join(part.text for part in fixes_answer([FixTimes((ALL, ""), fixed, 1, None, None)]))

    assert words(0) == "No failure was fixed in the last 90 days; 1 failure not fixed yet."
    assert (
        words(4) == "4 failures fixed in the last 90 days, too few to say how long it takes; 1 failure not fixed yet."
    )
