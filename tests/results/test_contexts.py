"""The context of a failure: since when, the last pass, how often the test failed, and where else it fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.model import SeenTest, Status, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.context import FailureContext, failure_context, shows_all
from bot.results.compare.flaky import WINDOW
from bot.results.compare.lasting import Segment
from bot.results.compare.paired import UNPAIRED, PairedTargets
from bot.results.store.failures.contexts import (
    MOST_RUNS,
    RECENT,
    RECENT_RUNS,
    ContextQuery,
    TargetContextQuery,
    contexts_on_targets,
    failure_contexts,
)
from bot.results.store.failures.failures import failing_tests
from bot.results.store.grid.rows import GridRange
from bot.results.store.grid.test_runs import lines_of_test
from bot.results.store.store import ResultsStore
from tests.results.plans import whole_tables_read
from tests.results.uploads import ABOUT, REPOSITORY, SUITE, Upload, sha
from tests.tables import with_tables

TEST, OTHERS = "test_a", {f"test_ok_{number}": "passed" for number in range(5)}
WORDS = {"P": "passed", "F": "failed", "S": "skipped", "~": "failed"}
SEEN = {
    "P": SeenTest(Status.PASSED),
    "F": SeenTest(Status.FAILED),
    "S": SeenTest(Status.SKIPPED),
    "~": SeenTest(Status.FAILED, flaky=True),
    "-": None,
}
STATEMENTS = 9
"""Of one suite."""


def stored(
    store: ResultsStore, letters: str, *tests: str, first: int = 1, other_tests: Iterable[str] = (), **values: object
) -> None:
    """Store a run for each letter, which gives the status of the tests at each commit."""
    for number, letter in enumerate(letters, first):
        statuses = (
            OTHERS
            | dict.fromkeys(other_tests, "passed")
            | {test: WORDS[letter] for test in tests or [TEST] if letter in WORDS}
        )
        flaky = frozenset(tests or [TEST]) if letter == "~" else frozenset[str]()
        upload = Upload(number, statuses, flaky=flaky, **values)  # type: ignore[arg-type]
        store.put(upload.run, upload.columns)


def context(
    store: ResultsStore,
    commit: int,
    *,
    baseline: int | None = None,
    aliases: Aliases = NO_ALIASES,
    test: str = TEST,
    most_runs: int = MOST_RUNS,
) -> FailureContext:
    baseline_sha = sha(commit - 1 if baseline is None else baseline)
    queries = {SUITE: ContextQuery(baseline_sha, [test])}
    return store.read(failure_contexts, ABOUT, sha(commit), queries, aliases, most_runs)[SUITE, test]


@pytest.mark.parametrize(
    ("letters", "since", "good", "failed", "runs"),
    [
        ("PPF", 0, 2, 0, 2),
        ("PFFF", 2, 1, 0, 1),
        ("PFPFF", 4, 3, 1, 3),
        ("P~PPF", 0, 4, 1, 4),
        ("PFSF", 2, 1, 0, 1),
        ("P-FF", 3, 1, 0, 1),
        ("FFF", 1, 0, 0, 0),
        ("--F", 0, 0, 0, 0),
        ("PF~F", 0, 3, 2, 3),
    ],
)
def test_the_context_says_since_when_a_test_fails_and_how_often_it_failed_before(
    store: ResultsStore, letters: str, since: int, good: int, failed: int, runs: int
) -> None:
    stored(store, letters)
    assert context(store, len(letters)) == FailureContext(
        since=sha(since) if since else "", good=sha(good) if good else "", failed=failed, runs=runs
    )


def model(letters: str) -> FailureContext:
    """Return the context from one run after another."""
    since = good = len(letters)
    for number in reversed(range(len(letters))):
        if letters[number] in "P~":
            good = number
            break
        since = number if letters[number] == "F" else since
    window = [letter for letter in letters[max(0, since - WINDOW) : since] if letter in "PF~"]
    return FailureContext(
        since=sha(since) if since < len(letters) else "",
        good=sha(good) if good < len(letters) else "",
        failed=sum(letter in "F~" for letter in window),
        runs=len(window),
    )


def segments(letters: str) -> list[Segment]:
    return [
        (number, SEEN[letter]) for number, letter in enumerate(letters) if not number or letters[number - 1] != letter
    ]


@given(st.text("PFS~-", max_size=3 * WINDOW))
def test_segments_give_the_same_context_as_single_runs(letters: str) -> None:
    assert failure_context(segments(letters), [sha(number) for number in range(len(letters))]) == model(letters)


def test_runs_after_the_baseline_do_not_count(store: ResultsStore) -> None:
    stored(store, "PFPPF")
    assert context(store, 5, baseline=3) == FailureContext(good=sha(3), failed=1, runs=3)
    assert context(store, 2, baseline=1) == FailureContext(good=sha(1), runs=1)


def test_a_first_run_has_no_context(store: ResultsStore) -> None:
    stored(store, "F")
    assert store.read(failure_contexts, ABOUT, sha(1), {SUITE: ContextQuery("", [TEST])}) == {
        (SUITE, TEST): FailureContext()
    }
    assert store.read(failure_contexts, ABOUT, sha(1), {"relax": ContextQuery("", [TEST])}) == {}


def test_runs_older_than_the_limit_are_mentioned(store: ResultsStore) -> None:
    stored(store, "PFFFFF")
    assert context(store, 6, most_runs=3) == FailureContext(since=sha(3), older=True)


def test_a_failure_that_began_long_ago_has_the_same_context_as_a_new_one(tmp_path: Path) -> None:
    """On one database only, because it needs many runs; the statements are the same for few of them."""
    letters = "FFP" + "F" * (RECENT_RUNS + 1) + "PF"
    with closing(ResultsStore(f"sqlite:///{tmp_path}/nightjar.db")) as store:
        store.open()
        stored(store, letters)
        for commit in (len(letters), len(letters) - 2, RECENT_RUNS, WINDOW):
            read = context(store, commit)
            # The commits of the store count from 1.
            assert replace(read, older=False) == model(f"-{letters[: commit - 1]}")
            assert read.good


@given(st.lists(st.tuples(st.sampled_from("PFS~-"), st.integers(1, WINDOW)), max_size=8))
def test_older_runs_change_nothing_where_the_newer_ones_show_all(rows: list[tuple[str, int]]) -> None:
    letters = "".join(letter * count for letter, count in rows)
    newer, shas = letters[-RECENT_RUNS:], [sha(number) for number in range(len(letters))]
    if shows_all(segments(newer), len(newer)):
        assert failure_context(segments(newer), shas[-RECENT_RUNS:]) == failure_context(segments(letters), shas)


def test_a_renamed_test_keeps_its_context(store: ResultsStore) -> None:
    old_names, new_names = ([f"te/test_{file}.py::test_{n}" for n in range(40)] for file in ("old", "new"))
    stored(store, "PF", old_names[7], other_tests=old_names[:7] + old_names[8:])
    stored(store, "FF", new_names[7], first=3, other_tests=new_names[:7] + new_names[8:])
    assert context(store, 4, test=new_names[7]) == FailureContext(since=sha(2), good=sha(1), runs=1)


def test_a_test_renamed_in_app_yaml_keeps_its_context(store: ResultsStore) -> None:
    stored(store, "PF", "old_name")
    stored(store, "FF", "completely/different", first=3)
    aliases = Aliases([("old_name", "completely/different")])
    assert context(store, 4, test="completely/different", aliases=aliases).good == sha(1)
    assert context(store, 4, test="completely/different").good == ""


def test_a_test_that_its_failing_run_renames_keeps_its_context(store: ResultsStore) -> None:
    old_names, new_names = ([f"te/test_{file}.py::test_{n}" for n in range(40)] for file in ("old", "new"))
    stored(store, "FF", old_names[7], other_tests=old_names[:7] + old_names[8:])
    stored(store, "F", new_names[7], first=3, other_tests=new_names[:7] + new_names[8:])
    assert context(store, 3, test=new_names[7]) == FailureContext(since=sha(1))


@pytest.mark.parametrize("mainline", [True, False])
def test_a_test_renamed_in_app_yaml_before_its_failing_run_keeps_its_context(
    store: ResultsStore, *, mainline: bool
) -> None:
    aliases = Aliases([("old_name", "completely/different")])
    stored(store, "FF", "old_name")
    stored(store, "F", "completely/different", first=3, mainline=mainline)
    failure = context(store, 3, test="completely/different", aliases=aliases)
    assert (failure.since, failure.good) == (sha(1), "")
    assert context(store, 3, test="completely/different").since == ""


def test_the_context_names_the_other_targets_on_which_the_test_fails(store: ResultsStore) -> None:
    stored(store, "PPF")
    stored(store, "PF", target="hexagon")  # it has not tested the third commit yet
    stored(store, "PFP", target="metal")
    stored(store, "PP~", target="vulkan")
    stored(store, "PPF", target="cuda")
    stored(store, "PPF", target="other", suite="relax")
    assert context(store, 3).also_on == ("example-lab/cuda", "example-lab/hexagon")
    assert context(store, 2).also_on == ("example-lab/hexagon", "example-lab/metal")


def test_the_context_names_the_simulators_and_the_device_on_which_the_test_passes(store: ResultsStore) -> None:
    stored(store, "PF")
    for target, letters in {"simulator": "PP", "slow-simulator": "P", "broken": "PF", "flaky": "P~"}.items():
        stored(store, letters, target=target)
    names = {f"example-lab/{name}" for name in ("simulator", "slow-simulator", "broken", "flaky", "nosuch")}
    for paired, simulators, device in (
        (PairedTargets(frozenset(names)), ("example-lab/simulator", "example-lab/slow-simulator"), ""),
        (PairedTargets(device="example-lab/simulator"), (), "example-lab/simulator"),
        (PairedTargets(device="example-lab/broken"), (), ""),
        (UNPAIRED, (), ""),
    ):
        queries = {SUITE: ContextQuery(sha(1), [TEST], paired)}
        failure = store.read(failure_contexts, ABOUT, sha(2), queries)[SUITE, TEST]
        assert (failure.passes_on_simulators, failure.passes_on_device) == (simulators, device)


def test_a_target_without_runs_for_a_month_is_not_mentioned(store: ResultsStore) -> None:
    stored(store, "F", target="hexagon", at=0.0)
    stored(store, "F", first=2, at=RECENT)
    stored(store, "F", first=3, at=RECENT + 1)
    assert context(store, 2).also_on == ("example-lab/hexagon",)
    assert context(store, 3).also_on == ()


def test_other_targets_of_the_same_pull_request_head_come_first(store: ResultsStore) -> None:
    for target in ("adreno", "hexagon", "metal"):
        stored(store, "PF" if target == "metal" else "PP", target=target)
    stored(store, "F", first=3, mainline=False, pull_request=42)
    stored(store, "F", first=3, mainline=False, pull_request=42, target="hexagon")
    stored(store, "P", first=3, mainline=False, pull_request=42, target="metal")
    assert context(store, 3, baseline=2) == FailureContext(good=sha(2), runs=2, also_on=("example-lab/hexagon",))


def test_targets_that_are_asked_about_together_say_what_each_says_alone(store: ResultsStore) -> None:
    stored(store, "PPFF")
    stored(store, "PF", target="hexagon")
    stored(store, "~PFF", target="metal")
    stored(store, "FFFF", target="vulkan")
    stored(store, "PPPF", target="cuda")
    newest = {"hexagon": 2} | dict.fromkeys(("adreno", "metal", "vulkan", "cuda"), 4)
    baselines = {"vulkan": 2, "cuda": 0}
    queries = {}
    for line in store.read(lines_of_test, GridRange(REPOSITORY), TEST):
        commit = newest[line.target.target]
        baseline = baselines.get(line.target.target, commit - 1)
        queries[line.series] = TargetContextQuery(line, sha(commit), sha(baseline) if baseline else "", [TEST])
    assert len(queries) == len(newest)
    together = store.read(contexts_on_targets, list(queries.values()))
    alone = {series: store.read(contexts_on_targets, [query])[series] for series, query in queries.items()}
    assert together == alone
    by_target = {query.suite.target.target: together[series][TEST] for series, query in queries.items()}
    everywhere = tuple(sorted(f"example-lab/{target}" for target in newest))
    assert {target: context.also_on for target, context in by_target.items() if target != "hexagon"} == {
        target: tuple(name for name in everywhere if not name.endswith(f"/{target}"))
        for target in newest
        if target != "hexagon"
    }
    assert (by_target["adreno"].good, by_target["metal"].good, by_target["vulkan"].good) == (sha(2), sha(2), "")


def statements(store: ResultsStore, commit: int, tests: Iterable[str]) -> list[str]:
    """Return the statements that the answer needs."""
    queries: Mapping[str, ContextQuery] = {SUITE: ContextQuery(sha(commit - 1), list(tests))}
    executed = list[str]()

    def record(_: object, __: object, statement: str, *___: object) -> None:
        executed.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", record)
    try:
        assert len(store.read(failure_contexts, ABOUT, sha(commit), queries)) == len(queries[SUITE].tests)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", record)
    return [statement for statement in executed if statement.startswith("SELECT")]


def test_more_failures_and_more_targets_need_no_more_statements(store: ResultsStore) -> None:
    tests = [f"test_{number}" for number in range(30)]
    for target in ("adreno", "hexagon", "metal", "cuda"):
        stored(store, "PFPF", *tests, target=target)
    statements(store, 4, tests)  # reads the names, which a process caches
    for_one_test, for_all_tests = statements(store, 4, tests[:1]), statements(store, 4, tests)
    assert len(for_one_test) == len(for_all_tests) <= STATEMENTS


def test_no_statement_reads_a_whole_table(tmp_path: Path) -> None:
    tests = [f"test_{number}" for number in range(30)]
    with closing(ResultsStore(with_tables(f"sqlite:///{tmp_path}/results.db"))) as sqlite:
        sqlite.open()
        for target in ("adreno", "hexagon"):
            stored(sqlite, "PFPF", *tests, target=target)
        statements, scans = whole_tables_read(lambda: context(sqlite, 4, test=tests[0]))
    assert statements > 0
    assert scans == []


def test_each_table_is_read_by_an_index_on_postgresql(postgres_url: str) -> None:
    steps = list[dict[str, Any]]()

    def explain(connection: sa.Connection, _: object, statement: str, parameters: Any, *__: object) -> None:
        if statement.startswith("SELECT"):
            # Without the setting, so few rows would be read as a whole; with it, only a missing index causes that.
            cursor = connection.connection.cursor()
            cursor.execute("SET LOCAL enable_seqscan = off")
            cursor.execute("SET LOCAL enable_bitmapscan = off")
            cursor.execute(f"EXPLAIN (FORMAT JSON) {statement}", parameters)
            row: Any = cursor.fetchone()
            steps.extend(_tables_read(row[0][0]["Plan"]))

    with closing(ResultsStore(with_tables(postgres_url))) as postgres:
        postgres.open()
        for target in ("adreno", "hexagon"):
            stored(postgres, "PFPF", "test_a", "test_b", target=target)
        sa.event.listen(sa.Engine, "before_cursor_execute", explain)
        try:
            assert context(postgres, 4, test="test_a").since == ""
            assert len(postgres.read(failing_tests, ABOUT, 10)[0]) == 2
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", explain)
    assert len(steps) > 2 * STATEMENTS
    assert [(step["Relation Name"], step["Node Type"]) for step in steps if "Index Cond" not in step] == []


def _tables_read(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "Relation Name" in plan:
        yield plan
    for inner in plan.get("Plans", ()):
        yield from _tables_read(inner)


def test_the_failing_tests_of_the_newest_runs_are_listed_up_to_a_limit(store: ResultsStore) -> None:
    stored(store, "PFF", "test_b", "test_a")
    stored(store, "PF", suite="relax", run_id="2")
    failing, total = store.read(failing_tests, ABOUT, 2)
    assert [(test.suite, test.test, test.sha) for test in failing] == [
        (SUITE, "test_a", sha(3)),
        (SUITE, "test_b", sha(3)),
    ]
    assert total == 3
    assert failing[0].context == FailureContext(since=sha(2), good=sha(1), runs=1)
    assert len(store.read(failing_tests, ABOUT, 9)[0]) == 3
    assert store.read(failing_tests, TargetKey(REPOSITORY, "other-lab", "adreno"), 9) == ([], 0)
