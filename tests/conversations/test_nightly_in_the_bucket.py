"""What labs read about the nightly branch: a file in the bucket, which only the bot writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.bucket import World, point_to
from tests.conversations.branches import API
from tests.conversations.lab import CHECK, LabTown, junit
from tests.conversations.nightly_runs import NightlyTown, nightly_town
from tests.conversations.town import REPOSITORY
from tests.robustness.gate import Gate, gate

KEY = f"results/{REPOSITORY}/nightly.json"


@dataclass
class Bench:
    """A town whose nightly branch a lab tests, and a gate between the bot and the lab's bucket."""

    place: NightlyTown
    bucket: World
    gate: Gate

    def read(self) -> dict[str, Any]:
        """Read the file as a lab does."""
        read: dict[str, Any] = json.loads(self.bucket.s3.get_object(Bucket=self.bucket.name, Key=KEY)["Body"].read())
        return read

    @property
    def file_requests(self) -> list[str]:
        """Return the bot's requests for the file, in order."""
        return [method for method, path in self.gate.requests if KEY in path]

    async def reason(self) -> str:
        """Return the reason of the timer's state."""
        _, _, answer = await self.place.town.ask(f"{API}/timers")
        return str(answer["timers"][0]["reason"])


@pytest.fixture
async def bench(sqlite_url: str, aws_world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    async with gate(aws_world.server) as opened:
        point_to(opened.url, monkeypatch)
        async with nightly_town(sqlite_url, bucket=aws_world) as place:
            yield Bench(place, aws_world, opened)


async def test_the_file_says_the_same_as_the_api(bench: Bench) -> None:
    place = bench.place
    first = place.push("The first")
    await place.nightly_run()
    assert (bench.read()["sha"], bench.read()["previous_sha"]) == (first, None)
    place.push("The second")
    third = place.push("The third")
    await place.nightly_run()
    branch_state = await place.branch_state()
    assert bench.read() == {
        "repository": REPOSITORY,
        "branch": "nightly",
        "sha": third,
        "previous_sha": first,
        "moved_at": branch_state["moved_at"],
        "commits": 2,
    }
    assert {name: branch_state[name] for name in bench.read() if name != "repository"} == {
        name: value for name, value in bench.read().items() if name != "repository"
    }
    assert await place.town.failures() == []


async def test_the_file_is_read_once_per_nightly_run_and_written_when_the_branch_moves(bench: Bench) -> None:
    bench.place.push()
    await bench.place.nightly_run()
    assert bench.file_requests == ["GET", "PUT"]
    await bench.place.nightly_run()
    assert bench.file_requests == ["GET", "PUT", "GET"]
    bench.place.push()
    await bench.place.nightly_run()
    assert bench.file_requests == ["GET", "PUT", "GET", "GET", "PUT"]


async def test_the_next_nightly_run_restores_a_file_that_was_removed_or_changed(bench: Bench) -> None:
    sha = bench.place.push()
    await bench.place.nightly_run()
    bench.bucket.s3.delete_object(Bucket=bench.bucket.name, Key=KEY)
    await bench.place.nightly_run()
    assert bench.read()["sha"] == sha
    bench.bucket.put(KEY, b'{"sha": "of somebody else"}')
    await bench.place.nightly_run()
    assert bench.read()["sha"] == sha


async def test_a_lab_tests_the_commit_in_the_file_and_the_file_is_not_taken_for_a_run(bench: Bench) -> None:
    place = bench.place
    lab = LabTown(place.town, bench.bucket, place.time)
    place.push()
    await place.nightly_run()
    await lab.settle()
    lab.upload(bench.read()["sha"], {"ops.xml": junit(test_add="passed")})
    await lab.settle()
    (run,) = lab.checks(bench.read()["sha"])
    assert (run.name, run.title) == (CHECK, "First run, nothing to compare with · 1 passed")
    _, _, listing = await place.town.ask(f"{API}/results/runs")
    assert [run["sha"] for run in listing["runs"]] == [place.head]
    assert await place.town.failures() == []


async def test_a_bucket_that_refuses_stops_nothing_else_and_the_timer_shows_the_reason(bench: Bench) -> None:
    place, server = bench.place, bench.bucket.server
    server.forbid(bench.bucket.name, "s3:PutObject")
    sha = place.push()
    await place.nightly_run()
    assert (place.head, (await place.branch_state())["sha"]) == (sha, sha)
    assert place.town.repo.status(sha, "nightly") is not None
    denied = "s3:PutObject is denied: the bucket's policy denies it, or no policy allows it to these credentials"
    assert f"bucket {bench.bucket.name}: {denied}" in await bench.reason()
    # This opens or closes no issue.
    place.town.repo.push("nightly", by="hubot", message="A stray commit")
    place.push()
    await place.nightly_run()
    assert [issue.state for issue in place.issues] == ["open"]
    server.forbid(bench.bucket.name)
    place.town.repo.move("refs/heads/nightly", None, "octocat")
    await place.hour()
    assert [issue.state for issue in place.issues] == ["closed"]
    assert bench.read()["sha"] == place.head


async def test_if_the_branch_cannot_be_moved_the_file_says_where_it_is(bench: Bench) -> None:
    place = bench.place
    place.push()
    await place.nightly_run()
    stray = place.town.repo.push("nightly", by="hubot", message="A stray commit").sha
    place.push()
    await place.nightly_run()
    assert bench.read()["sha"] == stray


async def test_a_bucket_that_was_down_gets_the_file_later(bench: Bench) -> None:
    away = bench.gate.faults.add("PUT", f"/{bench.bucket.name}/{KEY}", status=503, message="SlowDown", times=3)
    sha = bench.place.push()
    await bench.place.nightly_run()
    assert away.hits == 3
    assert bench.read()["sha"] == sha
    assert await bench.place.town.failures() == []


async def test_without_labs_nothing_is_written(sqlite_url: str) -> None:
    async with nightly_town(sqlite_url) as place:
        place.push()
        await place.nightly_run()
        (run,) = await place.runs()
        kinds = [effect.kind for plan in run.plans for effect in plan.effects]
        assert kinds == ["MoveBranch", "StoreRecord", "StoreRecord", "StoreRecord", "MarkNightly"]
