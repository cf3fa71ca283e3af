"""Searches for a culprit as they are stored: one that goes on, one with an answer, and one with hostile text."""

from __future__ import annotations

from dataclasses import replace

from bot.engine.records import Records
from handlers.searches.records import (
    CULPRIT_SEARCH,
    SEARCH_SUMMARY,
    AskedRun,
    CulpritSearch,
    SearchAnswer,
    SearchedCommit,
    SearchedTest,
    SearchRequest,
    SearchRunState,
    SearchSummary,
    searched_test_key,
    series_name,
)
from tests.handlers.dashboard.nightly_runs import ADRENO, HEXAGON, NOW, SOFTMAX, sha

ON_HEXAGON, ON_ADRENO = ("/".join(target) for target in (HEXAGON, ADRENO))
COMMITS, CULPRIT = 40, 23
HOSTILE_TITLE = "<script>alert(1)</script> [x](javascript:alert(1)) \u202e (#7)"
REQUEST = SearchRequest("operators", (SOFTMAX,), (ON_ADRENO, ON_HEXAGON), sha(9), sha(10))


def a_run(number: int, commit: int, target: str, failed: int = 0, passed: int = 0, **fields: object) -> AskedRun:
    """Return a run that has ended, unless `fields` say otherwise."""
    run = AskedRun(
        number, commit, target, 3, NOW - 3_600 + 60 * number, SearchRunState.RESULTS, NOW - 3_500 + 60 * number
    )
    return replace(run, counts={SOFTMAX: (failed, passed)} if failed + passed else {}, seconds=42.0, **fields)  # type: ignore[arg-type]


RUNS = (
    a_run(1, COMMITS, ON_HEXAGON, failed=3, log_url="https://logs.example.org/1"),
    a_run(2, 0, ON_ADRENO, passed=3),
    a_run(3, COMMITS, ON_ADRENO, failed=3),
    a_run(4, 0, ON_HEXAGON, passed=3, log_url="javascript:alert(1)"),
    a_run(5, 20, ON_HEXAGON, passed=3),
    a_run(6, 30, ON_ADRENO, failed=2, passed=1),
    a_run(7, 25, ON_HEXAGON, state=SearchRunState.NO_RESULTS),
    a_run(8, 24, ON_ADRENO, state=SearchRunState.LOST),
)
WAITING = a_run(9, CULPRIT, ON_HEXAGON, state=SearchRunState.WAITING, ended_at=0.0)
LAST = (
    a_run(9, CULPRIT, ON_HEXAGON, failed=3),
    a_run(10, CULPRIT - 1, ON_ADRENO, passed=3),
    a_run(11, CULPRIT, ON_ADRENO, failed=3),
    a_run(12, CULPRIT - 1, ON_HEXAGON, passed=3),
)


def a_search(request: SearchRequest = REQUEST, commits: int = COMMITS) -> CulpritSearch:
    """Return a search that waits for one run."""
    titles = {1: HOSTILE_TITLE, CULPRIT: "Fuse softmax into its consumers (#23)"}
    of_range = tuple(
        SearchedCommit(f"{number:04x}".ljust(40, "e"), titles.get(number, f"Change {number} (#{number})"), "hubot")
        for number in range(1, commits)
    )
    commits_of_range = (*of_range, SearchedCommit(request.bad, "Update the images", "octocat"))
    histories = {series_name(target, test): (1, 29) for target in request.targets for test in request.tests}
    return CulpritSearch(request, commits_of_range, histories, NOW - 3_600, (*RUNS, WAITING))


OPEN = a_search()
NAMED = replace(
    a_search(replace(REQUEST, targets=(ON_HEXAGON, ON_ADRENO))),
    runs=(*RUNS, *LAST),
    answer=SearchAnswer("culprit", 0.996, CULPRIT, CULPRIT, 23),
    ended_at=NOW - 600,
    began_at=NOW - 3_000,
)
OF_NO_COMMIT = replace(
    NAMED,
    request=replace(REQUEST, targets=(ON_ADRENO,)),
    runs=(a_run(1, COMMITS, ON_ADRENO, failed=3), a_run(2, 0, ON_ADRENO, failed=3)),
    answer=SearchAnswer("environment", 0.991, 0, 0),
    began_at=NOW - 9_000,
)


async def fill_searches(records: Records, repository_id: int) -> None:
    """Store all of them; the first one is the newest for a test."""
    for search in (OF_NO_COMMIT, NAMED, OPEN):
        summary = SearchSummary.of(search)
        await records.put(CULPRIT_SEARCH.of(repository_id, search.id), search)
        await records.put(SEARCH_SUMMARY.of(repository_id, summary.place), summary)
        for target in search.request.targets:
            key = searched_test_key(repository_id, target, search.request.suite, SOFTMAX)
            await records.put(key, SearchedTest(summary.place))
