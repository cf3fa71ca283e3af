"""SIGKILL at every write of a search and of a draft: no run is asked for twice, one comment, and one draft."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.core.events import Repository
from bot.effects.reverts import OPENED_REVERT
from bot.engine.internal import announce
from bot.engine.postgres.connector import CONNECTIONS
from bot.engine.service import Engine
from bot.results.few_tests import FewTestsOutcome, TestAttempts
from handlers.device_tests.effects import announce_step
from handlers.device_tests.model import DeviceJob
from handlers.device_tests.queue import TargetLimits
from handlers.device_tests.store import JobStore
from handlers.searches.effects import SEARCH_EVENT, SearchEvent
from handlers.searches.records import CULPRIT_SEARCH, CulpritSearch, SearchRequest
from handlers.searches.revert.records import CULPRIT_REVERT, REVERTED_HEAD, CulpritRevert, RevertStage
from sandbox import Fault, PullRequest
from sandbox import Repository as SandboxRepository
from sandbox.faults import When
from tests.bucket import World
from tests.robustness.conversation import Conversation
from tests.robustness.crashes import Boundary, Crash, Point
from tests.robustness.held_rows import HeldRows, StoredPoint, held_rows, without_time_limit
from tests.robustness.place import BOT, POLL_INTERVAL, Place, open_place
from tests.tables import make_tables
from tests.waiting import until

COMMENTS = "/repos/{owner}/{repo}/issues/{issue_number}/comments"
TARGET, SUITE, TEST = "hexagon-v73", "operators", "tests/test_ops.py::test_add"
COMMITS, CULPRIT = 3, 2


class Searching(Conversation):
    """A search is requested, and a lab does each of its jobs; the culprit is a merged pull request."""

    shas: list[str]
    jobs: list[DeviceJob]
    lease: str

    async def hold(self) -> None:
        """Merge pull requests, request the search, and do its jobs until it has its answer."""
        self.shas, self.jobs = [self.repository.branch("main")], list[DeviceJob]()
        for number in range(1, COMMITS + 1):
            pull = self.repository.open_pull_request("hubot", f"Change {number}", files={f"{number}.cc": ""})
            self.shas.append(pull.merge("octocat", "squash"))
            if number == CULPRIT:
                self.pull = pull
        self.request = SearchRequest(SUITE, (TEST,), (f"{self.lab}/{TARGET}",), self.shas[0], self.shas[-1])
        async with self.place.beside() as engine:
            repository = Repository(self.repository.id, self.repository.full_name, None)
            await announce(engine.accept, SEARCH_EVENT, repository, SearchEvent.start(self.request, time.time()))
            while (job := await self.next_job(engine)) is not None:
                self.jobs.append(job)
                await self.end(engine, job)
        await self.until(lambda: self.pull.comments_by(BOT))

    @property
    def lab(self) -> str:
        """Return the lab of this repository alone."""
        return f"lab-of-{self.repository.owner.login}"

    @property
    def drafts(self) -> list[PullRequest]:
        """Return the pull requests of the bot."""
        return [pull for pull in self.repository.pulls if pull.user.login == BOT]

    async def search(self, engine: Engine) -> CulpritSearch | None:
        """Return the search as it is stored."""
        return await engine.records.get(CULPRIT_SEARCH.of(self.repository.id, self.request.id))

    async def has_ended(self, engine: Engine) -> bool:
        """Return whether there are no further jobs: the search has its answer."""
        search = await self.search(engine)
        return search is not None and search.answer is not None

    async def next_job(self, engine: Engine) -> DeviceJob | None:
        """Wait for a job, and claim it; None once all have ended."""
        store, limits = JobStore(engine.database.connector), TargetLimits(1, 3600.0)
        jobs = list[DeviceJob]()

        async def is_next() -> bool:
            if await self.has_ended(engine):
                return True
            claimed = await store.claim(self.lab, [TARGET], lambda _: limits, is_able=True)
            if claimed is not None:
                jobs.append(claimed.job)
                self.lease = claimed.lease
            return claimed is not None

        await until(is_next, pause=POLL_INTERVAL)
        return jobs[0] if jobs else None

    async def end(self, engine: Engine, job: DeviceJob) -> None:
        """Let the results of a job arrive."""
        failed = job.sha in self.shas[CULPRIT:]
        await self.arrive(
            engine, job, TestAttempts(0, job.few_tests.repeat) if failed else TestAttempts(job.few_tests.repeat)
        )

    async def arrive(self, engine: Engine, job: DeviceJob, attempts: TestAttempts) -> None:
        """Let results arrive, again also if the job had none."""
        outcome = FewTestsOutcome({TEST: attempts})
        done = await JobStore(engine.database.connector).complete_few_tests(self.lab, job.id, SUITE, outcome)
        await announce_step(engine.accept, done, "late" if job.id == self.jobs[0].id else "")


WRITES = 11
"""Changes of the record of an undisturbed search; the first one creates it."""


def at_every_write(rows: HeldRows) -> list[list[Boundary]]:
    """Return the points before each write of the search, two for a conversation, and around that of the comment."""

    def update(number: int) -> StoredPoint:
        return StoredPoint(Searching, rows, "UPDATE", CULPRIT_SEARCH.prefix, number, "before")

    first = StoredPoint(Searching, rows, "INSERT", CULPRIT_SEARCH.prefix, 0, "before")
    half = (WRITES - 1) // 2
    stored: list[list[Boundary]] = [[first]]
    for number in range(half):
        stored.append([update(number), update(number + half)])
    # Each held row keeps a connection of the bot busy. Without a free one the bot stops, and logs errors.
    assert len(stored) < CONNECTIONS
    sides: tuple[When, ...] = ("before", "after")
    stored += [[Point(Searching, "github", "POST", COMMENTS, 0, side)] for side in sides]
    return stored


class Drafting(Searching):
    """A search whose culprit is reverted by a draft."""

    async def has_ended(self, engine: Engine) -> bool:
        """Return whether the draft is open, and the branch on which it was tested deleted."""
        revert = await engine.records.get(CULPRIT_REVERT.of(self.repository.id, self.request.id))
        return revert is not None and revert.stage is RevertStage.OPENED

    async def hold(self) -> None:
        """Search, and wait until the branch of the tests is deleted."""
        await super().hold()
        await self.until(lambda: not self.heads)

    @property
    def heads(self) -> list[str]:
        """Return the branches on which tests run without the culprit."""
        return [ref for ref in self.repository.refs if "nightjar/revert-" in ref]


class Withdrawing(Drafting):
    """A search whose first job fails in the lab; its late results contradict the answer, so the draft is closed."""

    async def hold(self) -> None:
        """Open the draft, let the late results arrive, and do the jobs of the search that they open again."""
        await super().hold()
        async with self.place.beside() as engine:
            await self.arrive(engine, self.jobs[0], TestAttempts(400))
            await self.until(lambda: "I named this change" in self.pull.comments_by(BOT)[0].body)
            await self.until(lambda: all("The search no longer names" in (draft.body or "") for draft in self.drafts))

    async def end(self, engine: Engine, job: DeviceJob) -> None:
        """Let the lab fail with the first job, and the results of all others arrive."""
        if job.id != self.jobs[0].id:
            await super().end(engine, job)
            return
        failed = await JobStore(engine.database.connector).fail(self.lab, job.id, self.lease, "no power")
        await announce_step(engine.accept, failed)


@dataclass(frozen=True)
class Mutation:
    """The `number`-th request to GraphQL (from 0), before or after it takes effect: only one conversation may run."""

    conversation: type[Conversation]
    number: int
    side: When

    def pause(self, place: Place, _: SandboxRepository) -> Fault:
        """Hold the request."""
        return place.github.faults.pause("POST", re.compile("^/graphql$"), when=self.side, skip=self.number)

    def __str__(self) -> str:
        return f"{self.conversation.__name__}: {self.side} the request {self.number + 1} to GraphQL"


ONE_PULL = "/repos/{owner}/{repo}/pulls/{pull_number}"
GIT = "/repos/{owner}/{repo}/git"
REVERT_WRITES = (
    ("POST", f"{GIT}/commits"),
    ("POST", f"{GIT}/refs"),
    ("POST", "/repos/{owner}/{repo}/merges"),
    ("DELETE", f"{GIT}/refs/{{ref}}"),
)
REVERT_STEPS = 4
"""Changes of the record of an undisturbed revert: the head is wanted, it is tested, the draft is wanted, it is open."""


def at_every_write_of_a_draft(rows: HeldRows) -> list[list[Boundary]]:
    """Return the points before each change of the record of a revert, and around each write to GitHub."""
    points: list[list[Boundary]] = [[StoredPoint(Drafting, rows, "INSERT", CULPRIT_REVERT.prefix, 0, "before")]]
    points += [
        [StoredPoint(Drafting, rows, "UPDATE", CULPRIT_REVERT.prefix, number, "before")]
        for number in range(REVERT_STEPS - 1)
    ]
    points += [
        [StoredPoint(Drafting, rows, "INSERT", kind.prefix, 0, "after")] for kind in (REVERTED_HEAD, OPENED_REVERT)
    ]
    assert len(points) < CONNECTIONS
    sides: tuple[When, ...] = ("before", "after")
    for method, route in REVERT_WRITES:
        points += [[Point(Drafting, "github", method, route, 0, side)] for side in sides]
    return points


async def test_a_kill_at_any_write_of_a_draft_repeats_neither_runs_nor_drafts(
    tmp_path: Path, postgres_url: str, aws_world: World
) -> None:
    make_tables(postgres_url)
    with held_rows(postgres_url) as rows:
        await _drafts_survive(tmp_path, without_time_limit(postgres_url), aws_world, at_every_write_of_a_draft(rows))


@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_kill_around_the_mutation_that_opens_a_draft_opens_no_second_one(
    tmp_path: Path, aws_world: World, side: When
) -> None:
    # The first request asks for the ID of the pull request.
    points: list[list[Boundary]] = [[Mutation(Drafting, 1, side)]]
    await _drafts_survive(tmp_path, f"sqlite:///{tmp_path}/nightjar.db", aws_world, points)


async def test_a_kill_around_the_close_of_a_draft_closes_it_once(
    tmp_path: Path, postgres_url: str, aws_world: World
) -> None:
    make_tables(postgres_url)
    with held_rows(postgres_url) as rows:
        withdrawn = StoredPoint(Withdrawing, rows, "UPDATE", CULPRIT_REVERT.prefix, REVERT_STEPS - 1, "before")
        points: list[list[Boundary]] = [[withdrawn]]
        sides: tuple[When, ...] = ("before", "after")
        points += [[Point(Withdrawing, "github", "PATCH", ONE_PULL, 0, side)] for side in sides]
        url = without_time_limit(postgres_url)
        for revert, draft in await _drafts_after(tmp_path, url, aws_world, points):
            assert (revert.stage, revert.step) == (RevertStage.WITHDRAWN, REVERT_STEPS + 1)
            assert draft.state == "closed"
            assert (draft.body or "").count("**Closed.** ") == 1


async def _drafts_survive(folder: Path, database: str, bucket: World, points: list[list[Boundary]]) -> None:
    for revert, draft in await _drafts_after(folder, database, bucket, points):
        assert (revert.stage, revert.step) == (RevertStage.OPENED, REVERT_STEPS)
        assert (draft.state, draft.draft) == ("open", True)


async def _drafts_after(
    folder: Path, database: str, bucket: World, points: list[list[Boundary]]
) -> list[tuple[CulpritRevert, PullRequest]]:
    """Kill the bot at points; return what is stored of each revert, and its only draft."""
    async with open_place(folder, database, bucket=bucket) as place:
        crash = Crash(place, points)
        conversations = [item for item in crash.side_by_side.conversations.values() if isinstance(item, Drafting)]
        configure(place, conversations, revert="draft")
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        result = list[tuple[CulpritRevert, PullRequest]]()
        async with place.beside() as engine:
            for conversation in conversations:
                key = CULPRIT_REVERT.of(conversation.repository.id, conversation.request.id)
                revert = await engine.records.get(key)
                assert revert is not None
                (draft,) = conversation.drafts
                assert draft.number == revert.number
                assert [job.sha for job in conversation.jobs].count(revert.head) == 1, "no run is asked for twice"
                result.append((revert, draft))
        return result


def configure(place: Place, conversations: Sequence[Searching], **regressions: str) -> None:
    """Give each conversation a lab of its own."""
    own = {
        item.repository.full_name: {
            "results": {**(place.results or {}), "labs": {item.lab: {"targets": {TARGET: {"tier": 2}}}}}
        }
        for item in conversations
    }
    off = {"slow_tests": False, "cc_reviewers": False, "repository_file": False}
    place.configure(own, own, regressions={"comment": True, **regressions}, **off)


async def test_a_kill_at_any_write_of_a_search_repeats_neither_runs_nor_comments(
    tmp_path: Path, postgres_url: str, aws_world: World
) -> None:
    make_tables(postgres_url)
    with held_rows(postgres_url) as rows:
        async with open_place(tmp_path, without_time_limit(postgres_url), bucket=aws_world) as place:
            crash = Crash(place, at_every_write(rows))
            conversations = [item for item in crash.side_by_side.conversations.values() if isinstance(item, Searching)]
            configure(place, conversations)
            await place.start()
            await crash.kill_at_every_point()
            await crash.side_by_side.end()
            async with place.beside() as engine:
                for conversation in conversations:
                    search = await conversation.search(engine)
                    assert search is not None
                    assert search.answer is not None
                    assert (search.answer.first, search.answer.pull) == (CULPRIT, conversation.pull.number)
                    assert search.step == WRITES
                    ids = {job.id for job in conversation.jobs}
                    assert len(ids) == len(conversation.jobs) == len(search.runs), "no run is asked for twice"
                    assert len(conversation.pull.comments_by(BOT)) == 1
