"""What is reported about a series of nightly runs: stories of tests, one letter per run, through the store."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from nightjar_formats.model import SeenTest, Status

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.ancestors import Relation
from bot.results.state import SuiteState
from bot.results.store.failures.failures import (
    RECOVERED,
    Failure,
    SuiteFailures,
    newest_runs,
    reported_failures,
    store_reports,
)
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn
from handlers.regressions.decide import (
    REMOVED,
    RegressionChanges,
    find_changes,
    pack_failures,
    unpack_failures,
)
from handlers.regressions.target_news import load_changes
from tests.results.reported import SHA, a_run, a_suite
from tests.results.uploads import ABOUT, REPOSITORY, SUITE, Upload, sha
from tests.tables import with_tables

STATUSES = {"P": "passed", "F": "failed", "E": "errored", "S": "skipped", "X": "xfailed", "f": "failed"}
NOT_SENT, INFRA = " ", "!"
Story = Mapping[str, str]
"""The results of each test, one letter for each run (`STATUSES`)."""


@dataclass
class Nightly:
    """A target whose nightly runs arrive in any order and are evaluated on arrival."""

    store: ResultsStore
    story: Story
    arrived: set[int] = field(default_factory=set)
    aliases: Aliases = NO_ALIASES

    @property
    def last(self) -> int:
        """Return the number of the last run, counted from 1."""
        return max(map(len, self.story.values()))

    def arrive(self, number: int) -> str:
        """Let a run arrive; return its news in short.

        `+` began, `*` never passed, `✓` recovered, `?` was removed; as a number from ten tests on.
        """
        letters = {test: results[number - 1] for test, results in self.story.items()}
        if set(letters.values()) == {NOT_SENT}:
            # Only the other suite arrives.
            self.put(Upload(number, {"other::a": "passed"}, "other", suite="other"))
        elif set(letters.values()) == {INFRA}:
            self.put(Upload(number, {}))
        else:
            tests = {test: STATUSES[letter] for test, letter in letters.items() if letter in STATUSES}
            flaky = frozenset(test for test, letter in letters.items() if letter == "f")
            self.put(Upload(number, tests | {"ok::always": "passed"}, flaky=flaky))
            self.arrived.add(number)
        changes = self.evaluate(number)
        marks = (
            ("+", [failure for failure in changes.began if failure.good]),
            ("*", [failure for failure in changes.began if not failure.good]),
            ("✓", changes.recovered),
            ("?", changes.removed),
        )
        return " ".join(
            self.shown(mark, [failure.test for failure in failures]) for mark, failures in marks if failures
        )

    def put(self, upload: Upload) -> None:
        """Store a run."""
        assert self.store.put(upload.run, upload.columns)

    def evaluate(self, number: int) -> RegressionChanges:
        """Report the changes of the target, with GitHub's answers about its commits; return them."""
        previous_runs = {}
        for newest in self.store.read(newest_runs, ABOUT):
            older = sorted((run for run in self.arrived if sha(run) < newest.sha), reverse=True)
            if older and newest.suite == SUITE:
                previous_runs[newest.suite] = sha(older[0])
                self.store.write(
                    learn, REPOSITORY, [Relation(newest.sha, sha(run), is_ancestor=True) for run in older[:2]]
                )
        changes, _ = self.store.read(load_changes, ABOUT, sha(number), previous_runs, self.aliases)
        ended = {RECOVERED: changes.recovered, REMOVED: changes.removed}
        for _ in range(2):  # repeated, as by an effect after a crash
            self.store.write(store_reports, ABOUT, sha(number), self.store.clock(), changes.began, ended, self.aliases)
        return changes

    @staticmethod
    def shown(mark: str, tests: Collection[str]) -> str:
        return f"{mark}{len(tests)}" if len(tests) > 9 else " ".join(f"{mark}{test}" for test in sorted(tests))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ResultsStore]:
    """Return an empty store; other tests cover its storage on both databases."""
    with closing(ResultsStore(with_tables(f"sqlite:///{tmp_path / 'nightjar.db'}"))) as empty_store:
        empty_store.open()
        yield empty_store


def news_of_runs(store: ResultsStore, story: Story, order: Collection[int] = ()) -> list[str]:
    """Return the news of each run, in order of arrival."""
    nightly = Nightly(store, story)
    return [nightly.arrive(number) for number in order or range(1, nightly.last + 1)]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("story", "news"),
    [
        pytest.param({"a": "PFPP", "b": "PPFP"}, ["", "", "", ""], id="a single failure is no news"),
        pytest.param({"a": "PFFFF"}, ["", "", "+a", "", ""], id="reported once when confirmed"),
        pytest.param({"a": "PFFPP", "b": "PEFFP"}, ["", "", "+a +b", "✓a", "✓b"], id="each recovery is reported"),
        pytest.param({"a": "PFFXP"}, ["", "", "+a", "✓a", ""], id="an expected failure is a recovery"),
        pytest.param({"a": "PFFPFF"}, ["", "", "+a", "✓a", "", "+a"], id="a new failure is news again"),
        pytest.param({"a": "PFFSSP"}, ["", "", "+a", "", "", "✓a"], id="a skip is no recovery"),
        pytest.param({"a": "PFFSFF"}, ["", "", "+a", "", "", ""], id="a skip does not end a failure"),
        pytest.param({"a": "PFF--"}, ["", "", "+a", "?a", ""], id="a removed test is reported"),
        pytest.param({"a": "PFF!!P"}, ["", "", "+a", "", "", "✓a"], id="a lab fault changes nothing"),
        pytest.param({"a": "PF!F"}, ["", "", "", "+a"], id="a lab fault neither confirms nor interrupts"),
        pytest.param({"a": "PFF F"}, ["", "", "+a", "", ""], id="a missing suite changes nothing"),
        pytest.param({"a": "PFF  "}, ["", "", "+a", "", "?a"], id="an abandoned suite is removed"),
        pytest.param({"a": "PfPFFPF"}, [""] * 7, id="two failures of a known flaky test are no news"),
        pytest.param(
            {"a": "PfPFFFF"}, ["", "", "", "", "", "+a", ""], id="three failures of a known flaky test are news"
        ),
        pytest.param(
            {"a": "PPPPfPPPPPPPPPPPPPPPPPPPPPPPPPPPFF"},
            [""] * 33 + ["+a"],
            id="two failures of a rarely flaky test are news",
        ),
        pytest.param({"a": "PFPFPFPFPFF"}, [""] * 10 + ["+a"], id="a suspicion explains no failure"),
        pytest.param({"a": "PSFFFF"}, ["", "", "", "+a", "", ""], id="a skip before the failure"),
        pytest.param({"a": "P-FFFF"}, ["", "", "", "+a", "", ""], id="an absence before the failure"),
        pytest.param({"a": "PFSFFFF"}, ["", "", "", "", "+a", "", ""], id="a skip between failures"),
        pytest.param({"a": "FFFP"}, ["", "*a", "", "✓a"], id="never passed, reported once"),
        pytest.param({"a": "--FFF"}, ["", "", "", "*a", ""], id="a test that fails from the start"),
        pytest.param({"a": "FFPFF"}, ["", "*a", "✓a", "", "+a"], id="after one pass it is a regression"),
        pytest.param({"a": "PfFFF"}, ["", "", "", "", "+a"], id="a flaky result is no failure"),
    ],
)
def test_a_lasting_failure_is_reported_once_and_its_end_once(
    store: ResultsStore, story: Story, news: list[str]
) -> None:
    assert news_of_runs(store, story) == news


def many(name: str, results: str, count: int = 30) -> dict[str, str]:
    return {f"{name}::{number}": results for number in range(count)}


def test_many_simultaneous_failures_are_confirmed_together(store: ResultsStore) -> None:
    assert news_of_runs(store, many("a", "PFFP") | many("ok", "PPPP")) == ["", "", "+30", "✓30"]


def test_a_failure_that_begins_before_a_mass_of_failures_is_reported(store: ResultsStore) -> None:
    story = many("a", "PPFFFPPP") | {"single": "PFFFFFFF"} | many("ok", "P" * 8, 70)
    assert news_of_runs(store, story) == ["", "", "+single", "+30", "", "✓30", "", ""]


@pytest.mark.no_cover
def test_any_number_of_failures_is_recorded(store: ResultsStore) -> None:
    number = 2_936
    assert news_of_runs(store, many("a", "PFFF", number) | many("ok", "PPPP", 1_000)) == ["", "", f"+{number}", ""]
    assert len(store.read(reported_failures, ABOUT)) == number


def test_the_first_failure_and_the_last_pass_are_recorded(store: ResultsStore) -> None:
    assert news_of_runs(store, {"a": "PPSFSFF", "b": "--FFFFF"})[-1] == "+a"
    reported = store.read(reported_failures, ABOUT)
    assert reported == [Failure(SUITE, "b", sha(3)), Failure(SUITE, "a", sha(4), sha(2))]


def test_a_renamed_test_stays_the_same_test(store: ResultsStore) -> None:
    bad, good = [f"tests/{n}.py::test" for n in "ab"], [f"tests/{n}.py::test" for n in range(20)]
    story = dict.fromkeys(bad, "PFF---") | dict.fromkeys(good, "PPP---")
    story |= {test.replace("tests/", "tests/moved/"): "---FFP" if test in bad else "---PPP" for test in story}
    moved = "✓tests/moved/a.py::test ✓tests/moved/b.py::test"
    assert news_of_runs(store, story) == ["", "", "+tests/a.py::test +tests/b.py::test", "", "", moved]


def test_a_failure_is_confirmed_under_its_new_name(store: ResultsStore) -> None:
    good = [f"tests/{n}.py::test" for n in range(20)]
    story = {"tests/a.py::test": "PF--"} | dict.fromkeys(good, "PP--")
    story |= {test.replace("tests/", "tests/moved/"): "--FF" if "a.py" in test else "--PP" for test in story}
    assert news_of_runs(store, story) == ["", "", "+tests/moved/a.py::test", ""]
    assert store.read(reported_failures, ABOUT) == [Failure(SUITE, "tests/moved/a.py::test", sha(2), sha(1))]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("story", "news"),
    [
        pytest.param({"old": "PFF--", "new": "---FP"}, ["", "", "+old", "", "✓new"], id="reported under its old name"),
        pytest.param({"old": "PF--", "new": "--FF"}, ["", "", "+new", ""], id="confirmed under its new name"),
        pytest.param({"old": "PFF---", "new": "----FF"}, ["", "", "+old", "?old", "", "+new"], id="after a removal"),
        pytest.param({"old": "P--F", "new": "-FF-"}, ["", "", "+new", ""], id="renamed back"),
        pytest.param({"older": "PF--", "old": "--F-", "new": "---F"}, ["", "", "+old", ""], id="renamed twice"),
        pytest.param({"old": "PFF-", "new": "PPPF"}, ["", "", "+old", "?old"], id="two tests that ran in parallel"),
    ],
)
def test_a_test_renamed_in_app_yaml_stays_the_same_test(store: ResultsStore, story: Story, news: list[str]) -> None:
    nightly = Nightly(store, story, aliases=Aliases([("older", "old"), ("old", "new")]))
    assert [nightly.arrive(number) for number in range(1, nightly.last + 1)] == news
    assert all(failure.good == sha(1) for failure in store.read(reported_failures, ABOUT, nightly.aliases))


def test_a_removed_alias_no_longer_counts(store: ResultsStore) -> None:
    nightly = Nightly(store, {"a.test": "PFF---", "b.test": "---FFF"}, aliases=Aliases([("a.*", "b.*")]))
    assert [nightly.arrive(number) for number in range(1, 5)] == ["", "", "+a.test", ""]
    nightly.aliases = NO_ALIASES
    assert nightly.arrive(5) == "*b.test ?a.test"


def test_a_file_that_can_be_collected_again_has_recovered(store: ResultsStore) -> None:
    story = {"a.py": "-EE-", "a.py::test": "P--P"}
    assert news_of_runs(store, story) == ["", "", "*a.py", "✓a.py"]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("story", "order", "news"),
    [
        pytest.param("PPFF", (1, 2, 4, 3), ["", "", "", "+a"], id="a late run confirms a lasting failure"),
        pytest.param("PPFFP", (1, 2, 5, 4, 3), ["", "", "", "", ""], id="a late run confirms no ended failure"),
        pytest.param(
            "PFPFF", (1, 2, 4, 3, 5), ["", "", "+a", "", ""], id="a late pass in between does not undo a report"
        ),
        pytest.param("FFF", (3, 2, 1), ["", "*a", ""], id="in reverse order"),
        pytest.param("PFF", (3, 2, 1), ["", "*a", ""], id="an earlier pass arrives too late"),
    ],
)
def test_a_late_run_is_judged_together_with_the_newest_one(
    store: ResultsStore, story: str, order: tuple[int, ...], news: list[str]
) -> None:
    assert news_of_runs(store, {"a": story}, order) == news


def test_a_run_of_another_branch_does_not_interrupt_two_runs_in_a_row(store: ResultsStore) -> None:
    """Run 3 is no ancestor of run 4, as when labs test two branches or one was reset."""
    for number, status in ((1, "passed"), (2, "failed"), (3, "passed"), (4, "failed")):
        upload = Upload(number, {"a": status})
        assert store.put(upload.run, upload.columns)
    related = [(2, 1, True), (3, 1, True), (4, 2, True), (4, 1, True), (4, 3, False)]
    store.write(
        learn,
        REPOSITORY,
        [Relation(sha(run), sha(older), is_ancestor=is_ancestor) for run, older, is_ancestor in related],
    )
    changes, _ = store.read(load_changes, ABOUT, sha(4), {SUITE: sha(2)})
    assert changes.began == (Failure(SUITE, "a", sha(2), sha(1)),)


def test_judging_again_reports_nothing_twice(store: ResultsStore) -> None:
    nightly = Nightly(store, {"a": "PFFP", "b": "PPPP"})
    assert [nightly.arrive(number) for number in (1, 2, 3)] == ["", "", "+a"]
    assert not nightly.evaluate(3)
    assert not nightly.evaluate(2)
    assert nightly.arrive(4) == "✓a"
    assert not nightly.evaluate(4)


def test_a_plan_stores_a_short_form_and_restores_all_of_it() -> None:
    failures = [Failure("operators", f"tests/test_ops.py::test_{n}", "a" * 40, "b" * 40) for n in range(3_000)]
    text = pack_failures({"": failures, REMOVED: failures[:1]})
    assert len(text) < 30_000
    assert {kind: sorted(unpacked, key=str) for kind, unpacked in unpack_failures(text).items()} == {
        "": sorted(failures, key=str),
        REMOVED: failures[:1],
    }


def failure(test: str, suite: str = "operators") -> Failure:
    return Failure(suite, test, "a" * 40, "b" * 40)


@pytest.mark.parametrize(
    ("exit_status", "removed", "still"),
    [
        (1, ["tests/test_b.py::test_removed"], []),
        # An interrupted run says nothing about the tests that it lacks.
        (2, [], ["tests/test_b.py::test_removed"]),
        (-9, [], ["tests/test_b.py::test_removed"]),
    ],
)
def test_a_reported_failure_that_an_interrupted_run_lacks_stays_reported(
    exit_status: int, removed: list[str], still: list[str]
) -> None:
    suites = [
        SuiteFailures("given up", SHA, still=(failure("g", "given up"),), absent=(failure("h", "given up"),)),
        SuiteFailures(
            "operators",
            SHA,
            began=(failure("tests/test_a.py::test_began"),),
            still=(failure("tests/test_a.py::test_fails"),),
            recovered=(failure("tests/test_a.py::test_passes"),),
            absent=(failure("tests/test_a.py"), failure("tests/test_b.py::test_removed")),
        ),
        SuiteFailures("graphs", SHA, began=(failure("x", "graphs"),), absent=(failure("y", "graphs"),)),
    ]

    def suite_at(suite: SuiteFailures) -> SuiteState:
        seen = {"tests/test_a.py::test_passes": SeenTest(Status.PASSED)}
        status = exit_status if suite.suite == "operators" else 1
        return a_suite(name=suite.suite, seen=seen, runs=[a_run(suite=suite.suite, exit_status=status)])

    changes, failing = find_changes(suites, {"given up"}, suite_at)
    # The file could not be collected before, and its tests run again.
    assert [failed.test for failed in changes.recovered] == ["tests/test_a.py::test_passes", "tests/test_a.py"]
    assert [failed.test for failed in changes.removed] == ["g", "h", *removed, "y"]
    assert [failed.test for failed in changes.began] == ["tests/test_a.py::test_began", "x"]
    assert [failed.test for failed in failing] == [
        "tests/test_a.py::test_fails",
        *still,
        "tests/test_a.py::test_began",
        "x",
    ]


def test_the_short_form_does_not_depend_on_the_order_of_kinds() -> None:
    began, ended = [failure("a")], [failure("b")]
    assert pack_failures({"": began, REMOVED: ended}) == pack_failures({REMOVED: ended, "": began})
