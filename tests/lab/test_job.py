"""A job that the bot hands out, as the lab reads it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from nightjar_lab.api import BotAnswer
from nightjar_lab.job import MOST_REPEATS, LabJob, UnusableJob

NOON = 1_779_364_800.0
"""2026-05-21T12:00:00Z."""
SHA, BASE = "0" * 40, "f" * 40
BODY = {
    "job": "one",
    "lease": "a",
    "lease_expires_at": "2026-05-21T12:01:30Z",
    "deadline": "2026-05-21T13:00:00+00:00",
    "repository": "octocat/compiler",
    "sha": SHA,
    "pull_request": 7,
    "target": "rpi-4",
    "suites": ["ops", "models"],
    "attempt": 2,
    "run_id": "one-2",
    "prefix": f"results/octocat/compiler/example-lab/rpi-4/{SHA}/one-2/",
    "clone_url": "https://github.com/octocat/compiler",
    "requested_by": "hubot",
}
JOB = LabJob(
    id="one",
    lease="a",
    lease_seconds=90.0,
    seconds=3600.0,
    repository="octocat/compiler",
    sha=SHA,
    pull_request=7,
    target="rpi-4",
    suites=("ops", "models"),
    attempt=2,
    run_id="one-2",
    prefix=f"results/octocat/compiler/example-lab/rpi-4/{SHA}/one-2/",
    clone_url="https://github.com/octocat/compiler",
    requester="hubot",
    upload=None,
)


def job_of(**changed: Any) -> LabJob:
    """Return the job that the lab reads when the bot's answer has these values, too."""
    return LabJob.of(BotAnswer(200, BODY | changed, NOON))


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({}, {}),
        ({"pull_request": None}, {"pull_request": None}),
        ({"approved_by": "octocat"}, {"requester": "hubot, approved by octocat"}),
        ({"approved_by": None}, {}),
        ({"upload": {"max_bytes": 1000}}, {"upload": {"max_bytes": 1000}}),
        ({"tests": ["a.py::b", "c"]}, {"tests": ("a.py::b", "c")}),
        ({"tests": None}, {}),
        ({"repeat": 5}, {"repeat": 5}),
        ({"repeat": None}, {}),
        ({"repeat": -1}, {"repeat": 1}),
        ({"repeat": MOST_REPEATS + 1}, {"repeat": MOST_REPEATS}),
        ({"base_sha": BASE}, {"base_sha": BASE}),
        ({"base_sha": None}, {}),
        (
            {"benchmark": {"precision": 0.02, "seconds": 600}},
            {"precision": 0.02, "benchmark_seconds": 600.0},
        ),
        ({"benchmark": None}, {}),
        ({"deadline": "tomorrow"}, {"seconds": 0.0}),
    ],
)
def test_a_lab_reads_every_value_of_a_job(sent: dict[str, Any], read: dict[str, Any]) -> None:
    assert job_of(**sent) == replace(JOB, **read)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"attempt": "first"}, "ValueError invalid literal for int() with base 10: 'first'"),
        ({"suites": None}, "TypeError 'NoneType' object is not iterable"),
        ({"benchmark": {"seconds": 600}}, "KeyError 'precision'"),
    ],
)
def test_a_job_that_cannot_be_read_is_refused_with_the_reason(sent: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusableJob) as refusal:
        job_of(**sent)
    assert str(refusal.value) == reason


@pytest.mark.parametrize("key", BODY)
def test_a_job_that_lacks_a_value_is_refused_by_its_name(key: str) -> None:
    with pytest.raises(UnusableJob, match=f"^KeyError '{key}'$"):
        LabJob.of(BotAnswer(200, {name: value for name, value in BODY.items() if name != key}, NOON))


@pytest.mark.parametrize(
    ("changed", "targets", "mirror", "reason"),
    [
        ({}, ["rpi-4"], None, ""),
        ({"base_sha": BASE}, ["rpi-3", "rpi-4"], None, ""),
        ({"sha": "0" * 39}, ["rpi-4"], None, "sha"),
        ({"base_sha": "main"}, ["rpi-4"], None, "base_sha"),
        ({"run_id": "../one"}, ["rpi-4"], None, "run_id"),
        ({"prefix": "results"}, ["rpi-4"], None, "prefix"),
        ({"tests": ["t.py::test_a[\u2028]"]}, ["rpi-4"], None, ""),
        ({"tests": ["a", ""]}, ["rpi-4"], None, "tests"),
        ({"tests": ["a\nb"]}, ["rpi-4"], None, "tests"),
        ({"tests": ["a\r"]}, ["rpi-4"], None, "tests"),
        ({}, ["rpi-3"], None, "target"),
        ({"clone_url": "http://127.0.0.1:3000/octocat/compiler"}, ["rpi-4"], None, ""),
        ({"clone_url": "--upload-pack=sh"}, ["rpi-4"], None, "clone_url"),
        ({"clone_url": "--upload-pack=sh"}, ["rpi-4"], "/mirror.git", ""),
    ],
)
def test_a_job_with_an_unsafe_or_unknown_value_is_refused_by_the_name_of_the_value(
    changed: dict[str, Any], targets: Collection[str], mirror: str | None, reason: str
) -> None:
    with pytest.raises(UnusableJob, match=f"^{reason}$") if reason else nullcontext():
        job_of(**changed).check(targets, mirror)
