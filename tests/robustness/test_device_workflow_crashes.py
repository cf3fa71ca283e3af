"""SIGKILL while the bot starts a lab's workflow: each job's workflow is started, and its job is claimed once."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp

from sandbox import Repository
from tests.bucket import World
from tests.robustness.crashes import Crash, Point, alone, points_of
from tests.robustness.place import Place, open_place
from tests.robustness.side_by_side import SideBySide
from tests.robustness.test_device_crashes import OTHER_TARGET, TARGET, DeviceRequest, configure

FILE = "nightjar.yml"
WORKFLOW = "on: {workflow_dispatch: {inputs: {job: {}, target: {}, repository: {}, sha: {}}}}"
DISPATCHES = "/dispatches"


class WorkflowRequest(DeviceRequest):
    """A lab in its own repository whose workflow is started for each job; the workflow then claims the job."""

    def __init__(self, place: Place, repository: Repository) -> None:
        super().__init__(place, repository)
        self.devices = place.add_repository(repository.owner.login, "devices")
        self.devices.push("main", {f".github/workflows/{FILE}": WORKFLOW}, by=self.devices.owner)

    async def hold(self) -> None:
        """Ask for tests; the workflows start, and the agents that they run claim the jobs."""
        await self.ask()
        await self.until(lambda: self.started.keys() == {TARGET, OTHER_TARGET})
        claimed = [await self.claim(target) for target in (TARGET, OTHER_TARGET)]
        # A workflow that started twice finds nothing to do.
        for target in (TARGET, OTHER_TARGET):
            assert await self._claims_nothing(target)
        for job in claimed:
            self.upload(job)
        await self.until(lambda: self._states() == {TARGET: ["success"], OTHER_TARGET: ["success"]})

    async def _claims_nothing(self, target: str) -> bool:
        while True:
            with suppress(aiohttp.ClientError):  # the bot is killed meanwhile
                return (await self.call("claims", {"targets": [target], "wait": 0}))[0] == 204

    @property
    def started(self) -> Counter[str]:
        """Return how often the workflow was started, by the target of the job."""
        return Counter(run.inputs["target"] for run in self.devices.workflow_runs)

    def seen(self) -> dict[str, Any]:
        """Return what everybody sees, except how often a workflow started."""
        return {**super().seen(), "started": {*self.started}}


async def with_workflows(place: Place, side_by_side: SideBySide) -> None:
    """Give each lab the workflow in its own repository."""
    await configure(place, side_by_side)
    path = place.folder / "app.yaml"
    config = json.loads(path.read_text())
    for conversation in side_by_side.conversations.values():
        assert isinstance(conversation, WorkflowRequest)
        (lab,) = config["repositories"][conversation.repository.full_name]["results"]["labs"].values()
        lab["workflow"] = {"repository": conversation.devices.full_name, "file": FILE}
    path.write_text(json.dumps(config))


async def undisturbed(folder: Path, bucket: World) -> tuple[list[Point], dict[str, Any]]:
    """Return the starts of workflows in the undisturbed conversation, and what people see in the end."""
    async with open_place(folder, f"sqlite:///{folder}/undisturbed.db", bucket=bucket) as place:
        side_by_side = SideBySide(place, {"alone": WorkflowRequest})
        await with_workflows(place, side_by_side)
        await place.start()
        side_by_side.begin()
        deliveries = await side_by_side.end()
        kinds = {effect["kind"] for delivery in deliveries for plan in delivery["plans"] for effect in plan["effects"]}
        assert "StartLabWorkflow" in kinds
        (conversation,) = side_by_side.conversations.values()
        assert isinstance(conversation, WorkflowRequest)
        assert conversation.started == {TARGET: 1, OTHER_TARGET: 1}
        return [
            point for point in points_of(place, conversation) if point.route.endswith(DISPATCHES)
        ], conversation.seen()


async def test_after_a_kill_a_workflow_is_started_again_and_its_job_is_claimed_once(
    tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    points, seen = await undisturbed(tmp_path, aws_world)
    assert [point.method for point in points] == ["POST", "POST"]
    around = [point.at(side) for point in points for side in ("before", "after")]
    async with open_place(tmp_path, sqlite_url, bucket=aws_world) as place:
        crash = Crash(place, alone(around))
        await with_workflows(place, crash.side_by_side)
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences({WorkflowRequest: seen}) == {}
        for point, conversation in zip(around, crash.side_by_side.conversations.values(), strict=True):
            assert isinstance(conversation, WorkflowRequest)
            # GitHub offers no way to ask whether a start whose answer was lost took effect. The last workflow's job may
            # be claimed before the bot would start it again.
            expected = {"before": ([1, 1],), "after": ([1, 2], [1, 1])[: 1 + point.number]}[point.side]
            assert sorted(conversation.started.values()) in expected, point
