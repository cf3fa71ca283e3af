"""A lab in a town: it uploads results to a bucket, and the bot scans the bucket when the test tells it to."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr  # only for writing

from handlers.results.watch import WATCH
from sandbox.model.checks import CheckRun
from tests.bucket import World
from tests.conversations.town import REPOSITORY, Town, town

LAB, TARGET = "example-lab", "hexagon-v73"
CHECK = f"hardware/{LAB}/{TARGET}"
CONFIG = """
repositories:
  {repository}:
    {features}
    results:
      bucket: {bucket}
      settle: {settle}
      deadline: {deadline}
      {queue}
      labs:
        example-lab:
          targets: {targets}
          contacts: ["@example-lab-ci"]
          reproduce: pytest {{test}}
        {more_labs}
"""
TEST_FILE = "tests/python/test_ops.py"
FILES: Mapping[str, str | None] = {TEST_FILE: "def test_add(): ...\n"}


def junit(**verdicts: str) -> bytes:
    """Return a pytest JUnit file with these tests of TEST_FILE: `passed`, `skipped`, or the text of a failure."""
    classname = TEST_FILE.removesuffix(".py").replace("/", ".")
    cases = []
    for name, verdict in verdicts.items():
        inner = {"passed": "", "skipped": '<skipped type="pytest.skip" message="no device">x</skipped>'}.get(verdict)
        if inner is None:
            inner = f"<failure message={quoteattr(verdict)}>{escape(f'{TEST_FILE}:1: {verdict}')}</failure>"
        cases.append(f'<testcase classname="{classname}" name="{name}" time="0.010">{inner}</testcase>')
    body = "".join(cases)
    return f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{body}</testsuite></testsuites>'.encode()


def measured_junit(measured: Mapping[str, str]) -> bytes:
    """Return a pytest JUnit file with measurements of tests of TEST_FILE: name, value, unit, and what is better."""
    classname, cases = TEST_FILE.removesuffix(".py").replace("/", "."), []
    for test, text in measured.items():
        name, _, value = text.partition(" ")
        properties = f'<properties><property name="measurement.{name}" value="{value}"/></properties>'
        cases.append(f'<testcase classname="{classname}" name="{test}" time="0.01">{properties}</testcase>')
    return (
        f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{"".join(cases)}</testsuite></testsuites>'.encode()
    )


@dataclass
class Moments:
    """The bot's clock in a test: it advances by itself and when the test advances it.

    It reads the real clock only once, so changes of the real clock affect no test.
    """

    ahead: float = 0.0
    began: float = field(default_factory=lambda: time.time() - time.monotonic())

    def __call__(self) -> float:
        """Return seconds since 1970."""
        return self.began + time.monotonic() + self.ahead

    def advance_to(self, moment: float) -> None:
        """Set the time, in seconds since 1970."""
        self.ahead += moment - self()


@dataclass
class LabTown:
    """A town whose repository has a nightly branch and a lab."""

    town: Town
    bucket: World
    time: Moments
    repository: str = REPOSITORY
    nightly_runs: int = 0
    runs: int = 0

    def nightly_run(self, files: Mapping[str, str | None] = FILES) -> str:
        """Push one commit to the nightly branch; return its SHA."""
        self.town.github.clock.advance(seconds=20)
        self.nightly_runs += 1
        marker = {"nightly-run.txt": f"nightly run {self.nightly_runs}\n"}
        return self.town.repo.push("nightly", {**files, **marker}, by="octocat").sha

    def upload(
        self,
        sha: str,
        files: Mapping[str, bytes],
        *,
        suite: str = "operators",
        lab: str = LAB,
        target: str = TARGET,
        without: tuple[str, ...] = (),
        manifest: bool = True,
        run_id: str = "",
        **claims: Any,
    ) -> str:
        """Upload a run as a lab does, `without` some of its files; return its folder."""
        self.runs += 1
        folder = f"results/{self.repository}/{lab}/{target}/{sha}/{run_id or f'run-{self.runs}'}/"
        for name, content in files.items():
            if name not in without:
                self.bucket.put(folder + name, content)
        entries = [
            {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        ]
        document = {"schema": 1, "sha": sha, "suite": suite, "files": entries, **claims}
        if manifest:
            self.bucket.put(f"{folder}manifest.json", json.dumps(document).encode())
        return folder

    async def scan(self, later: float = 60.0) -> None:
        """Let some seconds pass, let the bot scan, and wait until it has finished."""
        self.time.ahead += later
        await self.town.bot.services.part(WATCH).tick()
        await self.town.quiet()

    async def settle(self) -> None:
        """Let the bot ingest the uploads and, after a quiet minute, write the pending checks."""
        await self.scan()
        await self.scan()

    def checks(self, sha: str, name: str = CHECK) -> list[CheckRun]:
        """Return every check run ever created with a name on a commit, oldest first."""
        suites = [suite for suite in self.town.repo.suites if suite.head_sha == sha]
        return [run for suite in suites for run in suite.runs if run.name == name]

    def check(self, sha: str) -> CheckRun:
        """Return the one check run on a commit."""
        (run,) = self.checks(sha)
        return run


@asynccontextmanager
async def lab_town(
    database_url: str,
    bucket: World,
    *,
    settle: str = "60s",
    deadline: str = "6h",
    queue: str = "",
    repository: str = REPOSITORY,
    features: str = "",
    more_labs: str = "",
    settings: str = "",
    targets: str = "[hexagon-v73, adreno]",
    **options: Any,
) -> AsyncIterator[LabTown]:
    """Start a town with a lab; the bot scans when a test tells it to.

    `repository` is the name in app.yaml. `features`, `more_labs` and `settings` are further lines of app.yaml: for the
    repository, for its labs, and for the top level.
    """
    bucket.create()
    # Shorter than the time between a test's scans, so that the bot's own timer causes no listing.
    source = f"queue: {queue}" if queue else "poll: 55s"
    config = settings + CONFIG.format(
        repository=repository,
        features=features,
        bucket=bucket.name,
        settle=settle,
        deadline=deadline,
        queue=source,
        more_labs=more_labs,
        targets=targets,
    )
    moments = Moments()
    async with town(database_url, config=config, now=moments, **options) as place:
        place.repo.push("nightly", {**FILES}, by="octocat")
        await place.quiet()
        yield LabTown(place, bucket, moments, repository)
