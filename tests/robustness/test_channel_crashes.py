"""SIGKILL during messages to channels: they arrive, and one that may be a repetition says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bot.news.texts import MAYBE_POSTED_BEFORE
from sandbox import Fault
from tests.bucket import World
from tests.conversations.channels import channels
from tests.conversations.lab import junit, measured_junit
from tests.robustness.nightly_runs import BREAKS, NightlyRuns
from tests.robustness.place import BOT, Place, failures, open_place, tracebacks
from tests.robustness.test_secrets import stored
from tests.waiting import DEADLINE

MEASURED = measured_junit({"test_conv2d": "delegated_nodes 12 nodes higher"})


class Regression(NightlyRuns):
    """A test passes in one nightly run and fails in the next two; another one measures the same in each."""

    async def hold(self) -> None:
        """Upload everything, each commit's results after those of the previous commit were reported."""
        self.commits = {}
        for nightly_run, verdict, title in (
            ("first", "passed", "First run, nothing to compare with · 2 passed"),
            ("second", BREAKS, "1 new failure · 1 passed"),
            ("third", BREAKS, ""),
        ):
            sha = self._nightly_run(nightly_run, {"nightly_run": nightly_run})
            self.upload(sha, nightly_run, {"a.xml": junit(test_add=verdict), "b.xml": MEASURED})
            await self.until(partial(self._reported, sha, title))

    def _reported(self, sha: str, title: str) -> bool:
        """Return whether a commit's check run exists, or, without a title, whether the issue does."""
        return self._says(sha, title) if title else bool(self.repository.issues)


async def kill_at(place: Place, held: Sequence[Fault]) -> None:
    """Kill the bot while all these requests are held, then restart it."""
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*(fault.reached.wait() for fault in held))
    await place.bot.kill()
    for fault in held:
        fault.abandon()
    await place.start()


async def test_after_a_kill_a_message_arrives_and_says_when_it_may_be_a_repetition(
    tmp_path: Path, sqlite_url: str, aws_world: World
) -> None:
    async with (
        channels() as chats,
        open_place(tmp_path, sqlite_url, environment=chats.environment, bucket=aws_world) as place,
    ):
        repository = place.add_repository("octocat")
        place.configure([repository.full_name], regressions={"to": ["discord", "slack", "issue"]})
        held = [
            chats.discord.faults.pause("POST", "*", when="after"),
            chats.slack.faults.pause("POST", "*", when="before"),
            place.github.faults.pause("POST", "/repos/{owner}/{repo}/issues", when="after"),
        ]
        await place.start()
        nightly_runs = asyncio.create_task(Regression(place, repository).hold())
        await kill_at(place, held)
        await nightly_runs
        deliveries = await place.quiet()
        assert failures(deliveries) == []
        assert tracebacks(place.bot) == []
        first, second = chats.discord.said
        assert "began to fail" in first
        assert MAYBE_POSTED_BEFORE not in first
        assert second.splitlines() == [*first.splitlines()[:2], MAYBE_POSTED_BEFORE, *first.splitlines()[2:]]
        assert chats.slack.said == [second]
        (issue,) = [issue for issue in repository.issues.values() if issue.user.login == BOT]
        assert (issue.state, issue.comments) == ("open", [])

        for delivery in deliveries:
            if any(
                effect["kind"] in ("PostMessage", "PostNews")
                for plan in delivery["plans"]
                for effect in plan["effects"]
            ):
                code, _, stderr = await place.bot.run("replay", delivery["guid"], "--config", str(place.bot.config))
                assert code == 0, stderr
        assert (len(chats.discord.messages), len(chats.slack.messages), len(issue.comments)) == (2, 1, 0)
        seen = "\n".join(place.bot.output) + stored(sqlite_url)
        assert [path for path in (chats.discord.path, chats.slack.path) if path in seen] == []
