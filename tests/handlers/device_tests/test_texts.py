"""The texts about device jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.github.check_runs import COMPLETED, IN_PROGRESS, NEUTRAL, QUEUED
from handlers.device_tests import texts, transitions
from handlers.device_tests.model import DeviceJob, FewTests, JobEnd, ShownStep
from handlers.device_tests.queue import QueuePlace
from handlers.device_tests.texts import place_text, status_row, step_content, time_text
from tests.gfm import rendered
from tests.handlers.device_tests.cases import NOW, leased, queued

HOSTILE = "@octocat ``` </details> [x](https://evil.example) \n# heading"
TEST_COMMAND = "@ci test on hexagon-v73"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1 minute"),
        (89, "1 minute"),
        (40 * 60, "40 minutes"),
        (100 * 60, "100 minutes"),
        (3 * 3600, "3 hours"),
        (3 * 86_400, "3 days"),
    ],
)
def test_a_duration_is_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (None, "next in line"),
        (QueuePlace(0, 0), "next in line"),
        (QueuePlace(1, 0), "1 test before it"),
        (QueuePlace(3, 2400), "3 tests before it; starts in about 40 minutes"),
    ],
)
def test_the_place_in_the_queue_and_the_expected_start_are_given(place: QueuePlace | None, text: str) -> None:
    assert place_text(place) == text


def test_each_step_has_its_own_text() -> None:
    waiting = step_content(queued(), QueuePlace(1, 600), (), TEST_COMMAND)
    assert (waiting.status, waiting.title) == (QUEUED, "Queued: 1 test before it; starts in about 10 minutes")
    running = step_content(replace(leased(), note="1 of 3"), None, (), TEST_COMMAND)
    assert (running.status, running.title) == (IN_PROGRESS, "Running, attempt 1 of 3")


@pytest.mark.parametrize("end", [end for end in JobEnd if end is not JobEnd.NONE])
def test_every_end_is_neutral_and_says_why_and_what_to_do(end: JobEnd) -> None:
    job = replace(queued(), shown=ShownStep.QUEUED)
    job = transitions.cancel(job, end, NOW)
    content = step_content(job, None, ("@example-lab-ci",), TEST_COMMAND)
    assert (content.status, content.conclusion) == (COMPLETED, NEUTRAL)
    assert (content.title, content.summary.startswith(texts.ENDS[end])) == (texts.END_TITLES[end], True)
    assert "`@ci test on hexagon-v73`" in content.summary
    assert status_row(job, None, NOW, "").startswith("- `example-lab/hexagon-v73`: ")


@pytest.mark.parametrize(("repeat", "times"), [(1, "once"), (2, "2 times")])
def test_a_job_for_one_test_says_how_often_it_runs(repeat: int, times: str) -> None:
    job = replace(leased(), few_tests=FewTests(("t.py::test_a",), repeat))
    assert status_row(job, None, NOW, "").startswith(f"- `example-lab/hexagon-v73`: `t.py::test_a` {times}: ")


@pytest.mark.parametrize("job", [leased(note=HOSTILE), transitions.fail(leased(), "digest", HOSTILE, NOW)])
def test_text_from_a_lab_is_escaped(job: DeviceJob) -> None:
    job = replace(job, note=HOSTILE, log_url="https://lab.example.org", shown=ShownStep.RUNNING)
    for text in (step_content(job, None, (), TEST_COMMAND).summary, status_row(job, None, NOW, "")):
        page = rendered(text)
        assert "<h1>" not in page
        assert "<a " not in page
        assert "</details>" not in page
        assert not any("@octocat" in part.split("</code>")[-1] for part in page.split("<code>"))
