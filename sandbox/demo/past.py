"""Play the demo's two weeks: the real bot moves its nightly branch, ingests what labs upload, and writes check runs.

The bot runs in this process, because its clock is set to each night in turn. So two weeks take seconds, and pages show
the times that a reader expects (docs/decisions/two-weeks-of-the-demo.md).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import LiteralString

from bot.app.address import Address
from bot.app.load import parse_config
from bot.app.serve import Bot, running
from bot.config.environment import Settings
from bot.core.events import Repository as EventRepository
from bot.engine.internal import announce
from bot.engine.service import WorkerPace
from bot.github.limits.ledger import Allowance
from bot.results.few_tests import FewTestsOutcome, MedianValue, TestAttempts
from bot.timers.timers import TIMER_EVENT, TimerEvent
from handlers.device_tests.effects import announce_step
from handlers.device_tests.store import JOBS
from handlers.device_tests.sweep import SWEEP
from handlers.results.watch import WATCH
from handlers.slow_tests.config import TIMER as SLOW_SET
from sandbox.bucket import BucketServer
from sandbox.demo import two_weeks as story
from sandbox.github import GitHubSandbox
from sandbox.model.apps import App
from sandbox.model.repository import Repository

HOUR, DAY = 3600.0, 86400.0
HOURS_SINCE_NIGHT = 10
"""Whole hours between the newest nightly run and the demo."""
CI, GPU_CI = "cpu/branch", "gpu/pr-head"
OPEN_PULL = 12
"""The number of the pull request that is open after the two weeks."""
FAST_WRITES = Allowance(
    writes_per_minute=10_000, writes_per_hour=100_000, rest_points_per_minute=1_000_000, write_spacing=0
)
"""The sandbox does not require GitHub's pause between two writes."""
QUICK_PACE = WorkerPace(check_after=0.3)
UNFINISHED: LiteralString = "SELECT id FROM procrastinate_jobs WHERE status IN ('todo', 'doing') LIMIT 1"
FORGET_WRITES: LiteralString = "DELETE FROM nightjar_writes"
"""The bot counts its writes of the last hour; those of two weeks would be too many."""
BETWEEN_CHECKS = 0.02


def nightly_hour(moment: float) -> int:
    """Return the hour of the day (UTC) at which the nightly branch moves, so that only the past has a move."""
    return datetime.fromtimestamp(moment - HOURS_SINCE_NIGHT * HOUR, UTC).hour


class PastClock:
    """The bot's clock: real time, moved back into the past."""

    def __init__(self) -> None:
        self._offset = 0.0

    def __call__(self) -> float:
        """Return seconds since 1970."""
        return time.time() + self._offset

    def set(self, moment: float | None = None) -> None:
        """Set it to a moment, or to real time."""
        self._offset = 0.0 if moment is None else moment - time.time()


class TwoWeeks:
    """The people and the labs of the story, beside a running bot."""

    def __init__(self, github: GitHubSandbox, repo: Repository, bucket: BucketServer, bucket_name: str) -> None:
        self.github = github
        self.repo = repo
        self.clock = PastClock()
        self.tested_shas: list[str] = []
        """The commits of the nightly branch that labs have tested, oldest first."""
        self._bucket, self._bucket_name = bucket, bucket_name
        self._newest = (time.time() - HOURS_SINCE_NIGHT * HOUR) // HOUR * HOUR

    async def play(self, bot: Bot) -> None:
        """Play everything from the first night to today, and let the bot's clock go on from there."""
        self._bot = bot
        earlier = self._push_earlier()
        self.clock.set(self._night(0) - HOUR)
        await bot.timers.tick()
        await self.quiet(bot)
        with self._github_at(self._night(0) - 6 * HOUR):
            self.repo.open_issue("monalisa", story.QUARANTINE_TITLE, story.QUARANTINE_BODY)
        for night in range(story.NIGHTS):
            self._merge(night)
            self.clock.set(self._night(night) + 60)
            await bot.timers.tick()
            await self.quiet(bot)
            await self._test_nightly(bot, night)
            if night == 0:
                await self._measure_earlier(bot, earlier)
        self.clock.set()
        await self._leave_pending_work(bot)
        await self._work_for_searches(bot)

    def _night(self, night: int) -> float:
        return self._newest - (story.NIGHTS - 1 - night) * DAY

    def _push_earlier(self) -> dict[int, str]:
        """Push a commit for each night before the two weeks; return their SHAs by night."""
        shas = {}
        for night in range(-story.EARLIER_NIGHTS, 0):
            with self._github_at(self._night(night) - 2 * HOUR):
                text = story.tested_title(night)
                shas[night] = self.repo.push("main", {"ci/images.txt": f"{text}\n"}, by="octocat", message=text).sha
        return shas

    async def _measure_earlier(self, bot: Bot, shas: Mapping[int, str]) -> None:
        """Let a lab upload what it measured before the two weeks, now that the nightly branch has these commits."""
        for night, sha in shas.items():
            report = story.report(story.LAB, story.TARGET, story.KERNELS, night)
            await self._upload(story.LAB, story.TARGET, sha, story.KERNELS, report, exit_status=0)
        await self._report_new_runs(bot)

    def _merge(self, night: int) -> None:
        """Push the changes of a day to main, all of which CI tests."""
        for change in (change for change in story.CHANGES if change.night == night):
            with self._github_at(self._night(night) - 5 * HOUR):
                files = {change.path: f"// {change.title}\n"}
                pull = self.repo.open_pull_request(change.author, change.title, files=files)
            with self._github_at(self._night(night) - 3 * HOUR):
                self._set_ci_success(pull.merge("octocat", "squash"))
        with self._github_at(self._night(night) - 2 * HOUR):
            text = story.tested_title(night)
            pushed = self.repo.push("main", {"ci/images.txt": f"{text}\n"}, by="octocat", message=text)
            self._set_ci_success(pushed.sha)

        if night == story.NIGHTS - 1:
            with self._github_at(self._night(night) - HOUR):
                files = {"src/tir/fuse_all.cc": "// Fuses.\n"}
                red_commit = self.repo.push("main", files, by="monalisa", message=story.RED_TITLE)
                self.repo.set_status("hubot", red_commit.sha, CI, "failure")
        if night == story.OPENED_AT:
            with self._github_at(self._night(night) - HOUR):
                self._open_pull_request()

    def _open_pull_request(self) -> None:
        files = {story.OPEN_PATH: "// Tiles.\n"}
        self.open_pull = self.repo.open_pull_request("hubot", story.OPEN_TITLE, story.OPEN_BODY, files=files)

    def _set_ci_success(self, sha: str) -> None:
        self.repo.set_status("hubot", sha, CI, "success")

    def _github_at(self, moment: float) -> AbstractContextManager[None]:
        return self.github.clock.stopped(datetime.fromtimestamp(moment, UTC))

    async def _test_nightly(self, bot: Bot, night: int) -> None:
        """Let all labs test the head of the nightly branch, and let the bot report it."""
        sha = self.repo.branch("nightly")
        self.tested_shas.append(sha)
        self.clock.set(self._night(night) + 1.5 * HOUR)
        runs = [
            (lab, target, suite)
            for (lab, target), suites in story.SUITES.items()
            for suite in suites
            if target != story.LATE or night < story.LATE_SINCE
        ]
        for lab, target, suite in runs:
            exit_status = 3 if target == story.GPU and night == story.BROKEN_NIGHT else 1
            text = story.report(lab, target, suite, night)
            await self._upload(lab, target, sha, suite, text, exit_status=exit_status)
        if night == story.RERUN_NIGHT:
            text = story.report(story.LAB, story.TARGET, story.RUNTIME, night + 1)
            await self._upload(story.LAB, story.TARGET, sha, story.RUNTIME, text, run="runtime-2", exit_status=0)
        await self._report_new_runs(bot)

    async def _work_for_searches(self, bot: Bot) -> None:
        """Let idle devices run the tests that the bot asks for, until it knows since which change they fail."""
        await bot.services.part(WATCH).tick()
        await self.quiet(bot)
        store, limits_of = bot.services.part(JOBS), bot.services.part(SWEEP).limits_of
        while claimed := await store.claim(story.LAB, (story.TARGET, story.GPU), limits_of, is_able=True):
            job, repeat = claimed.job, claimed.job.few_tests.repeat
            attempts = {test: self._attempts(test, job.sha, repeat) for test in job.few_tests.tests}
            outcome = FewTestsOutcome(attempts, seconds=story.SEARCH_SECONDS)
            done = await store.complete_few_tests(story.LAB, job.id, story.OPERATORS, outcome)
            await announce_step(bot.services.announce, done)
            await self.quiet(bot)

    def _attempts(self, test: str, sha: str, repeat: int) -> TestAttempts:
        """Return what a device says after it has run a test at a commit this often."""
        files = self.repo.git.commits[sha].files
        path, _, name = test.partition("::")
        if path != story.KERNEL_FILE:
            return TestAttempts(failed=repeat) if story.CULPRIT in files else TestAttempts(passed=repeat)
        latency, nodes = story.kernel_numbers(
            name, is_slower=story.SLOWER_PATH in files, is_lost=story.CULPRIT in files
        )
        medians = (MedianValue("latency", "ms", latency), MedianValue("delegated_nodes", "nodes", nodes))
        return TestAttempts(passed=repeat, medians=medians)

    async def _report_new_runs(self, bot: Bot) -> None:
        """Let the bot find new runs, and write the check runs of those that are complete."""
        for _ in range(2):
            await bot.services.part(WATCH).tick()
            await self.quiet(bot)
            self.clock.set(self.clock() + 600)

    async def _upload(
        self, lab: str, target: str, sha: str, suite: str, report: str, *, run: str = "", **claims: int
    ) -> None:
        """Store a run in the bucket as a lab does: first its report and its log, and then its manifest."""
        folder = f"results/{self.repo.full_name}/{lab}/{target}/{sha}/{run or suite}/"
        files = {"report.xml": report.encode(), story.LOG_NAME: story.log_of(report).encode()}
        result, log = (
            {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in files.items()
        )
        artifacts = [{**log, "type": "text/plain"}]
        manifest = {"schema": 1, "sha": sha, "suite": suite, "files": [result], "artifacts": artifacts, **claims}
        client = self._bucket.client("s3")

        def put() -> None:
            for name, content in {**files, "manifest.json": json.dumps(manifest).encode()}.items():
                client.put_object(Bucket=self._bucket_name, Key=folder + name, Body=content)

        await asyncio.to_thread(put)

    async def _leave_pending_work(self, bot: Bot) -> None:
        """Leave a pull request for which a lab, a merge and CI are pending."""
        pull = self.open_pull
        self.repo.set_status("hubot", pull.head_sha, GPU_CI, "pending")
        await self.quiet(bot)
        text = story.report_of_pull_request(story.TARGET, story.OPENED_AT)
        await self._upload(
            story.LAB, story.TARGET, pull.head_sha, story.OPERATORS, text, exit_status=1, pull_request=pull.number
        )
        for login, command in (("hubot", f"@ci test on {story.BOARD}"), ("octocat", "@ci merge when green")):
            pull.comment(login, command)
            await self.quiet(bot)
        await self._report_new_runs(bot)
        self.clock.set()
        repository = EventRepository(self.repo.id, self.repo.full_name, None)
        await announce(bot.engine.accept, TIMER_EVENT, repository, TimerEvent(SLOW_SET, "demo", int(self.clock())))
        await self.quiet(bot)

    async def settled(self) -> None:
        """Wait until the bot that played the two weeks has no work left."""
        await self.quiet(self._bot)

    async def quiet(self, bot: Bot) -> None:
        """Wait until every webhook was answered, and the bot has no work left."""
        while True:
            await self.github.delivered()
            sent = len(self.github.webhooks.deliveries)
            # The bot's database announces nothing.
            while await bot.engine.database.connector.execute_query_all_async(UNFINISHED):  # noqa: ASYNC110
                await asyncio.sleep(BETWEEN_CHECKS)
            if len(self.github.webhooks.deliveries) == sent and self.github.webhooks.idle:
                return


@asynccontextmanager
async def bot_after_two_weeks(
    weeks: TwoWeeks, app: App, config: str, environment: Mapping[str, str], port: int
) -> AsyncIterator[Bot]:
    """Run a bot on a port in this process, and play the two weeks with it."""
    settings = Settings.from_environment(environment)
    address = Address("127.0.0.1", port)
    with _variables({name: text for name, text in environment.items() if name.startswith("AWS_")}):
        async with running(
            parse_config(config.encode(), "app.yaml"), settings, address, FAST_WRITES, weeks.clock, QUICK_PACE
        ) as running_bot:
            app.webhook_url = f"http://127.0.0.1:{port}/webhook"
            await weeks.play(running_bot.bot)
            yield running_bot.bot
            # A later bot on the same database gets the next webhook.
            await weeks.quiet(running_bot.bot)
            await running_bot.bot.engine.database.connector.execute_query_async(FORGET_WRITES)
            app.webhook_url = ""


@contextmanager
def _variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables of this process, from which boto3 reads where S3 is."""
    previous_values = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, text in previous_values.items():
            if text is None:
                del os.environ[name]
            else:
                os.environ[name] = text
