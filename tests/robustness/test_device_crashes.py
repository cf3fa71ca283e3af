"""SIGKILL at any time from the request for a device test to its results:

one job and one check run, which always ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from bot.engine.tokens import LAB as LAB_SCOPE
from bot.engine.tokens import TokenStore
from handlers.device_tests.model import MOST_ATTEMPTS
from handlers.device_tests.store import JobStore
from sandbox.model.checks import CheckRun
from tests.bucket import World
from tests.conversations.lab import junit
from tests.robustness.conversation import Conversation
from tests.robustness.crashes import Crash, Point, packed, points_of
from tests.robustness.place import BOT, POLL_INTERVAL, Place, open_place
from tests.robustness.side_by_side import SideBySide
from tests.serving import served
from tests.waiting import DEADLINE, until

TARGET, OTHER_TARGET = "hexagon-v73", "adreno"
KINDS = {"SubmitDeviceJob", "CancelDeviceJobs", "ApproveDeviceJobs", "NoteShownStep"}
LOG = "https://lab.example.org/log/1"
_EXPIRE = """
UPDATE nightjar_device_jobs SET expires_at = 1 WHERE lab = %(lab)s AND target = %(target)s AND state = 'leased'
"""
"""As if a lab had been silent for the length of a lease, which no test has the time for."""


class LeaseLost(Exception):
    """The lease is lost: the agent must stop and claim again."""


class DeviceRequest(Conversation):
    """A contributor asks for two targets, a maintainer approves, the lab tests one, and a push cancels the other."""

    @property
    def lab(self) -> str:
        """Return the lab of this repository alone."""
        return f"lab-of-{self.repository.owner.login}"

    async def hold(self) -> None:
        """Ask, approve, test, push."""
        await self.ask()
        await self.until(lambda: self._states() == {TARGET: ["queued"], OTHER_TARGET: ["queued"]})
        await self.test()
        await self.until(lambda: self._states()[TARGET] == ["success"])
        self.pull.push()
        await self.until(lambda: self._states()[OTHER_TARGET] == ["neutral"])

    async def ask(self) -> None:
        """Ask for two targets as somebody with read access only, then approve the request."""
        self.pull = self.repository.open_pull_request("reader", "Faster")
        self.head = self.pull.head_sha
        await self.done(self.pull.comment("reader", f"@ci test on {TARGET} {OTHER_TARGET}"))
        await self.until(lambda: len(self.pull.comments_by(BOT)) == 1)
        # GitHub does not order a push and a comment of the same second.
        self.place.github.clock.advance(seconds=1)
        await self.done(self.pull.comment("triager", f"@ci approve tests {self.head}"))
        await self.until(lambda: len(self.pull.comments_by(BOT)) == 2)

    async def test(self) -> None:
        """Claim, test and upload as an agent does that starts over when its lease is lost."""
        for _ in range(MOST_ATTEMPTS):
            job = await self.claim()
            try:
                await self.heartbeat(job)
                await self.until(lambda: self._states()[TARGET] == ["in_progress"])
                await self.heartbeat(job)
            except LeaseLost:
                continue
            self.upload(job)
            return

    async def claim(self, target: str = TARGET) -> dict[str, Any]:
        """Claim until there is a job; a claim whose answer is lost costs a lease."""
        while True:
            try:
                status, answer = await self.call("claims", {"targets": [target], "wait": 1})
            except aiohttp.ClientError:
                await self.expire(target)
                continue
            if status == 200:
                job: dict[str, Any] = answer
                return job

    async def heartbeat(self, job: dict[str, Any]) -> None:
        """Extend the lease; repeat the call when its answer is lost."""
        while True:
            try:
                status, _ = await self.call(f"jobs/{job['job']}/heartbeat", {"lease": job["lease"], "log_url": LOG})
            except aiohttp.ClientError:
                continue
            if status == 409:
                raise LeaseLost
            assert status == 200, status
            return

    async def call(self, path: str, body: object, url: str = "") -> tuple[int, Any]:
        """Make a call as the lab, once the bot is up.

        Raises ClientError where the answer is lost.
        """
        await until(self._is_there, pause=POLL_INTERVAL)
        headers = {"Authorization": f"Bearer {TOKENS[self.lab]}"}
        address = f"{url or self.place.bot.url}/api/v1/labs/{self.lab}/{path}"
        async with aiohttp.ClientSession() as client, client.post(address, json=body, headers=headers) as answer:
            return answer.status, await answer.json() if answer.status == 200 else None

    async def _is_there(self) -> bool:
        try:
            async with aiohttp.ClientSession() as client, client.get(f"{self.place.bot.url}/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def expire(self, target: str = TARGET) -> None:
        """Let the lab's lease for a target expire, and let another replica notice."""
        async with self.place.beside() as engine:
            connector = engine.database.connector
            await connector.execute_query_async(_EXPIRE, lab=self.lab, target=target)
            await JobStore(connector).expire()

    def upload(self, job: dict[str, Any]) -> None:
        """Upload the results of a job."""
        bucket, content = self.place.bucket, junit(test_add="passed")
        assert bucket is not None
        bucket.put(f"{job['prefix']}a.xml", content)
        entry = {"name": "a.xml", "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        manifest = {
            "schema": 1,
            "sha": job["sha"],
            "suite": "operators",
            "files": [entry],
            "pull_request": job["pull_request"],
            "job": job["job"],
        }
        bucket.put(f"{job['prefix']}manifest.json", json.dumps(manifest).encode())

    def _runs(self, target: str) -> list[CheckRun]:
        runs = [run for run in self.repository.check_runs(self.head) if run.app is self.place.app]
        return [run for run in runs if run.name == f"hardware/{self.lab}/{target}"]

    def _states(self) -> dict[str, list[str]]:
        return {
            target: [run.conclusion or run.status for run in self._runs(target)] for target in (TARGET, OTHER_TARGET)
        }

    def seen(self) -> dict[str, Any]:
        """Return what everybody sees, with every check run on the head."""
        seen = super().seen()
        # Jobs of the same moment are ordered by their IDs, which differ between runs.
        first_label, second_label = (f"`lab-of-OWNER/{target}`" for target in (TARGET, OTHER_TARGET))
        comments = [
            (
                login,
                text.replace(self.head[:12], "HEAD").replace(
                    f"{second_label}, {first_label}", f"{first_label}, {second_label}"
                ),
                reactions,
            )
            for login, text, reactions in seen["comments"]
        ]
        checks = {
            target: [(run.status, run.conclusion, run.title) for run in self._runs(target)]
            for target in (TARGET, OTHER_TARGET)
        }
        return {**seen, "comments": comments, "checks": checks}


TOKENS: dict[str, str] = {}
"""The token of each lab in the present test."""


async def configure(place: Place, side_by_side: SideBySide, **keys: object) -> None:
    """Give each conversation its own lab with these keys, and switch everything unrelated off."""
    names = [conversation.repository.full_name for conversation in side_by_side.conversations.values()]
    place.configure(names, slow_tests=False, cc_reviewers=False, repository_file=False)
    path = place.folder / "app.yaml"
    config = json.loads(path.read_text())
    async with place.beside() as engine:
        tokens = TokenStore(engine.database.connector, LAB_SCOPE)
        for conversation in side_by_side.conversations.values():
            assert isinstance(conversation, DeviceRequest)
            results = {
                **(place.results or {}),
                "labs": {conversation.lab: {"targets": {TARGET: {"tier": 2}, OTHER_TARGET: {"tier": 2}}, **keys}},
            }
            repository = config["repositories"][conversation.repository.full_name]
            config["repositories"][conversation.repository.full_name] = {**repository, "results": results}
            TOKENS[conversation.lab], _ = await tokens.create(conversation.lab, seconds=3600.0)
    path.write_text(json.dumps(config))


async def undisturbed(folder: Path, bucket: World) -> tuple[list[Point], dict[type[Conversation], dict[str, Any]]]:
    """Return the requests of the undisturbed conversation, and what people see in the end."""
    async with open_place(folder, f"sqlite:///{folder}/undisturbed.db", bucket=bucket) as place:
        side_by_side = SideBySide(place, {"alone": DeviceRequest})
        await configure(place, side_by_side)
        await place.start()
        side_by_side.begin()
        deliveries = await side_by_side.end()
        kinds = {effect["kind"] for delivery in deliveries for plan in delivery["plans"] for effect in plan["effects"]}
        assert kinds >= KINDS
        (conversation,) = side_by_side.conversations.values()
        return points_of(place, conversation), {DeviceRequest: conversation.seen()}


async def test_a_kill_around_any_write_from_the_request_to_the_results_loses_and_repeats_nothing(
    tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    points, seen = await undisturbed(tmp_path, aws_world)
    around = [point.at(side) for point in points if point.writes for side in ("before", "after")]
    checks = [point for point in around if "/check-runs" in point.route]
    assert len(checks) == 2 * (3 + 2), "queued, in progress and its results; queued and cancelled"
    async with open_place(tmp_path, sqlite_url, bucket=aws_world) as place:
        crash = Crash(place, packed(around, points))
        await configure(place, crash.side_by_side)
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences(seen) == {}


class LabCalls(DeviceRequest):
    """A lab whose bot is killed after each of its calls, so that the answer is lost: the lab repeats the call."""

    async def hold(self) -> None:
        """Claim, give back, claim again, report progress, and upload."""
        await self.ask()
        await self.until(lambda: self._states() == {TARGET: ["queued"], OTHER_TARGET: ["queued"]})
        await self.claim()
        await self._kill()
        # The lease is lost with the answer: nobody else gets the job until it expires.
        status, _ = await self.call("claims", {"targets": [TARGET], "wait": 0})
        assert status == 204
        await self.expire()
        second = await self.claim()
        assert second["attempt"] == 2
        failed = f"jobs/{second['job']}/failed", {"lease": second["lease"], "reason": "the device does not answer"}
        assert (await self.call(*failed))[0] == 200
        await self._kill()
        assert (await self.call(*failed))[0] == 200
        third = await self.claim()
        assert third["attempt"] == 3, "the repeated report costs no attempt"
        await self.heartbeat(third)
        await self._kill()
        await self.heartbeat(third)
        await self.until(lambda: self._states()[TARGET] == ["in_progress"])
        self.upload(third)
        await self._kill()
        await self.until(lambda: self._states()[TARGET] == ["success"])

    async def _kill(self) -> None:
        await self.place.bot.kill()
        await self.place.start()


async def test_a_kill_after_any_call_of_a_lab_costs_at_most_one_lease(
    tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    async with open_place(tmp_path, sqlite_url, bucket=aws_world) as place:
        side_by_side = SideBySide(place, {"lab": LabCalls})
        await configure(place, side_by_side)
        await place.start()
        side_by_side.begin()
        deliveries = await side_by_side.end()
        (conversation,) = side_by_side.conversations.values()
        assert conversation.action_counts["check_run.created"] == 2
        ends = [delivery for delivery in deliveries if delivery["event"] == "nightjar.device-job"]
        assert len({delivery["guid"] for delivery in ends}) == len(ends)


async def test_a_lab_is_notified_of_its_job_even_if_the_bot_is_killed_while_sending_the_webhook(
    tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    delivery_ids: list[str] = []
    answers_allowed = asyncio.Event()

    async def receive(request: web.Request) -> web.Response:
        delivery_ids.append(request.headers["X-Nightjar-Delivery"])
        # The first message of each job gets no answer: the bot is killed while it waits for one.
        await asyncio.wait_for(answers_allowed.wait(), DEADLINE) if delivery_ids.count(delivery_ids[-1]) == 1 else None
        return web.Response(status=204)

    app = web.Application()
    app.router.add_post("/", receive)
    environment = {"LAB_SECRET": "a secret of the lab and the bot"}
    async with served(app) as url, open_place(tmp_path, sqlite_url, bucket=aws_world, environment=environment) as place:
        side_by_side = SideBySide(place, {"lab": DeviceRequest})
        webhook = {"url": url, "secret_env": "LAB_SECRET", "allow_private": True}
        await configure(place, side_by_side, webhook=webhook)
        await place.start()
        (conversation,) = side_by_side.conversations.values()
        assert isinstance(conversation, DeviceRequest)
        await conversation.ask()
        for jobs in (1, 2):
            await until(lambda jobs=jobs: len({*delivery_ids}) == jobs, pause=POLL_INTERVAL)  # type: ignore[misc]
            await place.bot.kill()
            await place.start()
        await until(lambda: sorted(delivery_ids) == sorted([*{*delivery_ids}] * 2), pause=POLL_INTERVAL)
        answers_allowed.set()
        claimed = await conversation.claim()
        assert (claimed["attempt"], f"{claimed['job']}-1" in delivery_ids) == (1, True)
        assert (await conversation.call("claims", {"targets": [TARGET], "wait": 0}))[0] == 204, (
            "two messages mean one job"
        )


async def test_two_replicas_hand_out_each_job_once(tmp_path: Path, postgres_url: str, aws_world: World) -> None:
    async with open_place(tmp_path, postgres_url, bucket=aws_world) as place:
        side_by_side = SideBySide(place, {str(n): DeviceRequest for n in range(2)})
        await configure(place, side_by_side)
        await place.start()
        replica = place.replica()
        await replica.start()
        try:
            for conversation in side_by_side.conversations.values():
                assert isinstance(conversation, DeviceRequest)
                await conversation.ask()
                # Eight claims for two jobs, spread over both replicas.
                bodies = [
                    (url, {"targets": [TARGET, OTHER_TARGET], "wait": 1}) for url in (place.bot.url, replica.url) * 4
                ]
                answers = await asyncio.gather(*(conversation.call("claims", body, url=url) for url, body in bodies))
                claimed = [job for status, job in answers if status == 200]
                assert sorted(job["target"] for job in claimed) == sorted([TARGET, OTHER_TARGET])
                assert len({job["job"] for job in claimed}) == len({job["lease"] for job in claimed}) == 2
                assert [status for status, _ in answers].count(204) == len(answers) - 2
        finally:
            await replica.kill()
