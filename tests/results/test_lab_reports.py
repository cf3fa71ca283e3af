"""What a lab has uploaded: read by indices, for one lab and one repository alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from bot.results.state import RunState
from bot.results.store.failures.failures import Failure, newest_messages, store_reports
from bot.results.store.lists.lab_reports import LabActivity, lab_activity, newest_run, nightly_reports
from bot.results.store.store import ResultsStore
from tests.results.uploads import ABOUT, LAB, REPOSITORY, Upload, sha

PASSED = {f"test_{number}": "passed" for number in range(5)}


def filled(store: ResultsStore) -> None:
    uploads = [
        Upload(1, PASSED, at=100.0),
        Upload(2, PASSED, at=1000.0),
        Upload(2, PASSED, at=1000.0, run_id="again"),
        Upload(3, PASSED, at=2000.0, target="hexagon"),
        Upload(4, PASSED, at=2500.0, mainline=False, pull_request=42),
        Upload(5, PASSED, at=2600.0, repository="octocat/other"),
    ]
    for upload in uploads:
        store.put(upload.run, upload.columns)
    store.put_state(Upload(3, {}, at=2000.0).without_results(RunState.REFUSED, "te.xml is not XML"))


def read(store: ResultsStore) -> LabActivity:
    return store.read(lab_activity, REPOSITORY, LAB, since=500.0)


def test_it_counts_the_uploads_of_one_lab_and_repository_since_a_time(store: ResultsStore) -> None:
    filled(store)
    activity = read(store)
    adreno, hexagon = activity.targets["adreno"], activity.targets["hexagon"]
    assert (adreno.first_commit_at, adreno.latencies, list(adreno.commits)) == (100.0, [4000.0], [sha(2)])
    assert (hexagon.first_commit_at, hexagon.latencies) == (2000.0, [3000.0])
    assert adreno.newest is not None
    assert activity.tested == {sha(2): 1000.0, sha(3): 2000.0}
    assert [(run.key.target, run.reason) for run in activity.unusable] == [("adreno", "te.xml is not XML")]


def test_the_age_of_a_commit_whose_results_come_after_those_of_newer_ones_is_no_latency(store: ResultsStore) -> None:
    day, hour = 86_400.0, 3_600.0
    arrivals = [(1, day + hour), (9, 9 * day + hour), (4, 9.5 * day), (10, 10 * day + 2 * hour)]
    for commit, received_at in arrivals:
        upload = Upload(commit, PASSED, at=day * commit)
        store.put(replace(upload.run, received_at=received_at), upload.columns)
    (adreno,) = read(store).targets.values()
    assert adreno.latencies == [hour, hour, 2 * hour]


def test_nothing_is_found_for_an_unknown_lab(store: ResultsStore) -> None:
    assert store.read(lab_activity, REPOSITORY, "other-lab", 0.0) == LabActivity({}, {}, [])


def test_it_returns_the_results_of_all_targets_for_the_nightly_branch(store: ResultsStore) -> None:
    filled(store)
    nightly = store.read(nightly_reports, REPOSITORY, since=500.0)
    assert nightly.committed == {sha(2): 1000.0, sha(3): 2000.0}
    assert nightly.arrived == {sha(2): 5000.0, sha(3): 5000.0}
    assert {target.target: moment for target, moment in nightly.first_commits.items()} == {
        "adreno": 100.0,
        "hexagon": 2000.0,
    }
    counts = {
        target.target: {name: (report.suites, report.infra) for name, report in reports.items()}
        for target, reports in nightly.targets.items()
    }
    assert counts == {"adreno": {sha(2): (1, 0)}, "hexagon": {sha(3): (1, 0)}}


def reported(store: ResultsStore) -> None:
    for number, test in ((2, "test_0"), (3, "test_1")):
        failure = Failure("operators", test, sha(number), sha(1))
        store.write(store_reports, ABOUT, sha(number), store.clock(), [failure], {})


def test_messages_about_regressions_come_with_their_tests(store: ResultsStore) -> None:
    filled(store)
    reported(store)
    messages = store.read(newest_messages, REPOSITORY, 0.0, 5)
    assert sorted((message.target, message.suite, message.test, message.message.since) for message in messages) == [
        (ABOUT, "operators", "test_0", sha(2)),
        (ABOUT, "operators", "test_1", sha(3)),
    ]
    assert len(store.read(newest_messages, REPOSITORY, 0.0, 1)) == 1
    assert store.read(newest_messages, "octocat/other", 0.0, 5) == []


def test_no_statement_about_a_lab_reads_a_whole_table(store: ResultsStore) -> None:
    filled(store)
    plans = list[str]()

    def explain(connection: sa.Connection, _: object, statement: str, parameters: Any, *__: object) -> None:
        cursor = connection.connection.cursor()
        if connection.dialect.name == "sqlite":
            plans.extend(str(row[3]) for row in cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters))
            return
        # Without a setting, small tables would be read as a whole.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {statement}", parameters)
        plans.extend(str(row[0]) for row in cursor.fetchall())

    sa.event.listen(sa.Engine, "before_cursor_execute", explain)
    try:
        read(store)
        store.read(newest_run, ABOUT)
        store.read(newest_messages, REPOSITORY, 0.0, 5)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", explain)
    assert len(plans) > 6
    assert [plan for plan in plans if plan.startswith("SCAN") or "Seq Scan" in plan] == []
