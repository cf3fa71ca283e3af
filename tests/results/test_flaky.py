"""How flaky a test is: histories as letters, one for each run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.model import SeenTest, Status

from bot.core.aliases import Aliases
from bot.results.compare.flaky import ALPHA, LEAST_RUNS, MOST_NEEDED, WINDOW, Flakiness, flakiness_of
from bot.results.compare.lasting import lasting_failure
from bot.results.store.commit import seen_tests
from bot.results.store.grid.rows import GridRange
from bot.results.store.grid.test_runs import lines_of_test
from bot.results.store.history.flakiness import flakiness_at_newest_runs, flakiness_of_tests, known_flaky_tests
from bot.results.store.store import ResultsStore
from tests.results.test_lasting import ENDED, segments
from tests.results.uploads import ABOUT, SUITE, Upload, sha

PASSED, FAILED = SeenTest(Status.PASSED), SeenTest(Status.FAILED)
HISTORIES = st.text("PFSfp-", max_size=WINDOW + 20)


def flaky(history: str) -> Flakiness:
    return flakiness_of(segments(history), len(history))


def put_story(store: ResultsStore, story: Mapping[str, str], *, pull_request: int | None = None) -> None:
    """Store a run for each letter, if any test is present in it."""
    for number, letters in enumerate(zip(*story.values(), strict=True), 1):
        seen = {test: ENDED[letter] for test, letter in zip(story, letters, strict=True)}
        tests = {test: result.status.value for test, result in seen.items() if result}
        flaky_tests = frozenset(test for test, result in seen.items() if result and result.flaky)
        if tests:
            mainline = pull_request is None
            upload = Upload(number, tests, mainline=mainline, pull_request=pull_request, flaky=flaky_tests)
            store.put(upload.run, upload.columns)


@pytest.mark.parametrize(
    ("history", "runs", "failed", "proved", "suspected", "row"),
    [
        ("", 0, 0, 0, 0, 0),
        ("PPP", 3, 0, 0, 0, 0),
        ("PFP", 3, 1, 0, 1, 0),
        ("PFSP", 3, 1, 0, 1, 0),
        ("PFPFP", 5, 2, 0, 2, 0),
        ("FPF", 2, 1, 0, 0, 1),
        ("PFpFP", 5, 2, 1, 0, 0),
        ("PFFP", 4, 2, 0, 0, 0),
        ("PpPF", 3, 0, 1, 0, 1),
        ("PfPFF", 3, 0, 1, 0, 2),
        ("PFpSF-F", 3, 1, 1, 0, 2),
        ("S--S", 0, 0, 0, 0, 0),
        ("FFF", 0, 0, 0, 0, 3),
    ],
)
def test_what_the_runs_of_a_test_prove(
    history: str, runs: int, failed: int, proved: int, suspected: int, row: int
) -> None:
    assert flaky(history) == Flakiness(runs, failed, proved, suspected, row)


def test_runs_older_than_the_window_do_not_count() -> None:
    assert flaky("p" + "P" * (WINDOW - 2) + "F").explains
    assert not flaky("p" + "P" * (WINDOW - 1) + "F").explains


@pytest.mark.parametrize("history", ["PFPPFPPFPPFPPF", "PFPFPFPFPFPFPFPF"])
def test_a_suspicion_explains_no_failure(history: str) -> None:
    assert flaky(history).suspected
    assert not flaky(history).explains


def test_the_window_has_forty_runs() -> None:
    assert flaky("p" + "P" * 38 + "F").explains
    assert not flaky("p" + "P" * 39 + "F").explains
    assert flaky("P" * 100).runs == 40


@pytest.mark.parametrize(
    ("runs", "failed", "bound"),
    [(9, 0, 1.0), (10, 0, 0.2130), (10, 1, 0.3477), (20, 5, 0.4322), (40, 0, 0.0634), (40, 20, 0.6259), (40, 40, 1.0)],
)
def test_the_bound_is_that_of_wilson_with_95_percent_confidence(runs: int, failed: int, bound: float) -> None:
    assert Flakiness(runs, failed, 1).bound == pytest.approx(bound, abs=0.00005)


@given(st.integers(LEAST_RUNS, WINDOW), st.data())
def test_a_rate_at_the_bound_is_as_far_from_the_observed_one_as_95_percent_allow(
    runs: int, data: st.DataObject
) -> None:
    observed = data.draw(st.integers(0, runs)) / runs
    bound = Flakiness(runs, round(observed * runs), 1).bound
    assert (bound - observed) ** 2 == pytest.approx(1.6449**2 * bound * (1 - bound) / runs, abs=1e-9)


def test_few_runs_give_no_rate() -> None:
    assert flaky("p" + "P" * (LEAST_RUNS - 2)).bound == 1
    assert flaky("p" + "P" * (LEAST_RUNS - 1)).bound < 0.25


@pytest.mark.parametrize(
    ("history", "needed"),
    [
        ("P" * 30, 2),
        ("pPP", 3),
        ("P" * 10 + "p" + "P" * 27, 2),
        ("P" * 10 + "pPF" + "P" * 25, 3),
        ("p" * 38, 2),
        ("pFP" * 10, 3),
    ],
)
def test_how_many_failed_runs_in_a_row_exceed_flakiness(history: str, needed: int) -> None:
    assert flaky(history).needed == needed
    assert flaky(history + "F" * (needed - 1)).explains == ("p" in history)
    assert not flaky(history + "F" * needed).explains


@given(HISTORIES)
def test_three_failed_runs_in_a_row_are_never_explained(history: str) -> None:
    assert not flaky(history + "F" * MOST_NEEDED).explains
    assert lasting_failure(segments(history + "F" * MOST_NEEDED), len(history) + MOST_NEEDED) is not None


@given(HISTORIES)
def test_without_proof_nothing_is_explained(history: str) -> None:
    assert not flaky(history.replace("p", "P").replace("f", "F")).explains


@given(HISTORIES)
def test_the_newest_failures_do_not_count_among_the_runs_that_explain_them(history: str) -> None:
    window = history[-WINDOW:]
    ran = [letter for letter in window if letter in "PFfp"]
    flakiness = flaky(history)
    assert flakiness.runs + flakiness.row == len(ran)
    assert flakiness.failed + flakiness.row == ran.count("F")
    assert flakiness.proved == ran.count("f") + ran.count("p")


@given(st.integers(LEAST_RUNS, WINDOW), st.data())
def test_the_bound_is_above_the_observed_rate_and_grows_with_it(runs: int, data: st.DataObject) -> None:
    failed = data.draw(st.integers(0, runs - 1))
    lower, higher = (Flakiness(runs, count, 1).bound for count in (failed, failed + 1))
    assert failed / runs < lower < higher <= 1
    assert Flakiness(runs, failed, 1).needed == MOST_NEEDED or lower**2 < ALPHA


def test_the_store_returns_the_flakiness_at_a_commit_of_the_nightly_branch(store: ResultsStore) -> None:
    put_story(store, {"a": "PfPPF", "b": "PPFPF", "c": "PPPPP"})
    flakiness = store.read(flakiness_of_tests, ABOUT, SUITE, sha(5), store.read(seen_tests, ABOUT, SUITE, sha(5)))
    assert flakiness == {"a": flaky("PfPPF"), "b": flaky("PPFPF"), "c": flaky("PPPPP")}
    assert store.read(flakiness_of_tests, ABOUT, SUITE, sha(4), {"a": PASSED}) == {"a": flaky("PfPP")}


def test_the_head_of_a_pull_request_counts_after_the_nightly_branch(store: ResultsStore) -> None:
    put_story(store, {"a": "PfPP"})
    put_story(store, {"a": "----F"}, pull_request=42)
    assert store.read(flakiness_of_tests, ABOUT, SUITE, sha(5), {"a": FAILED}) == {"a": flaky("PfPPF")}


def test_an_unknown_test_has_no_flakiness(store: ResultsStore) -> None:
    assert store.read(flakiness_of_tests, ABOUT, SUITE, sha(1), {"a": FAILED}) == {}
    put_story(store, {"a": "P"})
    assert store.read(flakiness_of_tests, ABOUT, SUITE, sha(1), {"b": FAILED}) == {}
    assert store.read(flakiness_of_tests, ABOUT, SUITE, sha(2), {"a": FAILED}) == {}


def test_a_renamed_test_keeps_the_flakiness_of_its_old_name(store: ResultsStore) -> None:
    put_story(store, {"a": "PfPP--", "b": "----PF", **{f"ok_{number}": "PPPPPP" for number in range(9)}})
    aliases = Aliases([("a", "b")])
    flakiness = store.read(flakiness_of_tests, ABOUT, SUITE, sha(6), {"b": FAILED}, aliases)
    assert flakiness == {"b": flaky("PfPPPF")}


@pytest.mark.parametrize("story", ["PfFP" * 30, "P" * 100 + "f" + "PF" * 5])
def test_the_store_reads_only_the_window(store: ResultsStore, story: str) -> None:
    put_story(store, {"a": story})
    last = len(story)
    results = store.read(seen_tests, ABOUT, SUITE, sha(last))
    assert store.read(flakiness_of_tests, ABOUT, SUITE, sha(last), results) == {"a": flaky(story)}


@pytest.mark.parametrize("story", ["PfPPF", "PfFP" * 30, "P" * 50 + "fPFPF", "F", "PfSF", "----Pf"])
def test_the_newest_runs_of_several_targets_give_the_same_flakiness_as_each_alone(
    store: ResultsStore, story: str
) -> None:
    put_story(store, {"a": story, "b": "P" * len(story)})
    lines = store.read(lines_of_test, GridRange(ABOUT.repository), "a")
    newest, results = sha(len(story)), store.read(seen_tests, ABOUT, SUITE, sha(len(story)))
    expected = store.read(flakiness_of_tests, ABOUT, SUITE, newest, results)["a"]
    assert store.read(flakiness_at_newest_runs, lines, "a") == {lines[0].series: (newest, expected)}
    assert store.read(flakiness_at_newest_runs, lines, "unknown") == {}


@pytest.mark.parametrize("old", ["PpP", "ppp"])
def test_a_test_that_a_pull_request_renames_keeps_the_flakiness_of_its_old_name(store: ResultsStore, old: str) -> None:
    put_story(store, {"old": old, "other": "PPP"})
    head = Upload(4, {"new": "failed", "other": "passed"}, mainline=False, pull_request=42)
    store.put(head.run, head.columns)
    aliases = Aliases([("old", "new")])
    assert store.read(known_flaky_tests, ABOUT, SUITE, head.run.key.sha, {"new": FAILED}) == {}
    known = store.read(known_flaky_tests, ABOUT, SUITE, head.run.key.sha, {"new": FAILED}, aliases)
    assert known == {"new": flaky(f"{old}F")}


@pytest.mark.parametrize("outcome", ["failed", "passed"])
def test_a_test_whose_old_name_still_runs_does_not_take_its_flakiness(store: ResultsStore, outcome: str) -> None:
    put_story(store, {"old": "PpP", "other": "PPP"})
    head = Upload(4, {"old": outcome, "new": "failed", "other": "passed"}, mainline=False, pull_request=42)
    store.put(head.run, head.columns)
    failures = {"old": FAILED, "new": FAILED} if outcome == "failed" else {"new": FAILED}
    known = store.read(known_flaky_tests, ABOUT, SUITE, head.run.key.sha, failures, Aliases([("old", "new")]))
    assert known == ({"old": flaky("PpPF")} if outcome == "failed" else {})


def test_at_the_newest_runs_a_renamed_test_keeps_the_flakiness_of_its_old_name(store: ResultsStore) -> None:
    put_story(store, {"a": "PfPP--", "b": "----PF", **{f"ok_{number}": "PPPPPP" for number in range(9)}})
    lines = store.read(lines_of_test, GridRange(ABOUT.repository), "b")
    (flakiness,) = store.read(flakiness_at_newest_runs, lines, "b", Aliases([("a", "b")])).values()
    assert flakiness == (sha(6), flaky("PfPPPF"))


def test_many_failing_tests_need_the_same_few_statements(store: ResultsStore) -> None:
    tests = {f"test_{number}": "PFPfPF" for number in range(300)}
    put_story(store, tests)
    for_one_test, for_all_tests = (
        statements_of(partial(store.read, flakiness_of_tests, ABOUT, SUITE, sha(6), dict.fromkeys(names, FAILED)))
        for names in (["test_0"], tests)
    )
    assert len(for_one_test) == len(for_all_tests) < 12


def statements_of(read: Callable[[], object]) -> list[str]:
    """Return the statements that a read needs after a first read filled the caches."""
    executed = list[str]()

    def note(connection: object, cursor: object, statement: str, *rest: object) -> None:
        executed.append(statement)

    read()
    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        read()
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    return executed
