"""One command replays everything that failed during an outage, once, in order, at a limited pace."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sandbox import PullRequest, Repository
from tests.robustness.place import Place, failures, open_place

STATUSES = "/repos/{owner}/{repo}/statuses/{sha}"
SLOW_TESTS = "ci/slow-tests"
PULLS = 3


async def replay(place: Place, *options: str) -> tuple[int, str, str]:
    """Run `nightjar replay --failed` beside the bot."""
    return await place.bot.run("replay", "--failed", "--config", str(place.bot.config), "--pace", "6000", *options)


@asynccontextmanager
async def failed(folder: Path, url: str) -> AsyncIterator[tuple[Place, Repository, Repository, list[PullRequest]]]:
    """Let GitHub refuse the status of three pull requests of one repository, and of one of another."""
    async with open_place(folder, url) as place:
        repository, other_repository = place.add_repository("octocat"), place.add_repository("example-lab")
        place.configure([repository.full_name, other_repository.full_name])
        await place.start()
        place.github.faults.add("POST", STATUSES, status=422, times=None)
        pulls = [repository.open_pull_request("hubot", f"Change {n}") for n in range(PULLS)]
        pulls.append(other_repository.open_pull_request("hubot"))
        assert len(failures(await place.quiet())) == PULLS + 1
        place.github.faults.clear()
        yield place, repository, other_repository, pulls


def states(repository: Repository, pulls: list[PullRequest]) -> list[int]:
    return [len(repository.all_statuses(pull.head_sha)) for pull in pulls]


async def test_all_failures_of_a_repository_are_replayed_once(tmp_path: Path, sqlite_url: str) -> None:
    async with failed(tmp_path, sqlite_url) as (place, repository, other_repository, pulls):
        status, stdout, _ = await replay(
            place, "--since", "2h", "--repo", repository.full_name.upper(), "--dry-run", "--json"
        )
        dry_run: dict[str, Any] = json.loads(stdout)
        assert (status, dry_run["count"]) == (0, PULLS)
        assert [delivery["number"] for delivery in dry_run["deliveries"]] == [pull.number for pull in pulls[:PULLS]]
        assert states(repository, pulls[:PULLS]) == [0] * PULLS
        status, stdout, stderr = await replay(place, "--since", "2h", "--repo", repository.full_name)
        assert (status, stdout) == (0, f"{PULLS} replayed: {PULLS} done, 0 failed again, 0 not done yet\n")
        assert f"{PULLS} of {PULLS} queued, {PULLS} done" in stderr
        assert states(repository, pulls[:PULLS]) == [1] * PULLS
        assert states(other_repository, pulls[PULLS:]) == [0]
        status, stdout, _ = await replay(place, "--json")
        assert (status, json.loads(stdout)["done"]) == (0, 1)
        assert states(other_repository, pulls[PULLS:]) == [1]
        assert await replay(place) == (0, "nothing failed in that time\n", "")


async def test_replays_that_fail_again_are_named_and_the_exit_status_is_1(tmp_path: Path, sqlite_url: str) -> None:
    async with failed(tmp_path, sqlite_url) as (place, repository, _, pulls):
        place.github.faults.add("POST", STATUSES, status=422, times=None)
        status, stdout, _ = await replay(place, "--repo", repository.full_name)
        *lines, summary = stdout.splitlines()
        assert status == 1
        assert summary == f"{PULLS} replayed: 0 done, {PULLS} failed again, 0 not done yet"
        assert all(": failed: " in line for line in lines)
        assert len(lines) == PULLS
        assert states(repository, pulls[:PULLS]) == [0] * PULLS


async def test_without_a_server_the_command_does_the_work_itself(tmp_path: Path, sqlite_url: str) -> None:
    async with failed(tmp_path, sqlite_url) as (place, repository, other_repository, pulls):
        await place.bot.stop()
        status, stdout, _ = await replay(place)
        assert (status, stdout) == (0, f"{PULLS + 1} replayed: {PULLS + 1} done, 0 failed again, 0 not done yet\n")
        assert states(repository, pulls[:PULLS]) + states(other_repository, pulls[PULLS:]) == [1] * (PULLS + 1)
