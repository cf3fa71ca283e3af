"""When the results of a suite on a target are unreliable: many of its tests flip back and forth, run after run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, status_byte
from nightjar_formats.model import Status, TargetKey

from bot.results.compare.health import LEAST_TESTS, RELIABLE, WINDOW, RunFlips, SuiteHealth, suite_health
from bot.results.store.history.health import flips, health_of_suites
from bot.results.store.store import ResultsStore
from tests.results.uploads import ABOUT, LAB, REPOSITORY, SUITE, Upload, sha
from tests.tables import with_tables

STABLE, UNSTABLE = RunFlips("", 0, 100), RunFlips("", 40, 100)
BYTES = {
    "P": status_byte(Status.PASSED),
    "F": status_byte(Status.FAILED),
    "S": status_byte(Status.SKIPPED),
    "~": status_byte(Status.FAILED, flaky=True),
    "X": status_byte(Status.XFAILED),
    "-": ABSENT,
}
STEADY = {f"test_ok_{number}": "passed" for number in range(20)}


def runs(letters: str) -> list[RunFlips]:
    """Return runs of the commits 1, 2, …; those with a `U` are unstable."""
    kinds = {"U": (40, 100), ".": (0, 100)}
    return [RunFlips(sha(number), *kinds[letter]) for number, letter in enumerate(letters, 1)]


@pytest.mark.parametrize(
    ("letters", "since", "stable"),
    [
        pytest.param("..UU", 0, 0, id="two are not enough"),
        pytest.param("..UUU", 3, 0, id="three in a row"),
        pytest.param("U.U.U", 1, 0, id="three of five"),
        pytest.param("U..U..U", 0, 0, id="three of seven"),
        pytest.param("..UUU....", 3, 4, id="four stable runs are not enough"),
        pytest.param("..UUU.....", 0, 0, id="five stable runs end it"),
        pytest.param("UUU....U....", 1, 4, id="another unstable run delays the end"),
        pytest.param("UUU.....UU", 0, 0, id="afterwards two are not enough again"),
        pytest.param("UUU.....UUU", 9, 0, id="afterwards three start it again"),
        pytest.param("", 0, 0, id="no runs"),
    ],
)
def test_results_are_unreliable_after_three_unstable_runs_of_five_until_five_are_stable(
    letters: str, since: int, stable: int
) -> None:
    health = suite_health(runs(letters))
    assert (health.since, health.stable) == (sha(since) if since else "", stable)
    assert health.unreliable == bool(since)


def test_without_older_runs_the_beginning_may_be_earlier() -> None:
    assert suite_health(runs("." + "U" * (WINDOW - 1))).older
    assert not suite_health(runs("." * 9 + "U" * (WINDOW - 9))).older
    assert not suite_health(runs("UUU")).older


@pytest.mark.parametrize(
    ("flipped_back", "tests", "unstable"),
    [(9, 20, False), (10, 20, True), (10, 333, True), (10, 334, False), (209, 7_000, False), (210, 7_000, True)],
)
def test_a_run_is_unstable_if_at_least_ten_tests_and_three_percent_flip(
    flipped_back: int, tests: int, unstable: bool
) -> None:
    assert RunFlips("", flipped_back, tests).unstable is unstable


@pytest.mark.parametrize(
    ("letters", "flipped_back"),
    [
        pytest.param("PPFF", "0000", id="a break flips once"),
        pytest.param("PFP", "001", id="back"),
        pytest.param("PFPFP", "00111", id="back and forth"),
        pytest.param("PFFFFFFP", "00000000", id="too late: a fix"),
        pytest.param("PFFFFFP", "0000001", id="just in time"),
        pytest.param("PFSP", "0001", id="skipped in between"),
        pytest.param("PF-P", "0001", id="absent in between"),
        pytest.param("P~P~", "0000", id="a flaky result counts as a pass"),
        pytest.param("PFXF", "0011", id="an expected failure counts as a pass"),
        pytest.param("--FP", "0000", id="added"),
    ],
)
def test_a_test_flips_back_if_it_flipped_in_one_of_the_five_runs_before(letters: str, flipped_back: str) -> None:
    columns = [bytes([BYTES["P"], BYTES[letter]]) for letter in letters]
    runs = list(flips([sha(number) for number in range(len(letters))], columns))
    assert "".join(str(run.flipped_back) for run in runs) == flipped_back


def test_columns_of_different_lengths_are_compared() -> None:
    columns = [b"\1", b"\2\2", b"\1\1", b"\2"]
    assert [(run.flipped_back, run.tests) for run in flips("abcd", columns)] == [(0, 1), (0, 2), (1, 2), (1, 1)]


def restless(number: int, count: int = LEAST_TESTS) -> dict[str, str]:
    """Return the tests of a run: half of some tests fail in it, the other half in the next."""
    return STEADY | {f"test_{n}": "failed" if (n + number) % 2 else "passed" for n in range(count)}


def stored(store: ResultsStore, stories: Sequence[Mapping[str, str]], *, first: int = 1, **values: object) -> None:
    for number, tests in enumerate(stories, first):
        upload = Upload(number, tests, **values)  # type: ignore[arg-type]
        assert store.put(upload.run, upload.columns)


def unreliable_since(store: ResultsStore, commit: int = 0, target: TargetKey = ABOUT) -> str:
    health = store.read(health_of_suites, target, sha(commit) if commit else "")
    return health[SUITE].since


def test_the_health_of_a_target_comes_from_its_newest_runs_or_those_up_to_a_commit(store: ResultsStore) -> None:
    stored(store, [STEADY, *(restless(number) for number in range(2, 8))])
    assert unreliable_since(store) == sha(4)
    assert [unreliable_since(store, commit) for commit in (4, 5, 6, 7)] == ["", "", sha(4), sha(4)]
    assert store.read(health_of_suites, ABOUT)[SUITE] == SuiteHealth(sha(4), newest=RunFlips(sha(7), 10, 30))
    head = Upload(9, restless(9), mainline=False, pull_request=7)
    store.put(head.run, head.columns)
    assert unreliable_since(store, 9) == sha(4)
    stored(store, [restless(1) for _ in range(8)], first=10)
    assert unreliable_since(store) == ""
    assert store.read(health_of_suites, ABOUT, sha(99)) == {}
    assert store.read(health_of_suites, TargetKey(REPOSITORY, LAB, "unknown")) == {}


def test_other_targets_and_suites_stay_reliable(store: ResultsStore) -> None:
    for number in range(1, 8):
        stored(store, [restless(number)], first=number)
        stored(store, [STEADY], first=number, target="hexagon")
        stored(store, [STEADY], first=number, suite="relax", run_id="2")
    health = store.read(health_of_suites, ABOUT)
    assert {suite: suite_health.unreliable for suite, suite_health in health.items()} == {SUITE: True, "relax": False}
    assert store.read(health_of_suites, TargetKey(REPOSITORY, LAB, "hexagon")) == {SUITE: RELIABLE}


def test_any_order_of_arrival_gives_the_same_health(store: ResultsStore) -> None:
    stories = {number: restless(number) for number in range(1, 8)}
    for number in (5, 1, 7, 3, 2, 6, 4):
        stored(store, [stories[number]], first=number)
    assert unreliable_since(store) == sha(3)


def test_a_mass_of_failures_that_comes_and_goes_twice_does_not_make_a_target_unreliable(store: ResultsStore) -> None:
    broken = STEADY | {f"test_{n}": "failed" for n in range(40)}
    fixed = STEADY | {f"test_{n}": "passed" for n in range(40)}
    stored(store, [fixed, broken, fixed, broken, broken, broken, broken])
    assert unreliable_since(store) == ""


def test_no_statement_of_health_reads_a_whole_table(tmp_path: Path) -> None:
    plans = list[str]()

    def explain(connection: sa.Connection, _: object, statement: str, parameters: Any, *__: object) -> None:
        rows = connection.connection.cursor().execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
        plans.extend(str(row[3]) for row in rows)

    with closing(ResultsStore(with_tables(f"sqlite:///{tmp_path}/results.db"))) as sqlite:
        sqlite.open()
        stored(sqlite, [restless(number) for number in range(1, 6)])
        sa.event.listen(sa.Engine, "before_cursor_execute", explain)
        try:
            sqlite.read(health_of_suites, ABOUT)
            sqlite.read(health_of_suites, ABOUT, sha(4))
        finally:
            sa.event.remove(sa.Engine, "before_cursor_execute", explain)
    assert len(plans) > 8
    assert [plan for plan in plans if plan.startswith("SCAN") and "ROW" not in plan] == []
