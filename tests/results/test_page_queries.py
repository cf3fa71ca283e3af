"""The store's queries for pages: by indices on both databases, without more statements for more tests."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from cachetools import LRUCache

from bot.results.store.lists.commits_with_results import (
    CommitWithResults,
    commit_with_results,
    newest_commits_with_results,
    suites_with_results,
)
from bot.results.store.lists.flaky_tests import flaky_tests
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.lists.skipped_tests import SkippedList, skipped_tests
from bot.results.store.lists.slow_tests import durations_of
from bot.results.store.store import ResultsStore
from bot.results.store.tables import schema
from bot.results.store.tables.database import ResultsDatabase
from bot.results.store.tables.names import NameCache
from tests.result_statements import statements
from tests.results.plans import whole_tables_read
from tests.results.uploads import ABOUT, REPOSITORY, Upload, sha

MOST_STATEMENTS = 50


@pytest.fixture
def filled(store: ResultsStore) -> ResultsStore:
    """Return a store with five commits, two suites and two targets; the last commit is a pull request's."""
    for number in range(1, 6):
        for target in ("adreno", "hexagon"):
            for suite in ("operators", "relax"):
                tests = {f"test_{test}": "passed" for test in range(6)}
                upload = Upload(
                    number, tests, run_id=f"{suite}-1", target=target, suite=suite, mainline=number < 5,
                    pull_request=7 if number == 5 else None,
                )  # fmt: skip
                store.put(upload.run, upload.columns)
    return store


def test_the_newest_commits_of_a_target_are_listed_once_each(filled: ResultsStore) -> None:
    assert filled.read(newest_commits_with_results, ABOUT, 2) == [
        CommitWithResults(sha(5), 5000.0, mainline=False, pull_request=7),
        CommitWithResults(sha(4), 4000.0, mainline=True, pull_request=None),
    ]
    assert [commit.sha for commit in filled.read(newest_commits_with_results, ABOUT)] == [
        sha(number) for number in (5, 4, 3, 2, 1)
    ]
    assert filled.read(commit_with_results, ABOUT, sha(3)) == CommitWithResults(
        sha(3), 3000.0, mainline=True, pull_request=None
    )
    assert filled.read(commit_with_results, ABOUT, sha(9)) is None
    assert filled.read(suites_with_results, ABOUT, sha(3)) == ["operators", "relax"]


def test_commits_are_found_by_an_index(filled: ResultsStore) -> None:
    def work() -> None:
        filled.read(newest_commits_with_results, ABOUT)
        filled.read(commit_with_results, ABOUT, sha(3))
        filled.read(suites_with_results, ABOUT, sha(3))

    statements, scans = whole_tables_read(work)
    assert statements == 6
    assert scans == []


def test_lists_of_tests_are_read_by_indices(store: ResultsStore) -> None:
    for number in range(1, 8):
        for target in ("adreno", "hexagon"):
            tests = {"test_flips": "failed" if number % 2 else "passed", "test_skipped": "skipped", "test_ok": "passed"}
            upload = Upload(number, tests, target=target, flaky=frozenset({"test_flips"} if number == 3 else ()))
            store.put(upload.run, upload.columns)
    query = ListedTests(REPOSITORY)

    def work() -> None:
        assert [test.test for test in store.read(flaky_tests, query, 0.0).tests] == ["test_flips", "test_flips"]
        skipped = store.read(skipped_tests, query, 2500.0)
        assert (
            [test.test for test in skipped.tests] == [idle_test.test for idle_test in skipped.idle] == ["test_skipped"]
        )
        assert store.read(durations_of, query).timed == 4

    work()  # reads the names, which a process caches
    statements, scans = whole_tables_read(work)
    assert scans == []
    assert statements <= MOST_STATEMENTS


def skipped_with_uncached_names(connection: sa.Connection, query: ListedTests) -> SkippedList:
    cache = NameCache()
    cache.suites = LRUCache(0)
    return skipped_tests(connection.execution_options(**{NameCache.OPTION: cache}), query, 0.0)


def test_names_that_are_too_many_to_cache_are_read_as_often_for_many_tests_as_for_one(store: ResultsStore) -> None:
    upload = Upload(1, {**{f"test_{number}": "skipped" for number in range(50)}, "test_ok": "passed"})
    store.put(upload.run, upload.columns)
    counts = []
    for limit in (1, 50):
        with statements() as seen:
            skipped = store.read(skipped_with_uncached_names, ListedTests(REPOSITORY, limit=limit))
        assert len(skipped.tests) == limit
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_a_renamed_test_is_flaky_under_its_present_name(database_url: str) -> None:
    store = ResultsStore(database_url, renames=lambda removed, new: dict(zip(removed, new, strict=True)))
    store.open()
    names = ["test_old"] * 4 + ["test_new"] * 3
    for number, name in enumerate(names, 1):
        tests = {name: "failed" if number % 2 else "passed"} | {f"test_ok_{test}": "passed" for test in range(5)}
        upload = Upload(number, tests)
        store.put(upload.run, upload.columns)
    (flaky,) = store.read(flaky_tests, ListedTests(REPOSITORY), 0.0).tests
    store.close()
    assert (flaky.test, flaky.flips, flaky.failed, flaky.runs) == ("test_new", 6, 4, 7)


def test_a_test_that_is_flaky_in_each_run_is_listed(store: ResultsStore) -> None:
    for number in range(1, 4):
        upload = Upload(number, {"test_a": "failed", "test_b": "passed"}, flaky=frozenset({"test_a"}))
        store.put(upload.run, upload.columns)
    (flaky,) = store.read(flaky_tests, ListedTests(REPOSITORY), 0.0).tests
    assert (flaky.test, flaky.proved, [proof.sha for proof in flaky.proofs]) == ("test_a", 3, [sha(3), sha(2), sha(1)])


def test_a_read_of_a_whole_table_is_detected(store: ResultsStore, database_url: str) -> None:
    database = ResultsDatabase(database_url)
    database.open()

    def work() -> None:
        with database.reading() as connection:
            connection.execute(sa.select(schema.points.c.id).where(schema.points.c.infra == "")).all()

    statements, scans = whole_tables_read(work)
    database.close()
    assert (statements, len(scans)) == (1, 1)
