"""A search for the commit that broke a test, from the request to the answer; the lab's devices are simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.core.events import Repository
from bot.engine.internal import announce
from bot.results.culprit.search import SearchOutcome
from bot.results.few_tests import FewTestsOutcome, TestAttempts
from handlers.device_tests.effects import announce_step
from handlers.device_tests.model import DeviceJob
from handlers.device_tests.sweep import SWEEP
from handlers.searches.effects import FIRST, SEARCH_EVENT, SearchEvent
from handlers.searches.records import CULPRIT_SEARCH, CulpritSearch, SearchRequest, SearchRunState
from handlers.searches.texts import search_sentence
from tests.bucket import World
from tests.conversations.devices import Devices, device_town
from tests.conversations.lab import LAB
from tests.waiting import until

TARGET, SUITE, TEST = f"{LAB}/hexagon-v73", "operators", "tests/test_ops.py::test_add"
NO_RESULTS = FewTestsOutcome()
Fails = Callable[[int], bool | None]
"""Whether the test fails at a commit, by position; None if it gives no results."""


@dataclass
class SearchTown:
    """A town whose `main` has a range of commits; `good` is the one before it."""

    devices: Devices
    good: str
    shas: list[str]

    @property
    def request(self) -> SearchRequest:
        return SearchRequest(SUITE, (TEST,), (TARGET,), self.good, self.shas[-1])

    async def start(self) -> None:
        """Request the search."""
        town, request = self.devices.place.town, self.request
        repository, event = Repository(town.repo.id, town.repo.full_name, None), SearchEvent(request.id, FIRST, request)
        await announce(town.bot.services.announce, SEARCH_EVENT, repository, event)

    async def stored(self) -> CulpritSearch:
        records = self.devices.place.town.bot.services.records
        search = await records.get(CULPRIT_SEARCH.of(self.devices.place.town.repo.id, self.request.id))
        assert search is not None
        return search

    async def end(self, job: DeviceJob, fails: Fails, time: str = "") -> None:
        """Let the results of a job arrive."""
        failed = fails([self.good, *self.shas].index(job.sha))
        repeat = job.few_tests.repeat
        attempts = TestAttempts(0, repeat) if failed else TestAttempts(repeat)
        outcome = NO_RESULTS if failed is None else FewTestsOutcome({TEST: attempts}, seconds=30.0)
        done = await self.devices.store.complete_few_tests(LAB, job.id, SUITE, outcome)
        await announce_step(self.devices.place.town.bot.services.announce, done, time)

    async def searched(self, fails: Fails) -> CulpritSearch:
        """Work as a lab until the search has an answer; each end of a job is announced twice."""
        await self.start()
        while (job := await self._next_job()) is not None:
            for time in ("", "again"):
                await self.end(job, fails, time)
        return await self.stored()

    async def _next_job(self) -> DeviceJob | None:
        """Wait for a job, and claim it; None once the search has an answer."""
        store, jobs = self.devices.store, list[DeviceJob]()
        limits_of = self.devices.place.town.bot.services.part(SWEEP).limits_of
        key = CULPRIT_SEARCH.of(self.devices.place.town.repo.id, self.request.id)

        async def is_next() -> bool:
            search = await self.devices.place.town.bot.services.records.get(key)
            if search is not None and search.answer is not None:
                return True
            claimed = await store.claim(LAB, ["hexagon-v73"], limits_of, is_able=True)
            jobs.extend([claimed.job] if claimed else [])
            return claimed is not None

        # The event of the next day is scheduled, so the town is never quiet.
        await until(is_next)
        return jobs[0] if jobs else None


async def town_with_range(devices: Devices, commits: int) -> SearchTown:
    repo = devices.place.town.repo
    good = repo.branch("main")
    pushes = [
        repo.push("main", {"ops.cc": str(number)}, by="octocat", message=f"Change {number} (#{number})")
        for number in range(1, commits + 1)
    ]
    shas = [commit.sha for commit in pushes]
    await devices.place.town.quiet()
    return SearchTown(devices, good, shas)


async def test_the_culprit_is_named_and_a_commit_that_does_not_build_is_not(tmp_path: object, aws_world: World) -> None:
    async with device_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world) as devices:
        here = await town_with_range(devices, 7)
        await here.start()
        search = await here.searched(lambda commit: None if commit == 2 else commit >= 4)
        assert search.answer is not None
        assert (search.answer.outcome, search.answer.first) == (SearchOutcome.CULPRIT.value, 4)
        sentence = search_sentence(search, 60)
        assert sentence.startswith(f"Began with {here.shas[3][:10]} (99.")
        assert sentence.endswith("Change 4 (#4). This rests on one target.")
        assert [run.commit for run in search.runs][:2] == [7, 0], "both ends run first"
        assert {run.state for run in search.runs} <= {SearchRunState.RESULTS, SearchRunState.NO_RESULTS}
        assert {run.commit for run in search.runs if run.state is SearchRunState.NO_RESULTS} <= {2}
        assert search.seconds == 30.0 * sum(run.state is SearchRunState.RESULTS for run in search.runs)
