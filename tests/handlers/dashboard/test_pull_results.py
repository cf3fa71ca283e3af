"""The results on the page of a pull request are read again only for a target whose check run changes."""

from __future__ import annotations

from pathlib import Path

from bot.core.utc import iso_utc
from bot.github.pull_heads import HEAD, PullHead
from bot.results.compare.ancestors import Relation
from bot.results.store.store import ResultsStore
from bot.results.store.tables import ancestry
from tests.handlers.dashboard.nightly_runs import NOW
from tests.handlers.dashboard.site import dashboard_site
from tests.handlers.dashboard.stored_history import REPOSITORY_ID
from tests.result_statements import statements
from tests.results.uploads import LAB, REPOSITORY, SUITE, Upload, sha

NUMBER = 77
BASE, PULL_COMMIT, LATER = 1, 2, 3
TARGETS = [f"board-{number}" for number in range(4)]
CONFIG = f"""
repositories:
  {REPOSITORY}:
    results:
      bucket: device-results
      labs:
        {LAB}: {{targets: [{", ".join(TARGETS)}]}}
"""
PAGE = f"/api/v1/repos/{REPOSITORY}/pulls/{NUMBER}"


def upload(commit: int, target: str, *failing: int, suite: str = SUITE, tests: int = 5) -> Upload:
    outcomes = {
        f"{suite}/test_{number}.py::test_one": "failed" if number in failing else "passed" for number in range(tests)
    }
    pull_request = NUMBER if commit == PULL_COMMIT else None
    at = NOW - 86_400 + 1000.0 * commit
    return Upload(
        commit,
        outcomes,
        run_id=suite,
        target=target,
        suite=suite,
        at=at,
        mainline=pull_request is None,
        pull_request=pull_request,
    )


def fill(store: ResultsStore, tests: int = 5) -> None:
    """Store a nightly run of each target, and a run of the pull request with a new failure on the second one."""
    for commit in (BASE, PULL_COMMIT):
        for number, target in enumerate(TARGETS):
            stored = upload(commit, target, *([3] if (commit, number) == (PULL_COMMIT, 1) else []), tests=tests)
            store.put(stored.run, stored.columns)
    store.write(ancestry.learn, REPOSITORY, [Relation(sha(PULL_COMMIT), sha(BASE), is_ancestor=True)])


async def test_only_a_target_whose_check_run_changes_is_compared_again(tmp_path: Path) -> None:
    async with dashboard_site(tmp_path, config=CONFIG, filled=fill) as site:
        head = PullHead(sha(PULL_COMMIT), {sha(PULL_COMMIT): ""}, "", "main", 1, True, iso_utc(NOW))
        await site.records.put(HEAD.of(REPOSITORY_ID, NUMBER), head)

        async def new_failures() -> tuple[dict[str, int], int]:
            with statements() as executed:
                _, page = await site.json(PAGE)
            # Those that read the results of single tests.
            reads = [statement for statement in executed if "FROM nightjar_columns" in statement]
            return {row["target"].partition("/")[2]: row["new_failures"] for row in page["results"]}, len(reads)

        expected = {"board-0": 0, "board-1": 1, "board-2": 0, "board-3": 0}
        results, cold = await new_failures()
        assert results == expected
        assert (await new_failures())[1] == 0
        # A nightly run after the commits of the head and its baseline says nothing about the head.
        later = upload(LATER, "board-2", 0)
        site.store.put(later.run, later.columns)
        assert await new_failures() == (expected, 0)
        # A run of the head, and the result of a late run of its baseline, are compared; the other targets are not.
        more = upload(PULL_COMMIT, "board-3", 1, suite="frontend")
        site.store.put(more.run, more.columns)
        results, reads = await new_failures()
        assert results == expected
        assert 0 < reads < cold
        late = upload(BASE, "board-3", suite="frontend")
        site.store.put(late.run, late.columns)
        results, reads = await new_failures()
        assert results == expected | {"board-3": 1}
        assert 0 < reads < cold
