"""A search for the commit with which a measurement got worse, from the nightly runs to the answer in the issue."""

from __future__ import annotations

import random
from pathlib import Path

from bot.results.few_tests import FewTestsOutcome, MedianValue, TestAttempts
from handlers.device_tests.effects import announce_step
from handlers.device_tests.model import DeviceJob
from handlers.searches.records import CULPRIT_SEARCH, SEARCHED_TEST
from tests.bucket import World
from tests.conversations.devices import HEXAGON, device_town
from tests.conversations.lab import LAB, TEST_FILE, measured_junit
from tests.conversations.search_town import SUITE, SearchTown
from tests.conversations.test_searches import pages_of
from tests.conversations.town import BOT

NIGHTS = 24
"""With fewer nights before it, a change of a noisy number is not reported."""
MATMUL, CONV = f"{TEST_FILE}::test_matmul", f"{TEST_FILE}::test_conv2d"
BEFORE, AFTER = 412.0, 467.0


class MeasuringTown(SearchTown):
    """A town whose lab measures the latency of an operator, and how many nodes of another were delegated."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # those of SearchTown
        self.rng = random.Random(35)

    async def night(self, sha: str, latency: float = BEFORE, nodes: int = 12) -> None:
        """Let the lab measure a commit of the nightly branch."""
        measured = {
            "test_matmul": f"latency {latency * self.rng.gauss(1, 0.004):.2f} ms lower",
            "test_conv2d": f"delegated_nodes {nodes} nodes higher",
        }
        self.devices.place.upload(sha, {"ops.xml": measured_junit(measured)}, suite=SUITE, target=HEXAGON)
        await self.devices.place.settle()

    def push(self, commits: int, pull: int = 0) -> None:
        """Push commits after the last night; the one at the position `pull`, counted from 1, is a pull request."""
        place = self.devices.place
        for number in range(1, commits + 1):
            place.town.github.clock.advance(seconds=20)
            if number == pull:
                self.pull = place.town.repo.open_pull_request("hubot", "Fuse", base="nightly")
                self.shas.append(self.pull.merge("octocat", "squash"))
            else:
                change = {"ops.cc": f"{len(self.shas)}"}
                self.shas.append(place.town.repo.push("nightly", change, by="octocat", message="Change").sha)

    async def measure(self, job: DeviceJob, *medians: MedianValue) -> None:
        """Let the results of a job arrive."""
        outcome = FewTestsOutcome({job.few_tests.tests[0]: TestAttempts(3, medians=medians)}, seconds=30.0)
        done = await self.devices.store.complete_few_tests(LAB, job.id, SUITE, outcome)
        await announce_step(self.devices.place.town.bot.services.announce, done)
        await self.devices.place.town.quiet()


async def test_a_latency_that_got_worse_is_searched_by_itself(tmp_path: Path, aws_world: World) -> None:
    features = "regressions: {to: [issue], find: true, comment: true}"
    async with device_town(f"sqlite:///{tmp_path}/nightjar.db", aws_world, features=features) as devices:
        town = MeasuringTown(devices)
        for _ in range(NIGHTS):
            town.shas = [devices.place.nightly_run()]
            await town.night(town.shas[0])
        town.push(8, pull=5)
        await town.night(town.shas[-1], AFTER)
        while await devices.place.town.bot.services.records.under(CULPRIT_SEARCH) == {}:
            await town.night(devices.place.nightly_run(), AFTER)
        search = await town.search()
        assert (search.request.tests, search.request.measurement) == ((MATMUL,), "latency")
        assert (search.request.good, search.request.bad) == (town.shas[0], town.shas[8])
        target = f"{LAB}/{HEXAGON}"
        assert search.histories == {f"{target} {MATMUL}": (0, NIGHTS)}
        first = (await devices.claim(is_able=True)).job
        assert (first.sha, first.few_tests.tests, first.few_tests.repeat) == (town.shas[8], (MATMUL,), 3)
        await town.measure(first, MedianValue("latency", "s", AFTER / 1000))
        assert (await town.search()).runs[0].counts == {}, "a value in another unit says nothing"
        jobs = 0
        while (search := await town.search()).answer is None:
            job, jobs = (await devices.claim(is_able=True)).job, jobs + 1
            level = AFTER if town.shas.index(job.sha) >= 5 else BEFORE
            noise = MedianValue("throughput", "ops", 7.0), MedianValue("latency", "ms", level * town.rng.gauss(1, 0.01))
            await town.measure(job, *noise)
        assert jobs < 20
        body = town.issue.body or ""
        assert f"**Began with #{town.pull.number} `{town.shas[5][:10]}` (99." in body
        assert f"`latency` of `{MATMUL}` of `{SUITE}`: `41" in body
        assert " ms`, new level | " in body
        assert " ms`, as before | " in body
        assert "the change does not repeat (" in body
        (comment,) = town.pull.comments_by(BOT)
        assert f"Since this change, `latency` of the test `{MATMUL}` of `{SUITE}` is at a new level" in comment.body
        assert f" ms` on `{target}`" in comment.body
        assert f'comment `@ci benchmark "{MATMUL}" on {target}`' in comment.body
        described, page = await pages_of(devices.place.town, f"/{search.id}")
        assert (described["measurement"], described["levels"][0]["unit"]) == ("latency", "ms")
        assert {run["value"] is None for run in described["runs"]} == {True, False}
        assert "Which change moved" in page
        assert " ms, new level" in page
        listed, page = await pages_of(devices.place.town)
        assert [row["measurement"] for row in listed["searches"]] == ["latency"]
        assert await devices.place.town.bot.services.records.under(SEARCHED_TEST) == {}, "no failure is searched"


async def test_a_maintainer_requests_a_search_for_a_measurement_and_the_device_has_changed(
    tmp_path: Path, aws_world: World
) -> None:
    async with device_town(
        f"sqlite:///{tmp_path}/nightjar.db", aws_world, features="regressions: {to: [issue]}"
    ) as devices:
        town = MeasuringTown(devices)
        town.shas = [devices.place.nightly_run()]
        await town.night(town.shas[0])
        town.push(4)
        await town.night(town.shas[-1], nodes=11)
        assert await devices.place.town.bot.services.records.under(CULPRIT_SEARCH) == {}, "nobody requested it"
        refusals = {
            "@ci find culprit of conv on hexagon-v73": "Name a target, as in",
            f"@ci find culprit latency of {CONV} on hexagon-v73": "No such measurement of this issue got worse on",
            f"@ci find culprit {MATMUL} on hexagon-v73": "No such measurement of this issue got worse on",
            "@ci find culprit on cortex-m": "No target that accepts requests is named",
            f"@ci reproduce {CONV} on hexagon-v73": "This is not an open issue of mine about tests that fail",
        }
        for text, answer in refusals.items():
            reactions, said = await town.comments("hubot", text)
            assert answer in said
            assert reactions == ["confused"]
        reactions, said = await town.comments("hubot", f"@ci find culprit delegated_nodes of {CONV} on hexagon-v73")
        assert f"I search for the change between `{town.shas[0][:10]}` and `{town.shas[4][:10]}`" in said
        assert reactions == ["+1"]
        while (search := await town.search()).answer is None:
            await town.measure((await devices.claim(is_able=True)).job, MedianValue("delegated_nodes", "nodes", 11))
        good = town.shas[0][:10]
        assert f"the new level is measured at {good} too, where it was as before." in (town.issue.body or "")
        assert "`12 -> 11 nodes` on" in (town.issue.body or "")
        _, said = await town.comments("hubot", f"@ci find culprit {CONV} on {LAB}/{HEXAGON}")
        assert "No commit is the cause" in said, "the same request is searched once"
        _, page = await pages_of(devices.place.town, f"/{search.id}")
        assert "The change does not repeat" in page
