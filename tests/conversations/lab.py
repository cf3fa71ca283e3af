"""A lab in a town: it uploads what it tested to a bucket, and the bot looks there when the test says so."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape, quoteattr  # it only writes

from handlers.hardware.watch import WATCH
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
    """Return a JUnit file of pytest's with these tests of TEST_FILE: passed, skipped, failed or a failure's text."""
    classname = TEST_FILE.removesuffix(".py").replace("/", ".")
    cases = []
    for name, verdict in verdicts.items():
        inner = {"passed": "", "skipped": '<skipped type="pytest.skip" message="no device">x</skipped>'}.get(verdict)
        if inner is None:
            inner = f"<failure message={quoteattr(verdict)}>{escape(f'{TEST_FILE}:1: {verdict}')}</failure>"
        cases.append(f'<testcase classname="{classname}" name="{name}" time="0.010">{inner}</testcase>')
    body = "".join(cases)
    return f'<?xml version="1.0"?><testsuites><testsuite name="pytest">{body}</testsuite></testsuites>'.encode()


@dataclass
class Moments:
    """The time by which the bot watches: put forward by hand, and going on by itself.

    The real clock is read once, so that nothing depends on what it does during a test.
    """

    ahead: float = 0.0
    began: float = field(default_factory=lambda: time.time() - time.monotonic())

    def __call__(self) -> float:
        """Return seconds since 1970."""
        return self.began + time.monotonic() + self.ahead

    def come_to(self, moment: float) -> None:
        """Put the time forward, or back, to a moment in seconds since 1970."""
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
        """Move the nightly branch on by one commit; returns its SHA."""
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
        **claims: Any,
    ) -> str:
        """Upload a run as a lab does, `without` some of its files; returns its folder."""
        self.runs += 1
        folder = f"results/{self.repository}/{lab}/{target}/{sha}/run-{self.runs}/"
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
        """Let some seconds pass and the bot look around, and wait until it has finished."""
        self.time.ahead += later
        await self.town.bot.services.part(WATCH).tick()
        await self.town.quiet()

    async def settle(self) -> None:
        """Let the bot ingest the uploads and, after a quiet minute, write the scheduled checks."""
        await self.scan()
        await self.scan()

    def checks(self, sha: str, name: str = CHECK) -> list[CheckRun]:
        """Return every check run of a name that was ever made on a commit, oldest first."""
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
    """Start a town with a lab; the bot looks around when a test says so.

    `repository` as app.yaml spells it; `features`, `more_labs` and `settings` are lines of app.yaml beside what stands
    there: of the repository, below its labs, and at the top.
    """
    bucket.create()
    # Shorter than the pause that a test makes before a scan, so that the bot's own timer adds no listing.
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
