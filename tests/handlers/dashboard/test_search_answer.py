"""The first sentence of the page of a search, its next steps and its chart, each as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.web.answers import AnswerPart
from handlers.dashboard.searches.answer import culprit_answer, culprit_steps
from handlers.dashboard.searches.chart import BOTTOM, LEFT, MOST_BARS, RIGHT, RangeBar, RangeChart, RunMark
from handlers.dashboard.searches.model import CulpritCommit, CulpritDraft, CulpritPage, CulpritRun

MOMENT = datetime(2026, 11, 20, 5, 30, tzinfo=UTC)
GITHUB = "https://github.com/octocat/compiler"
FIRST, SECOND, GOOD = "a" * 40, "b" * 40, "9" * 40
TARGET = "example-lab/adreno"


def run(number: int, position: int, failed: int = 0, passed: int = 0, target: str = TARGET) -> CulpritRun:
    return CulpritRun(
        number=number,
        position=position,
        sha=GOOD,
        target=target,
        state="results",
        repeat=3,
        failed=failed,
        passed=passed,
        seconds=1.0,
        asked_at=MOMENT,
        ended_at=None,
        log_url="",
    )


def page(outcome: str = "", **changes: Any) -> CulpritPage:
    """Return the page of a search in two commits, the second of which has a pull request."""
    commits = [
        CulpritCommit(position=1, sha=FIRST, title="Speed up", author="hubot", pull_request=None, probability=0.2),
        CulpritCommit(position=2, sha=SECOND, title="", author="", pull_request=7, probability=0.7),
    ]
    page = CulpritPage(
        id="s1",
        suite="tests",
        tests=["test_softmax"],
        targets=[TARGET],
        good=GOOD,
        bad=SECOND,
        began_at=MOMENT,
        ended_at=None,
        outcome=outcome,
        probability=0.7,
        first=2,
        last=2,
        commits=commits,
        environment=0.06,
        not_repeated=0.04,
        runs=[run(1, 0, passed=3), run(2, 2, failed=3)],
        device_seconds=2.0,
        runs_left=8,
        most_runs=10,
        next=[],
        more_targets=0,
        issue=None,
        revert=None,
    )
    return page.model_copy(update=changes)


def markdown(parts: Sequence[AnswerPart]) -> str:
    return "".join(f"[{part.text}]({part.href})" if part.href else part.text for part in parts)


@pytest.mark.parametrize(
    ("searched", "words"),
    [
        (page(), "Searching: 2 runs of at most 10 so far, and 2 commits of 2 left (99 %); nothing is certain yet."),
        (
            page(runs=[run(1, 2, failed=3)]),
            "Searching: 1 run of at most 10 so far, first at both ends of the range; nothing is certain yet.",
        ),
        (
            page("culprit"),
            f"Began with [bbbbbbbbbb (#7)]({GITHUB}/commit/{SECOND}) (70.0 %); this rests on one target.",
        ),
        (
            page("culprit", runs=[run(1, 0, passed=1), run(2, 2, failed=1, target="example-lab/mali"), run(3, 1)]),
            f"Began with [bbbbbbbbbb (#7)]({GITHUB}/commit/{SECOND}) (70.0 %); this rests on 2 targets.",
        ),
        (
            page("environment"),
            "No commit is the cause (70.0 %): the device, the lab or its environment changed; the tests fail at "
            "9999999999 too, where they passed before.",
        ),
        (
            page("environment", measurement="latency"),
            "No commit is the cause (70.0 %): the device, the lab or its environment changed; the new level is "
            "measured at 9999999999 too, where it was as before.",
        ),
        (page("not repeated"), "Cannot tell: the tests do not fail at bbbbbbbbbb any more (70.0 %)."),
        (
            page("not repeated", measurement="latency"),
            "Cannot tell: the new level is not measured at bbbbbbbbbb any more (70.0 %).",
        ),
        (
            page("range", first=1),
            f"Cannot tell which commit: it is one of 2 commits (70.0 %), from [Speed up, by hubot]({GITHUB}/commit/"
            f"{FIRST}) to [bbbbbbbbbb (#7)]({GITHUB}/commit/{SECOND}).",
        ),
        (
            page("budget"),
            "Cannot tell: the search ended after 2 runs. If a commit is the cause, it is one of 1 commit (70.0 %), "
            f"from [bbbbbbbbbb (#7)]({GITHUB}/commit/{SECOND}) to [bbbbbbbbbb (#7)]({GITHUB}/commit/{SECOND}).",
        ),
    ],
)
def test_the_first_sentence(searched: CulpritPage, words: str) -> None:
    assert markdown(culprit_answer(searched, GITHUB)) == words


def test_commits_that_together_have_the_culprit_for_certain_are_left() -> None:
    [first, second] = page().commits
    likely = [first.model_copy(update={"probability": 0.001}), second]
    assert " 1 commit of 2 left (99 %)" in markdown(culprit_answer(page(commits=likely), GITHUB))


def steps(searched: CulpritPage) -> list[str]:
    return [markdown(step) for step in culprit_steps(searched, "octocat/compiler", GITHUB, "@ci")]


def test_the_next_steps() -> None:
    read = f"Maintainer: [read the change]({GITHUB}/pull/7)"
    repeat = 'Contributor: to {} on the device, comment @ci {} "test_softmax" on example-lab/adreno on a pull request'
    assert steps(page("culprit")) == [read, repeat.format("run the test", "reproduce")]
    assert steps(page("culprit", measurement="latency", first=1, issue=3)) == [
        f"Maintainer: [read the change]({GITHUB}/commit/{FIRST})",
        repeat.format("measure it", "benchmark"),
        f"Maintainer: [read the issue about it]({GITHUB}/issues/3)",
    ]
    draft = CulpritDraft(stage="opened", words="", pull_request=8, sha="")
    review = f"Maintainer: [review the draft that reverts it]({GITHUB}/pull/8)"
    assert steps(page("culprit", revert=draft)) == [read, review, repeat.format("run the test", "reproduce")]
    for other in (draft.model_copy(update={"stage": "exists"}), draft.model_copy(update={"pull_request": None})):
        assert review not in steps(page("culprit", revert=other))
    assert steps(page("environment")) == [
        "Lab: [what changed on example-lab/adreno?](/r/octocat/compiler/labs/example-lab)"
    ]
    assert steps(page("range", first=1)) == [
        f"Maintainer: [read the commits that are left]({GITHUB}/compare/{GOOD}...{SECOND})"
    ]
    assert steps(page("budget")) == [
        f"Maintainer: [read the commits that are left]({GITHUB}/compare/{FIRST}...{SECOND})"
    ]
    assert steps(page("not repeated", first=0)) == []


def test_a_chart_has_its_bars_runs_and_words_where_they_belong() -> None:
    bars = [RangeBar(0.25, "one", "#1"), RangeBar(0.5, "two", "#2", is_named=True)]
    marks = [RunMark(0, TARGET, "passed", "run 1", "#run1")]
    marks += [RunMark(2, TARGET, kind, f"run {kind}", "#run") for kind in ("failed", "mixed", "no results", "lost")]
    marks += [RunMark(1, "example-lab/mali", "waiting", "run 3", "#run3")]
    chart = RangeChart(bars, [RangeBar(0.0, "lab", "#causes"), RangeBar(0.25, "luck", "#causes")],
                       [TARGET, "example-lab/mali", "example-lab/idle"], marks).svg()  # fmt: skip
    assert re.findall(r'<rect class="(bar.*?)" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"', chart) == [
        ("bar", "259.0", "124.0", "36", "30.0"),
        ("bar named", "421.0", "94.0", "36", "60.0"),
        ("bar", "560.0", "152.5", "24", "1.5"),
        ("bar", "596.0", "124.0", "24", "30.0"),
    ]
    assert re.findall(r'<text x="(.*?)" y="(.*?)" text-anchor="(.*?)">(.*?)<', chart) == [
        ("30", "158.0", "end", "0%"),
        ("30", "98.0", "end", "50%"),
        ("30", "38.0", "end", "100%"),
        ("115.0", "166", "middle", "before the range"),
        ("277.0", "166", "middle", "oldest commit"),
        ("439.0", "166", "middle", "newest commit"),
        ("550", "166", "start", "not a commit"),
        ("34", "178", "start", "example-lab/adreno"),
        ("34", "242", "start", "example-lab/mali"),
        ("34", "273", "start", "example-lab/idle"),
    ]
    assert re.findall(r'<line .*?x1="(.*?)" x2="(.*?)" y1="(.*?)" y2="(.*?)"', chart) == [
        ("34", "640", height, height) for height in ("154.0", "94.0", "34.0")
    ]
    assert re.findall(r'<\w+ class="(run [^c].*?)" (.*?)/>', chart) == [
        ("run passed", 'cx="115.0" cy="186" r="4"'),
        ("run failed", 'x="435.0" y="182" width="8" height="8"'),
        ("run mixed", 'd="M439.0 193l4.5 4.5-4.5 4.5-4.5-4.5z"'),
        ("run none", 'd="M435.0 204l8 8m0-8l-8 8"'),
        ("run none", 'd="M435.0 219h8"'),
        ("run waiting", 'cx="277.0" cy="250" r="4"'),
    ]
    assert 'width="640" height="298" viewBox="0 0 640 298"' in chart
    assert "Probability of each of 2 commits, and of other causes; below, 6 runs" in chart
    assert '<a href="#2" aria-label="two"><rect class="bar named"' in chart
    assert '<text class="tip" x="2" y="12">two</text>' in chart


def test_many_commits_share_bars() -> None:
    bars = [RangeBar(0.002, f"commit {number}", f"#{number}") for number in range(MOST_BARS + 1)]
    bars[3] = RangeBar(0.1, "commit 3", "#3", is_named=True)
    chart = RangeChart(
        bars, [], [TARGET], [RunMark(position, TARGET, "lost", "", "") for position in (0, 1, 2, 3)]
    ).svg()
    assert re.findall(r'<text x="([^"]*)" y="166" text-anchor="(.*?)">(.*?)<', chart)[:2] == [
        (str(LEFT), "start", "oldest commit"),
        (str(RIGHT), "end", "newest commit"),
    ]
    labels = re.findall(r'<a href="(.*?)" aria-label="(.*?)"><rect', chart)
    assert labels[:2] == [
        ("#commits", "2 commits, 0.4 % together; the first is commit 0"),
        ("#commits", "2 commits, 10.2 % together; the first is commit 2"),
    ]
    assert labels[-1] == (f"#{MOST_BARS}", f"commit {MOST_BARS}")
    assert [chart.count('class="bar"'), chart.count('class="bar named"')] == [60, 1]
    width = (RIGHT - LEFT) / 62
    places = [float(place) for place in re.findall(r'd="M([\d.]+) [\d.]+h8', chart)]
    assert places == [round(LEFT + width * (slot + 0.5) - 4, 1) for slot in (0, 1, 1, 2)]
    [first, *_] = re.findall(r'<rect class="bar" x="(.*?)" y="(.*?)" width="(.*?)"', chart)
    assert first == (str(round(LEFT + width * 1.5 - 0.42 * width, 1)), str(BOTTOM - 1.5), str(round(0.84 * width, 1)))
