"""A town whose nightly branch has a range of commits, with which a test began to fail; its devices are simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from bot.core.events import Repository
from bot.engine.internal import announce
from bot.results.few_tests import FewTestsOutcome, TestAttempts
from handlers.device_tests.effects import announce_step
from handlers.device_tests.model import LEASE_SECONDS, MOST_ATTEMPTS, DeviceJob
from handlers.device_tests.sweep import SWEEP
from handlers.regressions.records import target_issue
from handlers.searches.effects import SEARCH_EVENT, SearchEvent
from handlers.searches.records import CULPRIT_SEARCH, CulpritSearch, SearchRequest
from handlers.searches.sweep import SearchSweep
from sandbox import PullRequest
from sandbox.model.issues import Issue
from tests.conversations.devices import HEXAGON, Devices
from tests.conversations.lab import LAB, TEST_FILE, junit
from tests.conversations.town import BOT

SUITE, TEST = "operators", f"{TEST_FILE}::test_add"
NO_RESULTS = FewTestsOutcome()
HOUR, DAY = 3600.0, 86_400.0
Fails = Callable[[int, str], bool | None]
"""Whether the test fails at a commit, by position, on a target; None if it gives no results."""
OTHER = -1
"""The position of a commit that is not one of the range: a head with a revert."""


@dataclass
class SearchTown:
    """A town whose nightly branch has a range of commits: the test passed at `shas[0]`, and failed at the last one."""

    devices: Devices
    shas: list[str] = field(default_factory=list)
    pull: PullRequest = field(init=False)

    async def regression(
        self, commits: int, *targets: str, pull: int = 0, docs: int = 0, method: str = "squash"
    ) -> None:
        """Let a test begin to fail within some commits, and let two nightly runs report that.

        The commit at the position `pull`, counted from 1, is a merged pull request; that at `docs` changes only docs.
        By another `method` than a squash, it has two commits.
        """
        place = self.devices.place
        self.shas = [place.nightly_run()]
        await self.upload("passed", targets)
        for number in range(1, commits + 1):
            place.town.github.clock.advance(seconds=20)
            if number == pull:
                self.pull = place.town.repo.open_pull_request("hubot", "Fuse", base="nightly")
                if method != "squash":
                    self.pull.push({"fuse.cc": "1"})
                self.shas.append(self.pull.merge("octocat", method))
                continue
            change = {"docs/ops.md" if number == docs else "ops.cc": str(number)}
            message = f"Change {number} (#{number})"
            self.shas.append(place.town.repo.push("nightly", change, by="octocat", message=message).sha)
        await self.upload("AssertionError: 3 != 4", targets)
        range_of_commits = list(self.shas)
        self.shas.append(place.nightly_run())
        await self.upload("AssertionError: 3 != 4", targets)
        self.shas = range_of_commits

    async def upload(self, verdict: str, targets: tuple[str, ...], other: str = "passed") -> None:
        """Let targets test the newest commit; `other` is the verdict of another test."""
        for target in targets:
            report = {"ops.xml": junit(test_add=verdict, test_mul=other)}
            self.devices.place.upload(self.shas[-1], report, suite=SUITE, target=target)
        await self.devices.place.settle()
        await self.devices.place.scan()

    @property
    def issue(self) -> Issue:
        """Return the only issue that the bot opened."""
        repo = self.devices.place.town.repo
        (issue,) = (
            issue for issue in repo.issues.values() if issue.user.login == BOT and not isinstance(issue, PullRequest)
        )
        return issue

    async def comments(self, author: str, text: str) -> tuple[list[str], str]:
        """Comment on the issue; return the bot's reactions and its last answer."""
        comment = self.issue.comment(author, text)
        await self.devices.place.town.quiet()
        return self.issue.reactions(comment), self.issue.comments_by(BOT)[-1].body

    async def search(self) -> CulpritSearch:
        """Return the only search."""
        (search,) = (await self.devices.place.town.bot.services.records.under(CULPRIT_SEARCH)).values()
        return search

    async def begin_search(self) -> None:
        """Request the search at the time of the lab."""
        repo, place = self.devices.place.town.repo, self.devices.place
        request = SearchRequest(SUITE, (TEST,), (f"{LAB}/{HEXAGON}",), self.shas[0], self.shas[-1])
        event = SearchEvent.start(request, place.time(), target_issue(f"{LAB}/{HEXAGON}"))
        await announce(place.town.bot.services.announce, SEARCH_EVENT, Repository(repo.id, repo.full_name, None), event)
        await place.town.quiet()

    async def end(self, job: DeviceJob, *, failed: bool | None, time: str = "", runs: int = 0) -> None:
        """Let the results of a job arrive: as many `runs` of the test as the job asks for, unless that is given."""
        repeat = runs or job.few_tests.repeat
        attempts = TestAttempts(0, repeat) if failed else TestAttempts(repeat)
        outcome = NO_RESULTS if failed is None else FewTestsOutcome({TEST: attempts}, seconds=30.0)
        done = await self.devices.store.complete_few_tests(LAB, job.id, SUITE, outcome)
        await announce_step(self.devices.place.town.bot.services.announce, done, time)
        await self.devices.place.town.quiet()

    async def lose(self, count: int) -> list[DeviceJob]:
        """Let the lab vanish with some runs; return their jobs, whose results may come late."""
        jobs = dict[str, DeviceJob]()
        for _ in range(count * MOST_ATTEMPTS):
            vanished = (await self.devices.claim(is_able=True)).job
            jobs[vanished.id] = vanished
            await self.devices.sweep(later=LEASE_SECONDS + 1)
        return list(jobs.values())

    async def work(self, fails: Fails, *targets: str) -> list[DeviceJob]:
        """Work as a lab until there are no jobs; each end of a job is announced twice. Return the jobs."""
        limits_of = self.devices.place.town.bot.services.part(SWEEP).limits_of
        jobs = list[DeviceJob]()
        while claimed := await self.devices.store.claim(LAB, list(targets), limits_of, is_able=True):
            job = claimed.job
            jobs.append(job)
            for time in ("", "again"):
                await self.end(job, failed=fails(self.position(job.sha), job.target), time=time)
        return jobs

    def position(self, sha: str) -> int:
        """Return the position of a commit in the range."""
        return self.shas.index(sha) if sha in self.shas else OTHER

    async def sweep(self, days: int = 0) -> None:
        """Let some days pass, or an hour, and let searches look for jobs."""
        time = self.devices.place.time
        time.advance_to((time() // DAY + days) * DAY + HOUR if days else time() + HOUR)
        sweep = SearchSweep(self.devices.place.town.bot.services)
        if await sweep.has_work():
            await sweep.tick()
        await self.devices.place.town.quiet()
