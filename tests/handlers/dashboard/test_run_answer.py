"""The sentence with which the page of a run begins, and the next steps below it, as functions of what the page says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from bot.core.page_paths import lab_path, view_path
from bot.results.compare.failure_class import FailureClass
from bot.results.state import RunState
from bot.web.answers import answer_text
from handlers.dashboard.run.answer import run_answer, run_steps
from handlers.dashboard.run.causes import CausedTest, FailureCause
from handlers.dashboard.run.model import RunDetails, SeenRun, SuiteSummary

REPOSITORY, GITHUB = "example-lab/compiler", "https://github.com"
BASE, OTHER_BASE, HEAD = "1" * 40, "2" * 40, "3" * 40
RUN = SeenRun(
    run_id="operators-run-1",
    suite="operators",
    attempt=1,
    shard="",
    state=RunState.STORED,
    reason="",
    received_at=datetime(2026, 11, 20, tzinfo=UTC),
    bytes=100,
)


def suite(name: str = "operators", **values: Any) -> SuiteSummary:
    counts = dict.fromkeys(SuiteSummary.model_fields, 0)
    return SuiteSummary(**{**counts, "suite": name, "baseline": BASE, "infra": "", "missing": "", **values})


def cause(count: int, **values: Any) -> FailureCause:
    numbers = {"new": 0, "known": 0, "unusable": 0, "count": count}
    words = dict.fromkeys(("message", "happened", "output", "place", "reproduce"), "")
    return FailureCause(**{"tests": [], **words, **numbers, **values})


def page(*suites: SuiteSummary, causes: tuple[FailureCause, ...] = (), **values: Any) -> RunDetails:
    details: dict[str, Any] = {
        **{"lab": "pixel", "target": "hexagon", "sha": HEAD, "committed_at": None, "pull_request": None, "run": RUN},
        **{"claims": [], "environment": [], "others": [], "check": None, "suites": list(suites), "missing_suites": []},
        **{"failures": [], "causes": list(causes), "more_causes": 0, "unlisted": 0},
    }
    return RunDetails(**{**details, **values})


def said(details: RunDetails, missing: str = "") -> str:
    return answer_text(run_answer(details, REPOSITORY, missing))


def test_each_failure_is_counted_once_by_what_it_is_compared_with() -> None:
    since = f"since {BASE[:7]}"
    for details, words in (
        (page(suite()), f"No new failure {since}; complete."),
        (page(suite(baseline=None)), "No test failed; complete."),
        (page(suite(baseline=None, unjudged=1)), "1 failure, with nothing to compare with; complete."),
        (page(suite(baseline=None, quarantined=1)), "1 known failure; complete."),
        (page(suite(new_failures=1)), f"1 new failure {since}; complete."),
        (
            page(suite(new_failures=2, still_failing=3, known_flaky=1, quarantined=1)),
            f"2 new failures {since}; 3 still failing; 2 known failures; complete.",
        ),
        (page(suite(), suite("codegen", baseline=OTHER_BASE)), "No new failure; complete."),
        (
            page(suite(new_failures=1), suite("codegen", baseline=OTHER_BASE)),
            f"1 new failure {since}; complete.",
        ),
        (
            page(suite(new_failures=1), suite("codegen", baseline=OTHER_BASE, new_failures=1)),
            "2 new failures; complete.",
        ),
        (page(suite(infra="The device fell off.", new_failures=4)), "No usable results: The device fell off."),
        (
            page(suite(), suite("codegen", infra="The device fell off."), suite("runtime", infra="No tests ran.")),
            f"No new failure {since}; codegen, runtime: no usable results.",
        ),
    ):
        assert said(details) == words, words


def test_what_has_not_arrived_is_named() -> None:
    assert said(page(suite()), "1 of 2 shards") == f"No new failure since {BASE[:7]}; incomplete: 1 of 2 shards."
    waiting = RUN.model_copy(update={"state": RunState.WAITING})
    assert said(page(run=waiting)) == "This run waits for files."
    assert said(page(run=waiting.model_copy(update={"reason": "report.xml"}))) == (
        "This run waits for files: report.xml."
    )


def test_a_number_of_failures_leads_to_the_first_cause_with_such_failures() -> None:
    causes = (cause(2, unusable=2), cause(3, new=1, known=2), cause(2, new=1))
    details = page(suite(new_failures=2, still_failing=1, unjudged=1, known_flaky=2), causes=causes)
    links = {part.text: part.href for part in run_answer(details, REPOSITORY, "")}
    assert links["2 new failures"] == links["2 known failures"] == "#cause2"
    assert links["1 still failing"] == links["1 failure, with nothing to compare with"] == "#cause3"
    assert run_answer(page(suite(new_failures=1)), REPOSITORY, "")[0].href == "#suites", "no cause is listed"


def steps(details: RunDetails) -> list[tuple[str, list[str]]]:
    sentences = run_steps(details, REPOSITORY, GITHUB)
    return [(answer_text(step), [part.href for part in step if part.href]) for step in sentences]


def test_people_learn_what_to_do_about_new_failures_and_missing_results() -> None:
    test = CausedTest(
        suite="operators",
        test="test_a",
        kind=FailureClass.NEW,
        since="",
        since_at=None,
        owner="",
        until="",
        owners=[],
    )
    fails = page(
        suite(new_failures=1),
        causes=(cause(1, known=1, reproduce="run test_0"), cause(1, new=1, tests=[test], reproduce="run test_a")),
    )
    commits = (
        f"Maintainer: read the commits since {BASE[:7]}, or mute test_a",
        [
            f"{GITHUB}/{REPOSITORY}/compare/{BASE}...{HEAD}",
            view_path(REPOSITORY, "mute", id="test_a", target="pixel/hexagon"),
        ],
    )
    reproduce = ("Contributor: to reproduce it, run run test_a", list[str]())
    lab = ("Lab: see what pixel sent, and what is missing", [lab_path(REPOSITORY, "pixel")])
    assert steps(fails) == [commits, reproduce]
    assert steps(fails.model_copy(update={"pull_request": 7})) == [reproduce], "the commits are the pull request's own"
    assert steps(page(suite(new_failures=1))) == [(f"Maintainer: read the commits since {BASE[:7]}", commits[1][:1])]
    assert steps(page(suite(still_failing=1))) == []
    for lacking in (
        page(suite(missing="1 of 2 shards")),
        page(suite(infra="The device fell off.")),
        page(suite(), missing_suites=["codegen"]),
        page(suite(), run=RUN.model_copy(update={"state": RunState.WAITING})),
    ):
        assert steps(lacking) == [lab]
    assert steps(fails.model_copy(update={"missing_suites": ["codegen"]})) == [commits, reproduce, lab]
