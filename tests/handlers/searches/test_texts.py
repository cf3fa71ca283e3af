"""What people read about a search: its answer, its section of the issue, and the comment on the culprit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.results.culprit.posterior import Posterior, SearchRun
from bot.results.culprit.rates import FailureCounts
from bot.results.culprit.search import CERTAIN, SearchOutcome
from bot.results.measurements.levels import MeasuredLevels
from handlers.searches import texts
from handlers.searches.records import (
    AskedRun,
    CulpritSearch,
    SearchAnswer,
    SearchedCommit,
    SearchRequest,
    SearchRunState,
)
from tests.handlers.device_tests.cases import NOW

TARGET = "example-lab/hexagon-v73"
COMMITS = tuple(SearchedCommit(f"{number}" * 40, f"Change {number}\r") for number in range(1, 5))
RESULTS, SILENT = SearchRunState.RESULTS, SearchRunState.NO_RESULTS
RUNS = (
    AskedRun(
        1, 4, TARGET, 3, NOW, RESULTS, counts={"a": (3, 0), "b": (2, 1)}, seconds=30.0, log_url="https://example.org/l"
    ),
    AskedRun(2, 0, TARGET, 3, NOW, RESULTS, counts={"a": (0, 3), "b": (0, 3)}, seconds=30.0),
    AskedRun(3, 2, TARGET, 3, NOW, RESULTS, counts={"a": (3, 0), "b": (3, 0)}, seconds=30.0, log_url="javascript:1"),
    AskedRun(4, 3, TARGET, 3, NOW, SILENT, seconds=9.0),
    AskedRun(5, 1, TARGET, 3, NOW, SearchRunState.LOST),
    AskedRun(6, 1, TARGET, 3, NOW),
    AskedRun(7, 1, TARGET, 3, NOW, RESULTS, counts={"a": (0, 3), "b": (1, 2)}, seconds=30.0),
)
SEARCH = CulpritSearch(
    SearchRequest("operators", ("a", "b"), (TARGET,), "0" * 40, "4" * 40),
    COMMITS,
    {},
    NOW,
    RUNS,
    SearchAnswer(SearchOutcome.CULPRIT.value, 0.9876, 2, 2, pull=7),
)
LEVELS = MeasuredLevels(412.0, 467.0, "ms")
MEASURED = replace(
    SEARCH,
    request=replace(SEARCH.request, tests=("a",), measurement="latency"),
    runs=(
        replace(RUNS[0], counts={"a": (1, 0)}, value=466.0),
        replace(RUNS[1], counts={"a": (0, 1)}, value=413.5),
    ),
    levels={TARGET: LEVELS},
)

ISSUE = """\
### The change that it began with

**Began with #7 `2222222222` (98.8%): `Change 2`. This rests on one target.**

Tests of `operators`: `a`, `b`. Range: 4 commits after `0000000000`, up to `4444444444`.

Ruled out: 3 commits of the range (0.3% together); the device, the lab or its environment changed (0.0%); the \
failure does not repeat (0.0%).

No results, so nothing is known of: `3333333333`.

Cost: 7 runs, 2.1 device minutes. [The search, step by step](https://example.org/s)

<details><summary>7 runs</summary>

| run | commit | target | outcome | log |
| --- | --- | --- | --- | --- |
| 1 | `4444444444` | `example-lab/hexagon-v73` | failed 5 of 6 | [log](https://example.org/l) |
| 2 | `0000000000` | `example-lab/hexagon-v73` | failed 0 of 6 |  |
| 3 | `2222222222` | `example-lab/hexagon-v73` | failed 6 of 6 |  |
| 4 | `3333333333` | `example-lab/hexagon-v73` | no results |  |
| 5 | `1111111111` | `example-lab/hexagon-v73` | no lab ran it |  |
| 6 | `1111111111` | `example-lab/hexagon-v73` | waits for a device |  |
| 7 | `1111111111` | `example-lab/hexagon-v73` | failed 1 of 6 |  |

</details>"""
ISSUE_OF_MEASUREMENT = """\
### The change that it began with

**Began with #7 `2222222222` (98.8%): `Change 2`. This rests on one target.**

`latency` of `a` of `operators`: `412 -> 467 ms` on `example-lab/hexagon-v73`. Range: 4 commits after `0000000000`, \
up to `4444444444`. A run is at the new level if the median of what it measures is closer to that.

Ruled out: the change does not repeat (0.1%).

Not ruled out: the device, the lab or its environment changed (1.7%).

Cost: 2 runs, 1.0 device minutes. [The search, step by step](https://example.org/s)

<details><summary>2 runs</summary>

| run | commit | target | outcome | log |
| --- | --- | --- | --- | --- |
| 1 | `4444444444` | `example-lab/hexagon-v73` | `466 ms`, new level | [log](https://example.org/l) |
| 2 | `0000000000` | `example-lab/hexagon-v73` | `414 ms`, as before |  |

</details>"""
ISSUE_OF_NEW_SEARCH = """\
### The change that it began with

**0 of at most 40 runs so far; nothing is certain yet.**

Tests of `operators`: `a`, `b`. Range: 4 commits after `0000000000`, up to `4444444444`.

Cost: 0 runs, 0.0 device minutes."""
COMMENT = """\
Since this change, the tests `a`, `b` of `operators` fail on `example-lab/hexagon-v73`, with a probability of 98.8%.

I ran them at 4 commits between `0000000000` and `4444444444`. At `1111111111`, the commit before this one, they \
failed in 1 of 6 runs; at `2222222222`, in 6 of 6.

This rests on one target.

To run a test on the device, comment `@ci reproduce "a" on example-lab/hexagon-v73` on a pull request."""
COMMENT_ON_MEASUREMENT = """\
Since this change, `latency` of the test `a` of `operators` is at a new level, with a probability of 98.8%: `412 -> \
467 ms` on `example-lab/hexagon-v73`.

I measured it at 2 commits between `0000000000` and `4444444444`. At `1111111111`, the commit before this one, 0 of \
0 runs were closer to the new level; at `2222222222`, 0 of 0.

This rests on one target.

To measure it on the device, comment `@ci benchmark "a" on example-lab/hexagon-v73` on a pull request."""


def posterior(search: CulpritSearch) -> Posterior:
    """Return the posterior of a search whose commits are equally likely and whose tests never failed before."""
    runs = [
        SearchRun(run.commit, f"{run.target} {test}", FailureCounts(*counts))
        for run in search.runs
        for test, counts in run.counts.items()
    ]
    return Posterior([0.25] * 4, {run.series: FailureCounts(0, 50) for run in runs}, runs)


def test_the_issue_shows_the_answer_what_is_ruled_out_the_cost_and_each_run() -> None:
    assert texts.issue_section(SEARCH, posterior(SEARCH), 40, "https://example.org/s") == ISSUE
    assert texts.issue_section(SEARCH, posterior(SEARCH), 40) == ISSUE.replace(
        " [The search, step by step](https://example.org/s)", ""
    )


def test_the_issue_shows_levels_and_measured_values() -> None:
    assert texts.issue_section(MEASURED, posterior(MEASURED), 40, "https://example.org/s") == ISSUE_OF_MEASUREMENT


def test_a_search_without_runs_shows_neither_causes_nor_a_table() -> None:
    search = replace(SEARCH, runs=(), answer=None)
    assert texts.issue_section(search, posterior(search), 40) == ISSUE_OF_NEW_SEARCH


def test_runs_of_one_end_rule_out_nothing() -> None:
    search = replace(SEARCH, runs=RUNS[:1])
    assert "uled out" not in texts.issue_section(search, posterior(search), 40)


def test_the_comment_on_the_culprit_has_the_evidence_and_a_command() -> None:
    assert texts.culprit_comment(SEARCH, "@ci") == COMMENT
    two_targets = replace(SEARCH, request=replace(SEARCH.request, targets=(TARGET, "example-lab/adreno")))
    assert texts.culprit_comment(two_targets, "@ci") == COMMENT.replace(
        "on `example-lab/hexagon-v73`, with", "on `example-lab/hexagon-v73`, `example-lab/adreno`, with"
    ).replace("This rests on one target.\n\n", "")
    one_test = replace(SEARCH, request=replace(SEARCH.request, tests=("a",)))
    assert "Since this change, the test `a` of `operators` fails on" in texts.culprit_comment(one_test, "@ci")
    assert texts.culprit_comment(MEASURED, "@ci") == COMMENT_ON_MEASUREMENT


def test_a_comment_that_was_wrong_is_corrected_with_the_new_answer() -> None:
    for search, beginning in ((SEARCH, texts.WITHDRAWN), (MEASURED, texts.WITHDRAWN_CHANGE)):
        assert texts.withdrawn(search) == f"{beginning} {texts.search_sentence(search, 40)}"
    running = replace(SEARCH, answer=None)
    assert texts.withdrawn(running).endswith(" 7 of at most 7 runs so far; nothing is certain yet.")


def test_a_request_and_its_jobs_name_the_range_and_what_is_searched() -> None:
    assert texts.requested(replace(SEARCH.request, targets=(TARGET, "example-lab/adreno"))) == (
        "I search for the change between `0000000000` and `4444444444` on idle devices of `example-lab/hexagon-v73`, "
        "`example-lab/adreno`, and write the answer into this issue."
    )
    assert texts.reason("1a", SEARCH.request) == "search 1a for the commit that broke 2 tests"
    assert texts.reason("1a", MEASURED.request) == "search 1a for the commit that changed latency"
    assert texts.not_started("because") == f"{texts.HEADING}\n\nThe search could not start: because."


@pytest.mark.parametrize(
    ("outcome", "probability", "sentence", "of_measurement"),
    [
        (
            SearchOutcome.CULPRIT,
            1.0,
            "Began with `2222222222` (99.9%): `Change 2`. This rests on one target.",
            "Began with `2222222222` (99.9%): `Change 2`. This rests on one target.",
        ),
        (
            SearchOutcome.ENVIRONMENT,
            CERTAIN,
            "No commit is the cause (99.0%): the tests fail at 0000000000 too, where they passed before. The device, "
            "the lab or its environment changed.",
            "No commit is the cause (99.0%): the new level is measured at 0000000000 too, where it was as before. The "
            "device, the lab or its environment changed.",
        ),
        (
            SearchOutcome.ENVIRONMENT,
            0.8,
            "Probably no commit is the cause (80.0%): the tests seem to fail at 0000000000 too, where they passed "
            "before. The runs of the search are used up.",
            "Probably no commit is the cause (80.0%): the new level seems to be measured at 0000000000 too, where it "
            "was as before. The runs of the search are used up.",
        ),
        (
            SearchOutcome.NOT_REPEATED,
            0.8,
            "Cannot tell: the tests do not fail at 4444444444 any more (80.0%).",
            "Cannot tell: the new level is not measured at 4444444444 any more (80.0%).",
        ),
        (
            SearchOutcome.RANGE,
            0.8,
            "Cannot tell which commit: it is one of 2, from 2222222222 to 3333333333 (80.0%).",
            "Cannot tell which commit: it is one of 2, from 2222222222 to 3333333333 (80.0%).",
        ),
        (
            SearchOutcome.BUDGET,
            0.8,
            "Cannot tell: the search ended after 7 runs. If a commit is the cause, it is one of 2, from 2222222222 to "
            "3333333333 (80.0%).",
            "Cannot tell: the search ended after 2 runs. If a commit is the cause, it is one of 2, from 2222222222 to "
            "3333333333 (80.0%).",
        ),
    ],
)
def test_each_outcome_has_a_sentence(
    outcome: SearchOutcome, probability: float, sentence: str, of_measurement: str
) -> None:
    answer = SearchAnswer(outcome.value, probability, 2, 3)
    assert texts.search_sentence(replace(SEARCH, answer=answer), 40) == sentence
    assert texts.search_sentence(replace(MEASURED, answer=answer), 40) == of_measurement
