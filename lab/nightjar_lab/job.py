"""Read a job that the bot hands out: every value is checked before it becomes a path or an option."""

from __future__ import annotations

import re  # noqa: TID251
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from nightjar_formats.model import FULL_SHA, RUN_NAME
from nightjar_lab.api import BotAnswer, seconds_until

# Each of them is one class of characters with a bound: they cannot backtrack.
MOST_REPEATS = 100
"""The most times that the agent runs the tests of a job at each commit."""
SHA = re.compile(FULL_SHA)  # noqa: TID251
NAME = re.compile(RUN_NAME)  # noqa: TID251
FOLDER = re.compile(r"[A-Za-z0-9._%/-]{1,900}/")  # noqa: TID251
CLONE = re.compile(r"(?:https|ssh)://[A-Za-z0-9][A-Za-z0-9._~:/@-]{0,500}")  # noqa: TID251
LOCAL = re.compile(r"(?:file:///|http://(?:127\.0\.0\.1|localhost)[:/])[A-Za-z0-9._~:/-]{0,500}")  # noqa: TID251


class UnusableJob(Exception):
    """The agent cannot do this job; the text is the reason."""


@dataclass(frozen=True)
class LabJob:
    """One job: the test may take `seconds`. `pull_request` is None for a commit of a branch.

    `tests` are the IDs of the only tests to run, each `repeat` times at each commit; empty for all tests, once.
    `base_sha` is the commit to which they are compared, or empty.
    """

    id: str
    lease: str
    lease_seconds: float
    seconds: float
    repository: str
    sha: str
    pull_request: int | None
    target: str
    suites: tuple[str, ...]
    attempt: int
    run_id: str
    prefix: str
    clone_url: str
    requester: str
    upload: Mapping[str, Any] | None
    tests: tuple[str, ...] = ()
    repeat: int = 1
    base_sha: str = ""
    precision: float = 0.0
    """For a benchmark, half the width at which an interval is narrow enough, as a share of the ratio; else 0."""
    benchmark_seconds: float = 0.0

    @staticmethod
    def of(answer: BotAnswer) -> LabJob:
        """Read a job. Raises `UnusableJob`."""
        body = answer.body
        benchmark = body.get("benchmark") or {}
        try:
            requester = (
                f"{body['requested_by']}, approved by {body['approved_by']}" if body.get("approved_by") else None
            )
            return LabJob(
                id=str(body["job"]),
                lease=str(body["lease"]),
                lease_seconds=seconds_until(body["lease_expires_at"], answer.bot_time),
                seconds=seconds_until(body["deadline"], answer.bot_time),
                repository=str(body["repository"]),
                sha=str(body["sha"]),
                pull_request=None if body["pull_request"] is None else int(body["pull_request"]),
                target=str(body["target"]),
                suites=tuple(map(str, body["suites"])),
                attempt=int(body["attempt"]),
                run_id=str(body["run_id"]),
                prefix=str(body["prefix"]),
                clone_url=str(body["clone_url"]),
                requester=requester or str(body["requested_by"]),
                upload=body.get("upload"),
                tests=tuple(map(str, body.get("tests") or ())),
                repeat=max(1, min(MOST_REPEATS, int(body.get("repeat") or 1))),
                base_sha=str(body.get("base_sha") or ""),
                precision=float(benchmark["precision"]) if benchmark else 0.0,
                benchmark_seconds=float(benchmark["seconds"]) if benchmark else 0.0,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UnusableJob(f"{type(error).__name__} {error}") from None

    def check(self, targets: Collection[str], clone_url: str | None) -> None:
        """Raise `UnusableJob` for a job with unsafe or unknown values; `clone_url` is the lab's own mirror."""
        for field_name, text, form in (
            ("sha", self.sha, SHA),
            ("base_sha", self.base_sha or self.sha, SHA),
            ("run_id", self.run_id, NAME),
            ("prefix", self.prefix, FOLDER),
        ):
            if not form.fullmatch(text):
                raise UnusableJob(field_name)
        # They are written one a line. An empty list would mean all tests.
        if any(not test or "\n" in test or "\r" in test for test in self.tests):
            raise UnusableJob("tests")
        if self.target not in targets:
            raise UnusableJob("target")
        if clone_url is None and not (CLONE.fullmatch(self.clone_url) or LOCAL.fullmatch(self.clone_url)):
            raise UnusableJob("clone_url")
