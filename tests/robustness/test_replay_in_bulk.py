"""One command replays everything that failed during an outage, once, in order, at a limited pace."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sandbox import PullRequest, Repository
from tests.robustness.place import Place, failures, place

STATUSES = "/repos/{owner}/{repo}/statuses/{sha}"
SLOW_TESTS = "ci/slow-tests"
PULLS = 3


async def replay(here: Place, *options: str) -> tuple[int, str, str]:
    """Run `nightjar replay --failed` beside the bot."""
    return await here.bot.run("replay", "--failed", "--config", str(here.bot.config), "--pace", "6000", *options)


@asynccontextmanager
async def failed(folder: Path, url: str) -> AsyncIterator[tuple[Place, Repository, Repository, list[PullRequest]]]:
    """Let GitHub refuse the status of three pull requests of one repository, and of one of another."""
    async with place(folder, url) as here:
        ours, theirs = here.add_repository("octocat"), here.add_repository("example-lab")
        here.configure([ours.full_name, theirs.full_name])
        await here.start()
        here.github.faults.add("POST", STATUSES, status=422, times=None)
        pulls = [ours.open_pull_request("hubot", f"Change {n}") for n in range(PULLS)]
        pulls.append(theirs.open_pull_request("hubot"))
        assert len(failures(await here.quiet())) == PULLS + 1
        here.github.faults.clear()
        yield here, ours, theirs, pulls


def states(repository: Repository, pulls: list[PullRequest]) -> list[int]:
    return [len(repository.all_statuses(pull.head_sha)) for pull in pulls]


async def test_all_failures_of_a_repository_are_replayed_once(tmp_path: Path, sqlite_url: str) -> None:
    async with failed(tmp_path, sqlite_url) as (here, ours, theirs, pulls):
        status, out, _ = await replay(here, "--since", "2h", "--repo", ours.full_name.upper(), "--dry-run", "--json")
        shown: dict[str, Any] = json.loads(out)
        assert (status, shown["count"]) == (0, PULLS)
        assert [one["number"] for one in shown["deliveries"]] == [pull.number for pull in pulls[:PULLS]]
        assert states(ours, pulls[:PULLS]) == [0] * PULLS
        status, out, err = await replay(here, "--since", "2h", "--repo", ours.full_name)
        assert (status, out) == (0, f"{PULLS} replayed: {PULLS} done, 0 failed again, 0 not done yet\n")
        assert f"{PULLS} of {PULLS} queued, {PULLS} done" in err
        assert states(ours, pulls[:PULLS]) == [1] * PULLS
        assert states(theirs, pulls[PULLS:]) == [0]
        status, out, _ = await replay(here, "--json")
        assert (status, json.loads(out)["done"]) == (0, 1)
        assert states(theirs, pulls[PULLS:]) == [1]
        assert await replay(here) == (0, "nothing failed in that time\n", "")


async def test_replays_that_fail_again_are_named_and_the_exit_status_is_1(tmp_path: Path, sqlite_url: str) -> None:
    async with failed(tmp_path, sqlite_url) as (here, ours, _, pulls):
        here.github.faults.add("POST", STATUSES, status=422, times=None)
        status, out, _ = await replay(here, "--repo", ours.full_name)
        *lines, summary = out.splitlines()
        assert status == 1
        assert summary == f"{PULLS} replayed: 0 done, {PULLS} failed again, 0 not done yet"
        assert all(": failed: " in line for line in lines)
        assert len(lines) == PULLS
        assert states(ours, pulls[:PULLS]) == [0] * PULLS


async def test_without_a_server_the_command_does_the_work_itself(tmp_path: Path, sqlite_url: str) -> None:
    async with failed(tmp_path, sqlite_url) as (here, ours, theirs, pulls):
        await here.bot.stop()
        status, out, _ = await replay(here)
        assert (status, out) == (0, f"{PULLS + 1} replayed: {PULLS + 1} done, 0 failed again, 0 not done yet\n")
        assert states(ours, pulls[:PULLS]) + states(theirs, pulls[PULLS:]) == [1] * (PULLS + 1)
