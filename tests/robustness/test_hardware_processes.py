"""Separate processes handle results: two replicas share a database, a bucket and a queue; one stops gracefully."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.bucket import World
from tests.robustness.crashes import Undisturbed
from tests.robustness.nightly_runs import NightlyRuns
from tests.robustness.place import open_place
from tests.robustness.side_by_side import SideBySide

CONVERSATION_COUNT = 3


async def test_two_replicas_ingest_each_run_once_and_write_each_check_once(
    undisturbed_nightly_runs: Undisturbed, tmp_path: Path, postgres_url: str, aws_world: World
) -> None:
    async with open_place(tmp_path, postgres_url, bucket=aws_world) as place:
        side_by_side = SideBySide(place, {str(n): NightlyRuns for n in range(CONVERSATION_COUNT)})
        replica = place.replica()
        await place.start()
        await replica.start()
        try:
            side_by_side.begin()
            deliveries = await side_by_side.end()
        finally:
            await replica.kill()
        assert side_by_side.differences(undisturbed_nightly_runs.seen) == {}
        stored = Counter(
            entry["run"] for log in (place.bot.logs, replica.logs) for entry in log if entry["event"] == "run stored"
        )
        assert set(stored.values()) == {1}
        assert len(stored) == 8 * CONVERSATION_COUNT
        handled = Counter(delivery["guid"] for delivery in deliveries if delivery["event"] == "nightjar.run")
        assert set(handled.values()) == {1}
        # One for each commit, one after somebody pressed a button, and one for a rerun.
        writes = Counter(request.path for request in place.github.requests.writes if "/check-runs" in request.path)
        assert set(writes.values()) == {5}


async def test_a_process_that_listens_to_a_queue_stops_at_once(
    tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    async with open_place(tmp_path, sqlite_url, bucket=aws_world) as place:
        place.configure([place.add_repository("octocat").full_name])
        assert place.gate is not None
        # A long poll is open for 20 seconds; this one gets no answer, after which the bot would poll again.
        poll = place.gate.faults.pause("POST", re.compile("."), when="before")
        await place.start()
        await poll.reached.wait()
        assert await place.bot.stop() == 0
        poll.abandon()
        assert [method for method, _ in place.gate.requests].count("POST") == 1


async def test_a_queue_without_a_region_is_one_line_of_error(tmp_path: Path, sqlite_url: str, aws_world: World) -> None:
    async with open_place(tmp_path, sqlite_url, bucket=aws_world, environment={"AWS_DEFAULT_REGION": ""}) as place:
        place.configure([place.add_repository("octocat").full_name])
        code, _, stderr = await place.bot.run("serve", "--config", str(place.bot.config), "--port", "0")
        assert code == 1
        (line,) = stderr.splitlines()
        assert "AWS_DEFAULT_REGION is not set" in line


async def test_without_labs_the_bot_neither_needs_nor_loads_aws(tmp_path: Path, sqlite_url: str) -> None:
    async with open_place(tmp_path, sqlite_url, environment={"PYTHONPROFILEIMPORTTIME": "1"}) as place:
        place.configure([place.add_repository("octocat").full_name])
        await place.start()
        assert await place.bot.stop() == 0
        loaded = {line.rpartition("|")[2].strip() for line in place.bot.output if line.startswith("import time:")}
        assert "handlers.results.watch" in loaded
        assert not {name for name in loaded if name.partition(".")[0] in ("boto3", "botocore", "moto")}
