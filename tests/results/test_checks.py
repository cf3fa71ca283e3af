"""When the check runs of commits are written, and written again."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from bot.results.compare.ancestors import Relation
from bot.results.state import RunState
from bot.results.store.commit import commit_state
from bot.results.store.history.baselines import baselines
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn
from bot.results.store.write.pending_checks import announced, complete_check, scheduled_checks, touch_check
from bot.results.store.write.series import Infra
from tests.results.snapshot import snapshot_of
from tests.results.uploads import ABOUT, REPOSITORY, SUITE, Upload, sha

ADD, MUL = "te/test_ops.py::test_add", "te/test_ops.py::test_mul"
DAY = 86_400.0


def put(store: ResultsStore, *uploads: Upload) -> None:
    for upload in uploads:
        assert store.put(upload.run, upload.columns)


def test_a_check_is_scheduled_when_its_results_have_settled_and_again_when_they_change(url_with_tables: str) -> None:
    moment = 1000.0
    store = ResultsStore(url_with_tables, clock=lambda: moment)
    store.open()
    put(store, Upload(1, {ADD: "passed"}))
    assert store.read(scheduled_checks, REPOSITORY, 1059.0, 60.0, DAY) == []
    (pending,) = store.read(scheduled_checks, REPOSITORY, 1060.0, 60.0, DAY)
    assert (pending.target, pending.sha, pending.revision, pending.over) == (
        ABOUT,
        sha(1),
        1,
        True,
    )
    store.write(announced, pending)
    assert store.read(scheduled_checks, REPOSITORY, 9999.0, 60.0, DAY) == []
    put(store, Upload(1, {MUL: "passed"}, "2", suite="other"))
    assert [check.revision for check in store.read(scheduled_checks, REPOSITORY, 1060.0, 60.0, DAY)] == [2]
    store.write(announced, pending)
    assert [check.revision for check in store.read(scheduled_checks, REPOSITORY, 1060.0, 60.0, DAY)] == [2]
    store.close()


def test_an_incomplete_check_is_scheduled_once_and_again_at_the_deadline(url_with_tables: str) -> None:
    store = ResultsStore(url_with_tables, clock=lambda: 1000.0)
    store.open()
    first, second = Upload(1, {ADD: "passed", MUL: "passed"}).in_shards(2)
    put(store, first)
    (pending,) = store.read(scheduled_checks, REPOSITORY, 1060.0, 60.0, DAY)
    assert not pending.over
    store.write(announced, pending)
    assert store.read(scheduled_checks, REPOSITORY, 2000.0, 60.0, DAY) == []
    (final,) = store.read(scheduled_checks, REPOSITORY, 1000.0 + DAY, 60.0, DAY)
    assert (final.revision, final.over) == (1, True)
    store.write(announced, final)
    assert store.read(scheduled_checks, REPOSITORY, 1000.0 + 2 * DAY, 60.0, DAY) == []
    put(store, second)
    assert [(check.revision, check.over) for check in store.read(scheduled_checks, REPOSITORY, 1060.0, 60.0, DAY)] == [
        (2, True)
    ]
    store.close()


def test_an_unusable_run_is_reported_once_without_waiting(store: ResultsStore) -> None:
    store.put_state(Upload(1, {}).without_results(RunState.INCOMPLETE, "te.xml is no XML"))
    (pending,) = store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, 1e13)
    assert pending.over
    store.write(announced, pending)
    assert store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY) == []


def test_a_check_waits_for_a_shard_but_not_for_files_that_never_arrived(store: ResultsStore) -> None:
    first, second = Upload(1, {ADD: "passed", MUL: "passed"}).in_shards(2)
    put(store, first)
    for state, is_over in ((RunState.WAITING, False), (RunState.INCOMPLETE, True)):
        store.put_state(second.without_results(state))
        (pending,) = store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, 1e13)
        assert pending.over is is_over
    put(store, second)
    (pending,) = store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, 1e13)
    assert pending.over


def test_a_check_does_not_wait_for_a_suite_whose_only_run_is_refused_in_the_end(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}))
    second_suite = Upload(1, {MUL: "passed"}, "other", suite="other")
    for state, is_over in ((RunState.WAITING, False), (RunState.REFUSED, True)):
        store.put_state(second_suite.without_results(state, "the manifest is of another lab"))
        (pending,) = store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, 1e13)
        assert pending.over is is_over, state


def test_a_check_with_all_suites_of_the_previous_nightly_run_does_not_wait(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}), Upload(1, {ADD: "passed"}, "other", suite="other"))
    assert store.read(complete_check, ABOUT, sha(1)) is None
    put(store, Upload(2, {ADD: "passed"}))
    assert store.read(complete_check, ABOUT, sha(2)) is None
    put(store, Upload(2, {ADD: "passed"}, "other", suite="other"))
    check = store.read(complete_check, ABOUT, sha(2))
    assert check is not None
    assert (check.sha, check.over) == (sha(2), True)
    store.write(announced, check)
    assert store.read(complete_check, ABOUT, sha(2)) is None


def test_reading_everything_again_writes_only_changed_checks(store: ResultsStore) -> None:
    nightly_runs = [
        Upload(number, {ADD: "failed", f"{MUL}[{number}]": "passed"}, suite=suite, run_id=suite)
        for number in (3, 1, 2)
        for suite in (SUITE, "other")
    ]
    put(store, *nightly_runs)
    for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY):
        store.write(announced, pending)
    snapshot = store.read(snapshot_of, REPOSITORY)
    for nightly_run in nightly_runs:
        assert store.put(nightly_run.run, nightly_run.columns, replace=True)
    assert store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY) == []
    assert store.read(snapshot_of, REPOSITORY) == snapshot
    assert store.put(nightly_runs[-1].run, Upload(2, {ADD: "passed"}).columns, replace=True)
    assert {pending.sha for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY)} == {
        sha(2),
        sha(3),
    }


def test_after_a_change_of_a_rule_reading_everything_again_writes_the_changed_checks(url_with_tables: str) -> None:
    nightly_runs = [Upload(number, {ADD: "failed"}) for number in (1, 2)]
    rules: list[Infra] = [lambda _: "", lambda _: "it is the lab's trouble"]
    for rule in rules:
        store = ResultsStore(url_with_tables, infra=rule)
        store.open()
        for nightly_run in nightly_runs:
            assert store.put(nightly_run.run, nightly_run.columns, replace=True)
        pending_checks = store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY)
        assert {check.sha for check in pending_checks} == {sha(1), sha(2)}
        for check in pending_checks:
            store.write(announced, check)
        store.close()


def test_a_late_commit_rewrites_the_checks_whose_baseline_it_may_be(store: ResultsStore) -> None:
    put(store, Upload(2, {ADD: "passed"}), Upload(1, {ADD: "passed"}, mainline=False, pull_request=7))
    put(store, *(Upload(number, {ADD: "passed"}, mainline=False, pull_request=8) for number in (4, 5)))
    for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY):
        store.write(announced, pending)
    put(store, Upload(3, {ADD: "passed"}))
    assert {pending.sha for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY)} == {
        sha(3),
        sha(4),
        sha(5),
    }


def test_a_late_commit_becomes_the_baseline_of_commits_without_a_nearer_one(store: ResultsStore) -> None:
    for number in (2, 3, 4, 5):
        put(store, Upload(number, {}))
    put(store, Upload(6, {ADD: "passed"}))
    for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY):
        store.write(announced, pending)
    put(store, Upload(1, {ADD: "passed"}))
    assert [candidate.sha for candidate in store.read(baselines, ABOUT, SUITE, sha(6))] == [sha(1)]
    assert {pending.sha for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY)} == {
        sha(number) for number in range(1, 7)
    }


def test_a_late_commit_rewrites_only_the_checks_whose_baselines_change(
    store: ResultsStore,
) -> None:
    numbers = [1, 2, *range(4, 14)]
    put(store, *(Upload(number, {ADD: "passed"}) for number in numbers))
    put(store, Upload(20, {ADD: "passed"}, mainline=False, pull_request=8))
    for index, number in enumerate(numbers):
        ancestors = numbers[:index][-2:]
        store.write(
            learn, REPOSITORY, [Relation(sha(number), sha(ancestor), is_ancestor=True) for ancestor in ancestors]
        )
    store.write(learn, REPOSITORY, [Relation(sha(20), sha(13), is_ancestor=True)])
    for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY):
        store.write(announced, pending)
    put(store, Upload(3, {ADD: "failed"}))
    # For the second of these two it is the commit before its baseline.
    assert {pending.sha for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY)} == {
        sha(3),
        sha(4),
        sha(5),
    }


def test_a_late_suite_is_missing_only_at_the_next_commit(store: ResultsStore) -> None:
    put(store, *(Upload(number, {ADD: "passed"}) for number in (1, 2, 3, 4)))
    for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY):
        store.write(announced, pending)
    put(store, Upload(1, {ADD: "passed"}, "other", suite="other"))
    assert {pending.sha for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, 1e13)} == {
        sha(1),
        sha(2),
    }


def test_a_suite_of_the_previous_nightly_run_is_missing_until_it_arrives_in_any_order(
    store: ResultsStore,
) -> None:
    second = Upload(2, {ADD: "passed"})
    put(store, second)
    assert store.read(commit_state, ABOUT, sha(2)).missing_suites == ()
    for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY):
        store.write(announced, pending)
    put(store, Upload(1, {ADD: "passed"}, "other", suite="other"))
    assert sha(2) in {
        pending.sha for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, 1e13) if not pending.over
    }
    state = store.read(commit_state, ABOUT, sha(2))
    assert (state.missing_suites, state.complete) == (("other",), False)
    put(store, Upload(2, {ADD: "passed"}, "other", suite="other"))
    assert store.read(commit_state, ABOUT, sha(2)).complete


def test_an_abandoned_suite_is_missing_once_and_never_in_a_pull_request(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}), Upload(1, {ADD: "passed"}, "other", suite="other"))
    put(store, Upload(2, {ADD: "passed"}), Upload(3, {ADD: "passed"}))
    put(store, Upload(4, {ADD: "passed"}, suite="other", mainline=False, pull_request=7))
    assert [store.read(commit_state, ABOUT, sha(number)).missing_suites for number in (2, 3, 4)] == [("other",), (), ()]


def test_a_repeated_report_changes_no_check(store: ResultsStore) -> None:
    waiting = Upload(1, {ADD: "passed"}).without_results(RunState.WAITING)
    assert store.put_state(waiting)
    assert not store.put_state(waiting)
    assert [pending.revision for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY)] == [1]


def test_a_check_can_be_requested_again(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}))
    for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY):
        store.write(announced, pending)
    store.write(touch_check, ABOUT, sha(1), store.clock())
    assert [pending.revision for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, DAY)] == [2]


def test_runs_that_wait_for_a_missing_shard_cost_one_statement_whatever_their_number(store: ResultsStore) -> None:
    executed = list[str]()

    def note(*arguments: Any) -> None:
        executed.append(arguments[2])

    def statements() -> int:
        executed.clear()
        sa.event.listen(sa.Engine, "before_cursor_execute", note)
        try:
            store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, 1e13)
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", note)
        return sum(statement.startswith("SELECT") for statement in executed)

    counts = []
    for number in range(1, 31):
        put(store, Upload(number, {ADD: "passed", MUL: "passed"}).in_shards(2)[0])
        if number in (2, 30):
            counts.append(statements())
    for pending in store.read(scheduled_checks, REPOSITORY, 1e12, 0.0, 1e13):
        assert not pending.over
        store.write(announced, pending)
    assert counts[0] == counts[1], "many checks cost as few statements as one"
    assert not any("nightjar_runs.claims" in statement for statement in executed), "no run is read"
    assert statements() == 1
