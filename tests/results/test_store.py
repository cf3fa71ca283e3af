"""The store returns what was put into it, on both databases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.columns import status_byte
from nightjar_formats.columns.collect import Reason
from nightjar_formats.limits import MAX_SUITE_NAMES
from nightjar_formats.model import Detail, SeenTest, Status, TargetKey, Trouble
from nightjar_formats.refused import TooMuch
from nightjar_formats.runs.infra import infra

from bot.results.compare.searching import renames
from bot.results.state import RunState
from bot.results.store.commit import commit_state, seen_tests
from bot.results.store.history.baselines import baselines
from bot.results.store.history.history import history
from bot.results.store.lists.run_lists import admission_of_commit, lab_usage, list_runs, waiting_runs
from bot.results.store.store import ResultsStore
from bot.results.store.tables import names
from bot.results.store.tables.blobs import Reasons, RunColumns
from bot.results.store.tables.combine import has_evidence
from bot.results.store.tables.runs import find_run, processed_runs
from bot.results.store.write.pending_checks import complete_check, scheduled_checks
from tests.results.snapshot import snapshot_of
from tests.results.uploads import ABOUT, LAB, REPOSITORY, SUITE, TARGET, Upload, sha
from tests.tables import with_tables

ADD, MUL, DIV = "te/test_ops.py::test_add", "te/test_ops.py::test_mul", "te/test_ops.py::test_div"
PASSED, FAILED = SeenTest(Status.PASSED), SeenTest(Status.FAILED, message="boom")
DAY = 86_400.0


def put(store: ResultsStore, *uploads: Upload) -> None:
    for upload in uploads:
        assert store.put(upload.run, upload.columns)


def baseline_shas(store: ResultsStore, commit: int) -> list[str]:
    return [candidate.sha for candidate in store.read(baselines, ABOUT, SUITE, sha(commit))]


def statuses(store: ResultsStore, test_id: str, target: TargetKey = ABOUT) -> list[tuple[str, str | None]]:
    traced = store.read(history, REPOSITORY, SUITE, test_id)
    return [(segment.sha, segment.status and segment.status.value) for segment in traced.get(target, ())]


def test_a_run_is_returned_as_it_was_put(store: ResultsStore) -> None:
    upload = Upload(1, {ADD: "passed", MUL: "failed", DIV: "skipped"}, pull_request=42)
    put(store, upload)
    assert store.read(find_run, upload.run.key) == upload.run
    state = store.read(commit_state, ABOUT, sha(1))
    suite = state.suites[SUITE]
    assert suite.seen == {ADD: PASSED, MUL: FAILED, DIV: SeenTest(Status.SKIPPED)}
    assert dict(suite.details) == {MUL: Detail(message="boom", text=f"{MUL} went wrong", path="te/test_ops.py")}
    assert suite.runs == (upload.run,)
    assert (state.complete, state.mainline, state.pull_request) == (True, True, 42)
    assert store.read(seen_tests, ABOUT, SUITE, sha(1)) == suite.seen


def test_nothing_is_returned_for_unknown_names(store: ResultsStore) -> None:
    upload = Upload(1, {})
    assert store.read(find_run, upload.run.key) is None
    assert store.read(commit_state, ABOUT, sha(1)).suites == {}
    assert store.read(seen_tests, ABOUT, SUITE, sha(1)) == {}
    assert store.read(history, REPOSITORY, SUITE, ADD) == {}
    assert baseline_shas(store, 1) == []
    assert store.read(complete_check, ABOUT, sha(1)) is None


def test_a_folder_is_stored_once_and_the_first_content_stays(store: ResultsStore) -> None:
    first, second = Upload(1, {ADD: "passed"}), Upload(1, {ADD: "failed"})
    put(store, first)
    snapshot = store.read(snapshot_of, REPOSITORY)
    assert not store.put(first.run, first.columns)
    assert not store.put(replace(second.run, version="another"), second.columns)
    assert not store.put_state(first.without_results(RunState.WAITING))
    assert store.read(snapshot_of, REPOSITORY) == snapshot


def test_reading_the_bucket_again_replaces_a_run_and_its_consequences(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}), Upload(2, {ADD: "failed", MUL: "passed"}), Upload(3, {ADD: "passed"}))
    replacement = Upload(2, {ADD: "passed"})
    assert store.put(replacement.run, replacement.columns, replace=True)
    assert store.read(seen_tests, ABOUT, SUITE, sha(2)) == {ADD: PASSED}
    assert statuses(store, ADD) == [(sha(1), "passed")]
    assert statuses(store, MUL) == []


def test_text_with_any_characters_comes_back(store: ResultsStore) -> None:
    odd = "te/test_ops.py::test_nul[\x00\ud800é]"
    upload = Upload(1, {odd: "failed"})
    run = replace(upload.run, reason="\x00\udfff", claims=replace(upload.run.claims or None, log_url="a\x00b"))  # type: ignore[type-var]
    assert store.put(run, upload.columns)
    assert store.read(find_run, run.key) == run
    assert store.read(commit_state, ABOUT, sha(1)).suites[SUITE].details[odd].text == f"{odd} went wrong"
    assert statuses(store, odd) == [(sha(1), "failed")]


# Shards and attempts


def test_a_run_with_missing_shards_names_them(store: ResultsStore) -> None:
    first, second, third = Upload(1, {ADD: "passed", MUL: "failed", DIV: "passed"}).in_shards(3)
    put(store, third, first, Upload(2, {ADD: "passed"}))
    suite = store.read(commit_state, ABOUT, sha(1)).suites[SUITE]
    assert (suite.shard_total, suite.missing_shards, suite.complete) == (3, (2,), False)
    assert suite.seen == {ADD: PASSED, DIV: PASSED}
    assert baseline_shas(store, 2) == []
    put(store, second)
    assert store.read(commit_state, ABOUT, sha(1)).suites[SUITE].complete
    assert store.read(seen_tests, ABOUT, SUITE, sha(1)) == {ADD: PASSED, DIV: PASSED, MUL: FAILED}
    assert baseline_shas(store, 2) == [sha(1)]


def test_an_attempt_at_one_shard_of_a_complete_suite_misses_no_other(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed", MUL: "failed"}))
    put(store, Upload(1, {MUL: "passed"}, "2", attempt=2, shard=(1, 2)))
    state = store.read(commit_state, ABOUT, sha(1)).suites[SUITE]
    assert (state.complete, state.missing_shards, state.seen[MUL].flaky) == (True, (), True)


def test_a_later_attempt_decides_the_status_and_makes_the_test_flaky(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}, "b", attempt=2), Upload(1, {ADD: "failed", MUL: "failed"}, "a"))
    suite = store.read(commit_state, ABOUT, sha(1)).suites[SUITE]
    assert suite.seen == {ADD: SeenTest(Status.PASSED, flaky=True), MUL: FAILED}
    assert set(suite.details) == {MUL}
    assert [run.key.run_id for run in suite.runs] == ["a", "b"]


def test_a_waiting_run_is_shown_and_then_stored(store: ResultsStore) -> None:
    upload = Upload(1, {ADD: "passed"})
    waiting = upload.without_results(RunState.WAITING)
    assert store.put_state(waiting)
    assert not store.put_state(waiting)
    suite = store.read(commit_state, ABOUT, sha(1)).suites[SUITE]
    assert (suite.waiting, suite.seen, suite.complete) == ((waiting,), {}, False)
    assert store.read(waiting_runs, REPOSITORY) == [waiting]
    put(store, upload)
    assert store.read(waiting_runs, REPOSITORY) == []
    assert store.read(commit_state, ABOUT, sha(1)).complete


def test_a_run_whose_files_never_arrived_is_broken_until_its_shard_is_sent_again(store: ResultsStore) -> None:
    broken = Upload(1, {ADD: "passed"}, "1").without_results(RunState.INCOMPLETE)
    store.put_state(broken)
    assert store.read(commit_state, ABOUT, sha(1)).suites[SUITE].broken == (broken,)
    put(store, Upload(1, {ADD: "passed"}, "2", attempt=2))
    suite = store.read(commit_state, ABOUT, sha(1)).suites[SUITE]
    assert (suite.broken, suite.complete, len(suite.runs)) == ((), True, 2)


def test_a_refused_run_is_stored_with_its_reason_but_affects_no_state_and_no_check(store: ResultsStore) -> None:
    refused = replace(Upload(1, {}).without_results(RunState.REFUSED, "no such commit"), claims=None, admission=None)
    assert store.put_state(refused)
    assert store.read(find_run, refused.key) == refused
    assert store.read(commit_state, ABOUT, sha(1)).suites == {}
    assert store.read(scheduled_checks, REPOSITORY, 10 * DAY, 0, DAY) == []


# Queries about runs


def test_runs_are_listed_newest_first_and_filtered_by_any_field(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}), Upload(2, {ADD: "passed"}, target="hexagon-v73"))
    store.put_state(Upload(3, {}).without_results(RunState.WAITING))
    assert [run.key.sha for run in store.read(list_runs, REPOSITORY)] == [sha(3), sha(2), sha(1)]
    assert [run.key.sha for run in store.read(list_runs, REPOSITORY, limit=1)] == [sha(3)]
    assert [run.key.sha for run in store.read(list_runs, REPOSITORY, lab=LAB, target=TARGET)] == [sha(3), sha(1)]
    assert [run.key.sha for run in store.read(list_runs, REPOSITORY, state=RunState.STORED, sha=sha(2))] == [sha(2)]
    assert store.read(list_runs, "octocat/other") == []


def test_known_runs_are_distinguished_from_new_ones(store: ResultsStore) -> None:
    upload, refused = Upload(1, {ADD: "passed"}), Upload(1, {}, "2", target="hexagon-v73")
    put(store, upload)
    store.put_state(refused.without_results(RunState.REFUSED))
    third = Upload(1, {}, "3").run.key
    assert store.read(
        processed_runs, {upload.run.key: "another", refused.run.key: refused.run.version, third: "etag"}
    ) == {
        upload.run.key,
        refused.run.key,
    }


def test_a_refused_run_is_read_again_if_its_manifest_changed(store: ResultsStore) -> None:
    refused = Upload(1, {}).without_results(RunState.REFUSED)
    store.put_state(refused)
    assert store.read(processed_runs, {refused.key: refused.version}) == {refused.key}
    assert store.read(processed_runs, {refused.key: "another"}) == set()


def test_usage_counts_what_a_lab_sent_since_a_time_except_the_bytes_of_refused_runs(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}), Upload(2, {ADD: "passed"}, target="hexagon-v73"))
    store.put_state(Upload(3, {}).without_results(RunState.REFUSED))
    assert store.read(lab_usage, REPOSITORY, LAB, 5000.0) == (3, 200)
    assert store.read(lab_usage, REPOSITORY, LAB, 5000.5) == (0, 0)
    assert store.read(lab_usage, REPOSITORY, "another-lab", 0.0) == (0, 0)


def test_a_commit_keeps_the_kind_that_it_had_when_any_lab_tested_it(store: ResultsStore) -> None:
    put(store, Upload(1, {ADD: "passed"}, mainline=False, pull_request=7))
    store.put_state(Upload(2, {}, target="hexagon-v73").without_results(RunState.REFUSED))
    assert (
        store.read(admission_of_commit, REPOSITORY, sha(1))
        == Upload(1, {}, mainline=False, pull_request=7).run.admission
    )
    assert store.read(admission_of_commit, REPOSITORY, sha(2)) is None
    assert store.read(admission_of_commit, "octocat/other", sha(1)) is None


# The series


def test_a_suite_whose_names_change_in_every_run_accepts_no_more_of_them() -> None:
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(TooMuch, match="give parameters IDs"):
        names.add(connection, names.SuiteRow(1, MAX_SUITE_NAMES), 1, b"")
    engine.dispose()


def test_history_says_from_which_commit_on_a_test_had_which_status(store: ResultsStore) -> None:
    for number, status in enumerate(["passed", "passed", "failed", "failed", "passed"], 1):
        put(store, Upload(number, {ADD: status, MUL: "passed"}))
    assert statuses(store, ADD) == [(sha(1), "passed"), (sha(3), "failed"), (sha(5), "passed")]
    assert statuses(store, MUL) == [(sha(1), "passed")]


def test_history_shows_that_a_test_was_added_and_removed(store: ResultsStore) -> None:
    put(store, Upload(1, {MUL: "passed"}), Upload(2, {MUL: "passed", ADD: "failed"}), Upload(3, {MUL: "passed"}))
    assert statuses(store, ADD) == [(sha(2), "failed"), (sha(3), None)]


def test_history_is_separate_for_each_target(store: ResultsStore) -> None:
    hexagon = TargetKey(REPOSITORY, LAB, "hexagon-v73")
    put(store, Upload(1, {ADD: "passed"}), Upload(1, {ADD: "failed"}, target="hexagon-v73"))
    assert statuses(store, ADD) == [(sha(1), "passed")]
    assert statuses(store, ADD, hexagon) == [(sha(1), "failed")]


@pytest.mark.parametrize(
    "unlinked",
    [
        Upload(2, {ADD: "failed"}, mainline=False, pull_request=7),
        Upload(2, {ADD: "failed"}, shard=(1, 2)),
        Upload(2, {f"te/test_ops.py::test_{number}": "failed" for number in range(50)} | {ADD: "failed"}),
    ],
    ids=["a pull request's head", "a shard alone", "a run with one cause of all failures"],
)
def test_runs_that_do_not_count_for_the_nightly_branch_are_not_in_its_series(
    store: ResultsStore, unlinked: Upload
) -> None:
    put(store, Upload(1, {ADD: "passed"}), unlinked, Upload(3, {ADD: "passed"}))
    assert statuses(store, ADD) == [(sha(1), "passed")]


def test_baselines_are_earlier_complete_nightly_commits_with_usable_results(store: ResultsStore) -> None:
    good, broken = {ADD: "passed"}, {f"te/test_ops.py::test_{number}": "failed" for number in range(50)}
    put(store, Upload(1, good), Upload(2, good, mainline=False), Upload(3, broken), Upload(5, good), Upload(6, good))
    store.put_state(Upload(4, {}).without_results(RunState.WAITING))
    assert baseline_shas(store, 6) == [sha(5), sha(1)]
    assert [candidate.sha for candidate in store.read(baselines, ABOUT, SUITE, sha(6), limit=1)] == [sha(5)]
    assert baseline_shas(store, 2) == [sha(1)]


def test_history_follows_a_test_through_its_names(store: ResultsStore) -> None:
    def nightly_run(number: int, file: str, **statuses: str) -> Upload:
        return Upload(number, {f"{file}::test_{name}": statuses.get(f"t{name}", "passed") for name in range(20)})

    put(store, nightly_run(1, "te/a.py"), nightly_run(2, "te/a.py", t7="failed"), nightly_run(5, "ir/c.py"))
    put(store, nightly_run(3, "te/b.py", t7="failed"), nightly_run(4, "te/b.py"))
    assert statuses(store, "ir/c.py::test_7") == [
        (sha(1), "passed"),
        (sha(2), "failed"),
        (sha(3), "failed"),
        (sha(4), "passed"),
        (sha(5), "passed"),
    ]
    (segments,) = store.read(history, REPOSITORY, SUITE, "ir/c.py::test_7").values()
    assert [segment.name.partition("::")[0] for segment in segments] == [
        "te/a.py",
        "te/a.py",
        "te/b.py",
        "te/b.py",
        "ir/c.py",
    ]
    assert statuses(store, "te/a.py::test_7") == [(sha(1), "passed"), (sha(2), "failed"), (sha(3), None)]


def test_a_test_that_fails_under_its_new_name_has_failed_since_then(url_with_tables: str) -> None:
    store = ResultsStore(url_with_tables, renames=lambda removed, new: dict(zip(removed, new, strict=True)))
    store.open()
    put(store, Upload(1, {ADD: "passed"}), Upload(2, {MUL: "failed"}))
    assert statuses(store, MUL) == [(sha(1), "passed"), (sha(2), "failed")]
    store.close()


# Concurrent runs

OLD, NEW = ({f"te/{file}.py::test_{number}": "passed" for number in range(60)} for file in ("test_old", "test_new"))


def test_others_can_write_during_the_search_for_renames(url_with_tables: str) -> None:
    second_store = ResultsStore(url_with_tables)
    elsewhere = iter([Upload(1, {ADD: "passed"}, target="hexagon"), Upload(2, {ADD: "passed"}, target="hexagon")])

    def search(removed: Iterable[str], new: Iterable[str]) -> Mapping[str, str]:
        put(second_store, next(elsewhere))
        return renames(removed, new)

    store = ResultsStore(url_with_tables, renames=search)
    store.open()
    put(store, Upload(1, OLD), Upload(2, NEW))
    test = "te/test_new.py::test_7"
    assert [segment.name for segment in store.read(history, REPOSITORY, SUITE, test)[ABOUT]] == [
        "te/test_old.py::test_7",
        test,
    ]
    for opened in (store, second_store):
        opened.close()


def test_changes_during_the_search_for_renames_count(url_with_tables: str, tmp_path: Path) -> None:
    """A commit between two others arrives during their comparison, and becomes the baseline of the later one."""
    uploads = [Upload(1, OLD), Upload(3, {**NEW, ADD: "failed"}), Upload(2, NEW)]
    calm = ResultsStore(with_tables(f"sqlite:///{tmp_path / 'calm.db'}"))
    second_store = ResultsStore(url_with_tables)
    between = uploads[2:]

    def search(removed: Iterable[str], new: Iterable[str]) -> Mapping[str, str]:
        while between:
            put(second_store, between.pop())
        return renames(removed, new)

    disturbed = ResultsStore(url_with_tables, renames=search)
    for opened in (disturbed, calm):
        opened.open()
    put(disturbed, *uploads[:2])
    put(calm, *uploads)
    assert disturbed.read(snapshot_of, REPOSITORY) == calm.read(snapshot_of, REPOSITORY)
    for opened in (disturbed, second_store, calm):
        opened.close()


def test_concurrent_runs_all_find_their_place(url_with_tables: str) -> None:
    stores = [ResultsStore(url_with_tables, renames=renames) for _ in range(2)]
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(ResultsStore.open, stores))
        uploads = [
            Upload(number, {f"te/a.py::t{test}": "passed" for test in range(number)}, target=f"board-{board}")
            for number in range(1, 6)
            for board in range(2)
        ]
        done = threads.map(
            lambda pair: pair[1].put(pair[0].run, pair[0].columns), zip(uploads * 2, stores * 10, strict=True)
        )
        assert sum(done) == len(uploads)
    for number in range(1, 6):
        seen = stores[0].read(seen_tests, replace(ABOUT, target="board-1"), SUITE, sha(number))
        assert seen == {f"te/a.py::t{test}": PASSED for test in range(number)}
    for store in stores:
        store.close()


@given(
    st.lists(st.builds(SeenTest, st.sampled_from(Status), trouble=st.sampled_from(Trouble), message=st.just("boom")))
)
def test_a_run_with_evidence_about_the_code_is_no_lab_fault(seen: list[SeenTest]) -> None:
    tests = {f"te/test_{number}.py": result for number, result in enumerate(seen)}
    statuses = bytes(status_byte(result.status) for result in seen)
    reasons = [Reason(result.trouble, result.message) for result in seen]
    run = RunColumns(statuses, Reasons(list(range(len(seen))), list(range(len(seen))), reasons))
    if has_evidence([run], statuses):
        assert infra(tests, None, exit_status=0) == ""
