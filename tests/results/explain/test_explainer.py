"""Why a test has its class, derived from the stored runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from nightjar_formats.model import TargetKey

from bot.cli.results.explain import explanation_json, explanation_lines
from bot.core.errors import UserError
from bot.results.compare.ancestors import Relation
from bot.results.compare.health import RunFlips
from bot.results.explain.classes import ResultClass
from bot.results.explain.explainer import Explanation, explain_test
from bot.results.explain.lookup import find_commit, find_target
from bot.results.store.failures.failures import Failure, store_reports
from bot.results.store.store import ResultsStore
from bot.results.store.tables.ancestry import learn
from tests.results.uploads import ABOUT, LAB, REPOSITORY, SUITE, TARGET, Upload, sha
from tests.tables import with_tables

TEST, OTHERS = "test_a", {f"test_ok_{number}": "passed" for number in range(5)}
WORDS = {"P": "passed", "F": "failed", "S": "skipped"}
FLAKY = "~"


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[ResultsStore]:
    """Return an empty store; tests with other queries use `store`, which covers each database."""
    with closing(ResultsStore(with_tables(f"sqlite:///{tmp_path}/results.db"))) as store:
        store.open()
        yield store


def store_story(store: ResultsStore, letters: str, test: str = TEST, **values: object) -> None:
    """Store a run for each letter, and GitHub's relations of the commits: each contains the previous one."""
    for number, letter in enumerate(letters, 1):
        word = "passed" if letter == FLAKY else WORDS.get(letter, "")
        tests = OTHERS | ({test: word} if word else {})
        flaky = frozenset([test]) if letter == FLAKY else frozenset[str]()
        upload = Upload(number, tests, flaky=flaky, **values)  # type: ignore[arg-type]
        store.put(upload.run, upload.columns)
        store.write(
            learn, REPOSITORY, [Relation(sha(number), sha(number - 1), is_ancestor=True, url=f"/commit/{number - 1}")]
        )


def explained(store: ResultsStore, commit: int, test: str = TEST) -> Explanation:
    (explanation,) = store.read(explain_test, ABOUT, sha(commit), test)
    return explanation


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("letters", "of_class"),
    [
        ("PPP", ResultClass.PASSED),
        ("PPF", ResultClass.NEW_FAILURE),
        ("PFF", ResultClass.REGRESSION),
        ("PSFFF", ResultClass.REGRESSION),
        ("P-FF", ResultClass.REGRESSION),
        ("PFSF", ResultClass.NEW_FAILURE),
        ("FFF", ResultClass.NEVER_PASSED),
        ("--FF", ResultClass.NEVER_PASSED),
        ("F", ResultClass.UNJUDGED),
        ("P~PF", ResultClass.KNOWN_FLAKY),
        ("P~PFF", ResultClass.KNOWN_FLAKY),
        ("P~PFFF", ResultClass.REGRESSION),
        ("PFPFPF", ResultClass.NEW_FAILURE),
        ("PF~", ResultClass.FLAKY),
        ("PFP", ResultClass.FIXED),
        ("PPS", ResultClass.NEWLY_SKIPPED),
        ("PSS", ResultClass.SKIPPED),
        ("-P", ResultClass.ADDED),
        ("P-", ResultClass.REMOVED),
        ("P--", ResultClass.ABSENT),
    ],
)
def test_the_class_follows_from_the_results_of_the_runs(
    sqlite: ResultsStore, letters: str, of_class: ResultClass
) -> None:
    store_story(sqlite, letters)
    assert explained(sqlite, len(letters)).of_class is of_class


def test_the_runs_the_baseline_and_the_beginning_are_named(store: ResultsStore) -> None:
    store_story(store, "PPFSFF")
    explanation = explained(store, 6)
    assert [(run.sha, run.status and run.status.value) for run in explanation.runs] == [
        (sha(6), "failed"),
        (sha(5), "failed"),
        (sha(4), "skipped"),
        (sha(3), "failed"),
        (sha(2), "passed"),
        (sha(1), "passed"),
    ]
    assert (explanation.since, explanation.good) == (sha(3), sha(2))
    assert explanation.baseline is not None
    assert explanation.baseline.sha == sha(5)


def test_a_run_without_usable_results_does_not_count_and_says_why(sqlite: ResultsStore) -> None:
    store_story(sqlite, "PF")
    broken = Upload(3, dict.fromkeys([TEST, *OTHERS], "skipped"))
    sqlite.put(broken.run, broken.columns)
    last = Upload(4, OTHERS | {TEST: "failed"})
    sqlite.put(last.run, last.columns)
    explanation = explained(sqlite, 4)
    assert explanation.of_class is ResultClass.REGRESSION
    assert [(run.left_out.value, bool(run.reason)) for run in explanation.runs] == [
        ("", False),
        ("unusable", True),
        ("", False),
        ("", False),
    ]


def test_a_failure_at_the_head_of_a_pull_request_is_no_regression(sqlite: ResultsStore) -> None:
    store_story(sqlite, "PF")
    head = Upload(3, OTHERS | {TEST: "failed"}, mainline=False, pull_request=7)
    sqlite.put(head.run, head.columns)
    sqlite.write(learn, REPOSITORY, [Relation(sha(3), sha(2), is_ancestor=True, url="/commit/2")])
    explanation = explained(sqlite, 3)
    assert (explanation.of_class, explanation.since) == (ResultClass.STILL_FAILING, "")
    assert explanation.runs[0].left_out.value == "pull request"


def test_messages_are_listed_with_the_end_of_the_failure(store: ResultsStore) -> None:
    store_story(store, "PFFP")
    failure = Failure(SUITE, TEST, sha(2), sha(1))
    store.write(store_reports, ABOUT, sha(3), store.clock(), [failure], {})
    assert [
        (failure_message.since, failure_message.good, failure_message.reported_in, failure_message.ended)
        for failure_message in explained(store, 3).messages
    ] == [(sha(2), sha(1), sha(3), "")]
    store.write(store_reports, ABOUT, sha(4), store.clock(), [], {"recovered": [failure]})
    (message,) = explained(store, 4).messages
    assert (message.ended, message.ended_in) == ("recovered", sha(4))
    assert explained(store, 4, "test_ok_1").messages == ()


def test_the_old_name_of_a_renamed_test_is_shown(sqlite: ResultsStore) -> None:
    old_tests = {f"a/test_x.py::test_{number}": "failed" if not number else "passed" for number in range(20)}
    new_tests = {name.replace("a/", "b/"): status for name, status in old_tests.items()}
    for number, tests in enumerate((old_tests, old_tests, new_tests), 1):
        upload = Upload(number, tests)
        sqlite.put(upload.run, upload.columns)
        sqlite.write(learn, REPOSITORY, [Relation(sha(number), sha(number - 1), is_ancestor=True, url="")])
    explanation = explained(sqlite, 3, "b/test_x.py::test_0")
    assert (explanation.of_class, explanation.renamed_from) == (ResultClass.NEVER_PASSED, "a/test_x.py::test_0")
    assert [run.name for run in explanation.runs] == ["b/test_x.py::test_0", *["a/test_x.py::test_0"] * 2]


@pytest.fixture
def two_targets(sqlite: ResultsStore) -> ResultsStore:
    for repository in (REPOSITORY, "octocat/other"):
        for target in (TARGET, "hexagon") if repository == REPOSITORY else (TARGET,):
            upload = Upload(1, OTHERS, repository=repository, target=target)
            sqlite.put(upload.run, upload.columns)
    return sqlite


@pytest.mark.parametrize(
    ("repository", "name", "problem"),
    [
        (None, "adreno", "adreno is not LAB/TARGET, as in example-lab/adreno"),
        (None, "a/b/c", "a/b/c is not LAB/TARGET, as in example-lab/adreno"),
        (
            None,
            "example-lab/adreno",
            "example-lab/adreno has results for octocat/compiler, octocat/other; add --repo OWNER/NAME",
        ),
        (
            "octocat/compiler",
            "example-lab/mali",
            "no results for example-lab/mali are stored; stored: example-lab/adreno, example-lab/hexagon",
        ),
        (
            "octocat/none",
            "example-lab/adreno",
            "no results for octocat/none are stored; stored: octocat/compiler, octocat/other",
        ),
    ],
)
def test_an_unknown_target_is_answered_with_the_existing_ones(
    two_targets: ResultsStore, repository: str | None, name: str, problem: str
) -> None:
    with pytest.raises(UserError) as error:
        two_targets.read(find_target, repository, name)
    assert str(error.value) == problem


def test_a_target_in_a_single_repository_needs_no_repository(two_targets: ResultsStore) -> None:
    assert two_targets.read(find_target, None, "example-lab/hexagon") == TargetKey(REPOSITORY, LAB, "hexagon")
    target = two_targets.read(find_target, "Octocat/Other", f"{LAB}/{TARGET}")
    assert target.repository == "octocat/other"


def test_the_beginning_of_a_sha_is_enough_unless_it_is_ambiguous(store: ResultsStore) -> None:
    store_story(store, "PP")
    shas: Mapping[int, str] = {number: sha(number) for number in (1, 2)}
    assert store.read(find_commit, ABOUT, shas[1]) == shas[1]
    with pytest.raises(UserError, match="several commits of example-lab/adreno begin with 0000"):
        store.read(find_commit, ABOUT, "0000")
    with pytest.raises(UserError, match=f"are stored at ffff; its newest commits: {shas[2][:10]}, "):
        store.read(find_commit, ABOUT, "ffff")


def test_an_unknown_test_is_answered_with_similar_names(sqlite: ResultsStore) -> None:
    store_story(sqlite, "P", test="tests/te/test_tile.py::test_tile[int8]")
    with pytest.raises(UserError) as error:
        sqlite.read(explain_test, ABOUT, sha(1), "test_tile.py::test_tile")
    unknown = "no run of example-lab/adreno has a test test_tile.py::test_tile"
    assert str(error.value).startswith(f"{unknown}; similar: tests/te/test_tile.py::test_tile[int8]")
    with pytest.raises(UserError, match="has a test 日本, or one of a similar name"):
        sqlite.read(explain_test, ABOUT, sha(1), "日本")


def test_a_test_in_two_suites_is_explained_in_each(sqlite: ResultsStore) -> None:
    for suite in ("one", "two"):
        upload = Upload(1, OTHERS, suite=suite, run_id=suite)
        sqlite.put(upload.run, upload.columns)
    assert [suite_explanation.suite for suite_explanation in sqlite.read(explain_test, ABOUT, sha(1), "test_ok_1")] == [
        "one",
        "two",
    ]


def test_unreliable_results_of_the_suite_are_mentioned(sqlite: ResultsStore) -> None:
    for number in range(1, 7):
        flips = {f"test_{n}": "failed" if (n + number) % 2 else "passed" for n in range(12)}
        upload = Upload(number, OTHERS | flips)
        sqlite.put(upload.run, upload.columns)
    explanation = explained(sqlite, 6, "test_1")
    assert (explanation.health.since, explanation.health.newest) == (sha(3), RunFlips(sha(6), 12, 17))
    assert not explained(sqlite, 4, "test_1").health.unreliable
    health = [line for line in explanation_lines(explanation, 1) if line.startswith("Health")]
    assert health == [
        f"Health     unreliable since {sha(3)[:10]}: 12 of 17 tests flipped between passed and failed, then back, in "
        f"{sha(6)[:10]}. Single failures are not reported until 5 nightly runs in a row are stable; 0 so far."
    ]
    assert explanation_json(explanation)["unreliable_since"] == sha(3)
    assert not any(line.startswith("Health") for line in explanation_lines(explained(sqlite, 4, "test_1"), 1))
