"""Aliases below `renames` in app.yaml apply when results are read, and leave no trace when removed."""

from __future__ import annotations

import pytest
from nightjar_formats.model import SeenTest, Status

from bot.core.aliases import Aliases
from bot.results.compare.diff import compare
from bot.results.report.compared import compared_with, with_confirmed
from bot.results.report.findings import Baseline
from bot.results.state import SuiteState
from bot.results.store.history.history import history
from bot.results.store.store import ResultsStore
from tests.results.snapshot import snapshot_of
from tests.results.uploads import ABOUT, REPOSITORY, SUITE, Upload

PASSED, FAILED = SeenTest(Status.PASSED), SeenTest(Status.FAILED)
OLD, NEW = "kernel.poll.wait", "fs.notify.await"
OTHER = "kernel.sched.yield"
ALIASES = Aliases([(OLD, NEW)])
PREFIX = Aliases([("kernel.poll.*", "poll.*")])


def test_a_failure_under_the_new_name_still_fails() -> None:
    current, baseline = {NEW: FAILED, OTHER: PASSED}, {OLD: FAILED, OTHER: PASSED}
    without_aliases = compare(current, baseline, exit_status=1)
    assert (without_aliases.new_failures, without_aliases.removed, without_aliases.new) == ((NEW,), (OLD,), (NEW,))
    comparison = compare(current, baseline, exit_status=1, aliases=ALIASES)
    assert (comparison.still_failing, comparison.renamed) == ((NEW,), ((OLD, NEW),))
    assert (comparison.new_failures, comparison.removed, comparison.new) == ((), (), ())


def test_a_test_that_begins_to_fail_under_its_new_name_is_a_new_failure() -> None:
    comparison = compare({NEW: FAILED}, {OLD: PASSED}, exit_status=1, aliases=ALIASES)
    assert (comparison.new_failures, comparison.new) == ((NEW,), ())
    assert compare({NEW: PASSED}, {OLD: FAILED}, exit_status=0, aliases=ALIASES).fixed == (NEW,)


def test_a_lab_that_still_has_the_old_name_is_compared_as_before() -> None:
    comparison = compare({OLD: FAILED}, {OLD: PASSED}, exit_status=1, aliases=ALIASES)
    assert (comparison.new_failures, comparison.renamed) == ((OLD,), ())
    back = compare({OLD: FAILED}, {NEW: FAILED}, exit_status=1, aliases=ALIASES)
    assert (back.still_failing, back.renamed) == ((OLD,), ((NEW, OLD),))


def test_a_configured_alias_wins_over_a_found_rename() -> None:
    baseline = {f"kernel.poll.test_{number}": PASSED for number in range(12)}
    current = {f"poll.test_{number}": PASSED for number in range(12)} | {"poll.first": PASSED}
    del current["poll.test_0"]
    aliases = Aliases([("kernel.poll.test_0", "poll.test_11"), ("kernel.poll.test_11", "poll.first")])
    renamed = dict(compare(current, baseline, exit_status=0, aliases=aliases).renamed)
    assert renamed["kernel.poll.test_0"] == "poll.test_11"
    assert renamed["kernel.poll.test_11"] == "poll.first"
    assert renamed["kernel.poll.test_5"] == "poll.test_5"


def test_a_regression_is_confirmed_across_its_rename() -> None:
    suite = SuiteState(SUITE, (), {NEW: FAILED, OTHER: PASSED}, {}, 1, (), (), ())
    baseline, earlier = {OLD: FAILED, OTHER: PASSED}, {OLD: PASSED, OTHER: PASSED}
    for aliases, confirmed in ((ALIASES, {NEW}), (Aliases(), set[str]())):
        compared = compared_with(suite, Baseline("a", ""), baseline, aliases)
        assert with_confirmed(suite, compared, baseline, earlier, aliases).confirmed == confirmed


def put(store: ResultsStore, *runs: dict[str, str]) -> None:
    for number, tests in enumerate(runs, 1):
        upload = Upload(number, tests)
        assert store.put(upload.run, upload.columns)


def segments_of(store: ResultsStore, test: str, aliases: Aliases) -> list[tuple[int, str, str | None]]:
    segments = store.read(history, REPOSITORY, SUITE, test, aliases).get(ABOUT, ())
    return [(int(segment.sha, 16), segment.name, segment.status and segment.status.value) for segment in segments]


def test_history_continues_under_the_new_name_and_splits_again_without_the_alias(store: ResultsStore) -> None:
    put(store, {OLD: "passed"}, {OLD: "failed"}, {NEW: "failed"}, {NEW: "passed"})
    snapshot = store.read(snapshot_of, REPOSITORY)
    joined = [(1, OLD, "passed"), (2, OLD, "failed"), (3, NEW, "failed"), (4, NEW, "passed")]
    assert segments_of(store, NEW, ALIASES) == joined
    assert segments_of(store, NEW, Aliases()) == joined[2:]
    assert segments_of(store, NEW, ALIASES) == joined
    assert store.read(snapshot_of, REPOSITORY) == snapshot


def test_history_includes_a_test_that_never_changed_under_its_old_name(store: ResultsStore) -> None:
    put(store, {OLD: "failed", OTHER: "passed"}, {NEW: "passed", OTHER: "passed"})
    assert segments_of(store, NEW, ALIASES) == [(1, OLD, "failed"), (2, NEW, "passed")]
    assert segments_of(store, OTHER, ALIASES) == [(1, OTHER, "passed")]


def test_history_follows_a_prefix_that_is_dropped_and_restored_across_a_gap(store: ResultsStore) -> None:
    long, short = "kernel.poll.wait", "poll.wait"
    put(store, {long: "passed"}, {short: "passed"}, {OTHER: "passed"}, {long: "failed"})
    assert segments_of(store, long, PREFIX) == [
        (1, long, "passed"),
        (2, short, "passed"),
        (3, short, None),
        (4, long, "failed"),
    ]


@pytest.mark.parametrize("aliases", [ALIASES, PREFIX, Aliases([("a", "b")])])
def test_an_alias_without_renamed_runs_changes_nothing(store: ResultsStore, aliases: Aliases) -> None:
    put(store, {OLD: "passed"}, {OLD: "failed"})
    assert segments_of(store, OLD, aliases) == [(1, OLD, "passed"), (2, OLD, "failed")]
