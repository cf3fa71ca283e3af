"""GitHub is down when the nightly branch is scheduled to move: the branch moves once GitHub is back, only once."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.engine.retry import MAX_TRIES
from tests.conversations.nightly_runs import NightlyTown, nightly_town
from tests.waiting import until

MOVE = "PATCH", "/repos/{owner}/{repo}/git/refs/{ref}"
MAKE = "POST", "/repos/{owner}/{repo}/git/refs"
HEAD = "GET", "/repos/{owner}/{repo}/git/ref/{ref}"
MARK = "POST", "/repos/{owner}/{repo}/statuses/{sha}"
NO_PAUSES = "UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE status = 'todo' AND scheduled_at IS NOT NULL"
UNKNOWN = "DELETE FROM nightjar_records WHERE key = 'repository:octocat/compiler'"


@pytest.fixture
async def place(sqlite_url: str) -> AsyncIterator[NightlyTown]:
    async with nightly_town(sqlite_url) as place:
        yield place


async def all_tries(place: NightlyTown) -> None:
    """Wait until the timer's last run has used all its tries, without the pauses between them."""
    engine = place.town.bot.engine

    async def over() -> bool:
        await engine.database.connector.execute_query_async(NO_PAUSES)
        return (await place.runs())[0].settled

    await until(over)


async def many_tries(place: NightlyTown) -> None:
    """Wait until the timer's last run has had more tries than a request that GitHub answers gets."""
    engine = place.town.bot.engine

    async def over() -> bool:
        await engine.database.connector.execute_query_async(NO_PAUSES)
        return max(job.attempts for job in (await place.runs())[0].jobs) > 2 * MAX_TRIES

    await until(over)


async def test_after_a_short_outage_of_github_the_branch_moves(place: NightlyTown) -> None:
    place.push()
    await place.nightly_run()
    sha = place.push()
    down = place.town.github.faults.add("*", "*", status=502, times=5)
    await place.nightly_run()
    assert down.hits == 5
    assert place.head == sha
    assert place.issues == []
    assert len(await place.runs()) == 2


async def test_a_long_outage_uses_up_no_tries_and_the_branch_moves_afterwards(
    place: NightlyTown,
) -> None:
    place.push()
    await place.nightly_run()
    sha = place.push()
    await place.town.quiet()
    down = place.town.github.faults.add("*", "*", drop="before", times=None)
    await place.reach_scheduled_time()
    await many_tries(place)
    down.times = down.hits
    await all_tries(place)
    assert place.head == sha
    for _ in range(2):
        await place.hour()
    assert place.writes() == ["POST 201", "PATCH 200"]
    assert [run.state for run in await place.runs()] == ["done", "done"]
    assert place.issues == []  # people could have done nothing about it


async def test_after_an_outage_at_the_first_request_the_bot_asks_again_a_minute_later(place: NightlyTown) -> None:
    # As if GitHub had not answered the request for the repository's ID at the bot's start either.
    await place.town.bot.engine.database.connector.execute_query_async(UNKNOWN)
    down = place.town.github.faults.add("GET", "/repos/{owner}/{repo}", status=502, times=None)
    await place.nightly_run()
    assert await place.runs() == []
    down.times = down.hits
    place.time.ahead += 60
    await place.town.bot.timers.tick()
    await place.town.quiet()
    assert place.head == place.town.repo.branch("main")


async def test_a_lost_answer_to_a_move_is_no_problem(place: NightlyTown) -> None:
    first = place.push()
    place.town.github.faults.add(*MAKE, drop="after")
    await place.nightly_run()
    second = place.push()
    place.town.github.faults.add(*MOVE, drop="after")
    await place.nightly_run()
    assert place.head == second
    branch_state = await place.branch_state()
    assert (branch_state["sha"], branch_state["previous_sha"], branch_state["commits"]) == (second, first, 1)
    assert place.issues == []
    assert await place.town.failures() == []


async def test_a_commit_that_accepts_no_status_gets_it_within_an_hour_of_accepting_one(place: NightlyTown) -> None:
    sha = place.push()
    await place.town.quiet()
    refused = place.town.github.faults.add(*MARK, status=403, message="Not accessible", times=2)
    for advance in (place.nightly_run, place.hour):
        await advance()
        assert place.town.repo.status(sha, "nightly") is None
        assert (await place.runs())[0].state == "failed"
    failed_state = await place.branch_state()
    for _ in range(3):
        await place.hour()
    assert refused.hits == 2
    status = place.town.repo.status(sha, "nightly")
    assert status is not None
    assert (status.description or "").startswith("the branch nightly moved here on 20")
    assert [status.context for status in place.town.repo.all_statuses(sha)].count("nightly") == 1
    assert (await place.branch_state())["moved_at"] == failed_state["moved_at"]
    assert [run.state for run in await place.runs()] == ["done", "failed", "failed"]


async def test_the_answer_to_a_move_says_where_the_branch_is_so_nothing_is_read_after_it(place: NightlyTown) -> None:
    first = place.push()
    await place.nightly_run()
    place.push()
    second = place.push()
    pause = place.town.github.faults.pause(*MOVE, when="after")
    await place.reach_scheduled_time()
    await pause.reached.wait()
    place.town.github.faults.add(*HEAD, status=403, message="Not accessible")
    pause.resume()
    await place.town.quiet()
    assert (await place.runs())[0].state == "done"
    branch_state = await place.branch_state()
    assert (branch_state["sha"], branch_state["previous_sha"], branch_state["commits"]) == (second, first, 2)


async def test_a_move_by_somebody_else_is_not_reported_as_ours(place: NightlyTown) -> None:
    place.push()
    await place.nightly_run()
    foreign_sha = place.push()
    place.town.repo.move("refs/heads/nightly", foreign_sha, "octocat")
    await place.nightly_run()
    branch_state = await place.branch_state()
    assert (branch_state["sha"], branch_state["moved_at"]) == (foreign_sha, None)
    assert place.town.repo.status(foreign_sha, "nightly") is None


async def test_an_issue_whose_answer_was_lost_is_not_opened_twice(place: NightlyTown) -> None:
    place.push()
    await place.nightly_run()
    place.town.repo.push("nightly", by="hubot", message="A stray commit")
    place.push()
    place.town.github.faults.add("POST", "/repos/{owner}/{repo}/issues", drop="after")
    await place.nightly_run()
    assert [issue.state for issue in place.issues] == ["open"]
