"""GitHub is down, then back: no try is used up, and all waiting work resumes at once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.conversations.town import BOT, SOON, Town, town
from tests.waiting import until

EVERYTHING = re.compile("")
POSTPONE_AWAY_JOBS = """
UPDATE procrastinate_jobs SET scheduled_at = to_timestamp(%(at)s)
 WHERE status = 'todo' AND id IN (SELECT job_id FROM nightjar_notes WHERE outcome = 'away')
"""
RESUME_LOCK = "UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE status = 'todo' AND lock = %(lock)s"
AWAY_LOCKS = """
SELECT DISTINCT job.lock FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.status = 'todo' AND note.outcome = 'away' AND job.lock LIKE 'pr:%%' ORDER BY job.lock
"""
FAR_FUTURE = 4_000_000_000.0
"""A moment to which nobody waits in this test, in seconds since 1970."""
PULLS = 6
AT_ONCE = replace(SOON, first_wait=0.05)
"""Each job meets several odd answers in a row, and backs off after each."""


async def waiting(place: Town) -> list[str]:
    """Return the pull requests whose work waits for GitHub."""
    return [str(row["lock"]) for row in await place.bot.engine.database.connector.execute_query_all_async(AWAY_LOCKS)]


async def test_one_successful_answer_resumes_everything_that_waited(tmp_path: Path) -> None:
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        await place.started()
        place.repo.open_pull_request("hubot", "First")
        await place.quiet()
        place.github.faults.add("*", EVERYTHING, status=503, times=None)
        pulls = [place.repo.open_pull_request("hubot", f"Change {n}", "cc @stranger") for n in range(PULLS)]
        comments = [pull.comment("hubot", "@ci help") for pull in pulls]

        async def all_wait() -> bool:
            return len(await waiting(place)) == PULLS

        await until(all_wait)
        connector = place.bot.engine.database.connector
        # From now on no job resumes by itself.
        await connector.execute_query_async(POSTPONE_AWAY_JOBS, at=FAR_FUTURE)
        locks = await waiting(place)
        place.github.faults.clear()
        await connector.execute_query_async(RESUME_LOCK, lock=locks[0])
        await place.quiet()
        assert [pull.reactions(comment, by=BOT) for pull, comment in zip(pulls, comments, strict=True)] == [
            pulls[0].reactions(comments[0], by=BOT)
        ] * PULLS
        assert all(any("stranger" in text for text in place.answers(pull)) for pull in pulls)
        assert await place.failures() == []


AWAY_JOBS = """
SELECT job.id AS id, job.lock AS lock, job.attempts AS attempts, note.text AS note
  FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.status = 'todo' AND job.scheduled_at IS NOT NULL AND note.outcome = 'away' AND job.lock LIKE 'pr:%%'
"""
SET_NOTE = "UPDATE nightjar_notes SET text = %(note)s WHERE job_id = %(id)s"
TRY_NOW = "UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE id = %(id)s"
OUTAGE = 2 * 3600
"""Seconds."""
COMMANDS = 4
"""Commands on each pull request."""
TRIES = 13
"""One more than a job has while GitHub answers with errors."""


async def test_an_outage_loses_no_command(tmp_path: Path) -> None:
    """The waits are skipped: every job is moved into the past by a part of the outage, and tried again at once."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        await place.started()
        pulls = [place.repo.open_pull_request("hubot", f"Change {n}") for n in range(PULLS)]
        await place.quiet()
        place.github.faults.add("*", EVERYTHING, status=503, times=None)
        comments = [(pull, pull.comment("hubot", "@ci help")) for pull in pulls for _ in range(COMMANDS)]
        await place.github.delivered()
        connector = place.bot.engine.database.connector
        tries: dict[int, int] = {}

        async def waiting_jobs() -> list[Any]:
            return [*await connector.execute_query_all_async(AWAY_JOBS)]

        async def all_wait() -> bool:
            locks = {row["lock"] for row in await waiting_jobs() if row["attempts"] > tries.get(row["id"], 0)}
            return len(locks) == PULLS

        for _ in range(TRIES):
            await until(all_wait)
            for row in await waiting_jobs():
                note = json.loads(row["note"])
                note["tries"]["away_since"] -= OUTAGE / TRIES
                tries[row["id"]] = row["attempts"]
                await connector.execute_query_async(SET_NOTE, id=row["id"], note=json.dumps(note))
                await connector.execute_query_async(TRY_NOW, id=row["id"])
        await until(all_wait)
        place.github.faults.clear()

        async def answered() -> bool:
            for row in await waiting_jobs():  # The client asks GitHub again only after a pause of its own.
                await connector.execute_query_async(TRY_NOW, id=row["id"])
            return all(pull.reactions(comment, by=BOT) == ["eyes", "+1"] for pull, comment in comments)

        await until(answered)
        await place.quiet()
        assert await place.failures() == []
        assert [pull.reactions(comment, by=BOT) for pull, comment in comments] == [["eyes", "+1"]] * (PULLS * COMMANDS)
        assert [len(place.answers(pull)) for pull in pulls] == [COMMANDS] * PULLS


async def test_the_bot_hardly_asks_github_while_github_is_down(tmp_path: Path) -> None:
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        await place.started()
        place.repo.open_pull_request("hubot", "First")
        await place.quiet()
        outage = place.github.faults.add("*", EVERYTHING, status=503, times=None)
        for n in range(PULLS * 3):
            place.repo.open_pull_request("hubot", f"Change {n}")

        async def all_wait() -> bool:
            return len(await waiting(place)) == PULLS * 3

        await until(all_wait)
        # Each of them would have asked at least three times, and again and again.
        assert outage.hits < PULLS * 3
        place.github.faults.clear()
        await place.quiet()
        assert await place.failures() == []


@dataclass(frozen=True)
class Oddity:
    """An answer that GitHub gives while it has trouble."""

    name: str
    status: int
    text: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


ODDITIES = [
    Oddity("null", 200, "null"),
    Oddity("HTML", 200, "<html>Unicorn</html>", {"Content-Type": "text/html"}),
    Oddity("another shape", 200, '{"message": "Server Error"}'),
    Oddity("404", 404),
]


@pytest.mark.parametrize("method", ["GET", "*"])
@pytest.mark.parametrize("oddity", ODDITIES, ids=str)
async def test_an_odd_answer_about_existing_things_is_not_believed(tmp_path: Path, oddity: Oddity, method: str) -> None:
    """It lasts for some requests about a repository; then GitHub recovers."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db", pace=AT_ONCE) as place:
        await place.started()
        pull = place.repo.open_pull_request("hubot", "Faster")
        first = pull.comment("hubot", "@ci run slow tests")
        await place.quiet()
        fault = place.github.faults.add(
            method,
            re.compile("^/repos/octocat/compiler/(pulls|issues|commits|statuses)/"),
            status=oddity.status,
            text=oddity.text,
            headers=oddity.headers,
            times=4,
        )
        pull.edit("hubot", body="cc @stranger")
        comment = pull.comment("hubot", "@ci run slow tests\n@ci reruun")
        await place.quiet()
        assert fault.hits == 4
        assert await place.failures() == []
        assert pull.reactions(first, by=BOT) == ["eyes", "+1"]
        assert pull.reactions(comment, by=BOT) == ["eyes", "confused"]
        assert [text.count("stranger") > 0 for text in place.answers(pull)].count(True) == 1
        markers = [text.partition("\n")[0] for text in place.answers(pull)]
        assert len(markers) == len(set(markers)), "a message was posted twice"
