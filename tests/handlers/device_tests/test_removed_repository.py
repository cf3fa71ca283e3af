"""A waiting check run ends even in a repository that app.yaml no longer names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bot.app.load import parse_config
from bot.engine.jobs.journal import Journal
from bot.github.repositories.known import Repositories
from handlers.device_tests.model import DeviceJobState
from handlers.device_tests.store import JOBS
from handlers.device_tests.sweep import JobSweep
from tests.handlers.device_tests.cases import new_job
from tests.handlers.driver import FULL_NAME, a_world

LAB = "example-lab"
RESULTS = {"results": {"bucket": "device-results", "labs": {LAB: {"targets": {"hexagon-v73": {"tier": 2}}}}}}


async def test_the_check_run_ends_after_the_repository_is_removed_from_app_yaml(tmp_path: Path) -> None:
    async with a_world(tmp_path, features=RESULTS) as world:
        pull = world.open()
        await world.happen()
        store, records = world.pipeline.parts[JOBS], world.records
        job = new_job(repository_id=world.repository.id, sha=pull.head_sha, pull_request=pull.number)
        await store.submit(job, approval_needed=False)

        async def sweep() -> None:
            config, journal = world.pipeline.config, Journal(world.connector)
            await JobSweep(config, store, journal, accept=world.accept).tick()
            await world.process_announced()

        await sweep()
        (check,) = world.repository.check_runs(pull.head_sha, "hardware/example-lab/hexagon-v73")
        assert check.status == "queued"
        config = parse_config(b"repositories: {octocat/other: {}}", "app.yaml")
        world.configure(config)
        world.pipeline = replace(world.pipeline, repositories=Repositories(config, records))
        await sweep()
        (check,) = world.repository.check_runs(pull.head_sha, "hardware/example-lab/hexagon-v73")
        assert (check.status, check.conclusion) == ("completed", "neutral")
        assert check.title == "The target no longer accepts requests"
        assert (await store.find(LAB, job.id)).state is DeviceJobState.ENDED
        assert await store.unshown() == []
        # The bot handles nothing else of that repository.
        pull.comment("octocat", "@ci help")
        await world.happen()
        assert pull.comments_by("nightjar[bot]") == []
        assert world.pipeline.config.repository(FULL_NAME) is None
