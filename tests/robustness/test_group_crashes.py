"""SIGKILL while news of two targets waits and is posted together: one issue is opened for both, then closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.engine.postgres.connector import CONNECTIONS
from handlers.regressions.records import REGRESSION_GROUP, REGRESSIONS, WAITING_NEWS
from sandbox.faults import When
from sandbox.model.issues import Issue
from tests.bucket import World
from tests.conversations.lab import FILES, junit
from tests.robustness.crashes import Boundary, Crash, Point, alone, points_of
from tests.robustness.held_rows import HeldRows, RowWrite, StoredPoint, held_rows, without_time_limit
from tests.robustness.nightly_runs import BREAKS, NightlyRuns
from tests.robustness.place import BOT, LAB, POLL_INTERVAL, TARGET, Place, open_place
from tests.tables import make_tables
from tests.waiting import until

TARGETS = (TARGET, "adreno")
ISSUES = "/repos/{owner}/{repo}/issues"
ONE_ISSUE = "/repos/{owner}/{repo}/issues/{issue_number}"
MESSAGE = "1 test failing on 2 targets since"


class BothFail(NightlyRuns):
    """A test passes on two targets in one nightly run, fails in the next two, and passes again."""

    async def hold(self) -> None:
        """Upload everything, each commit's results after those of the previous commit were reported."""
        self.commits = {}
        self._nightly_run("the beginning", FILES)
        await self._tested("first", "passed")
        await self._tested("second", BREAKS)
        await self._evaluated("second")
        await self._tested("third", BREAKS)
        await self.until(lambda: self.issues)
        # Uploaded at once, while the bot may still be down or may not have stored which issue it opened.
        await self._tested("fourth", "passed")
        await self.until(lambda: all(issue.state == "closed" for issue in self.issues))

    async def _tested(self, name: str, verdict: str) -> None:
        sha = self._nightly_run(name, {"nightly_run": name})
        for target in TARGETS:
            self.upload(sha, name, {"a.xml": junit(test_add=verdict)}, target=target)
        await self.until(lambda: len(self._runs(sha)) == len(TARGETS))

    async def _evaluated(self, name: str) -> None:
        """Wait until both targets were evaluated at a commit, because news does not wait for a target that never was.

        Check runs do not show it: another job writes them, and may be done earlier.
        """
        keys = [REGRESSIONS.of(self.repository.id, LAB, target) for target in TARGETS]
        async with self.place.beside() as engine:

            async def evaluated() -> bool:
                records = [await engine.records.get(key) for key in keys]
                return all(record is not None and record.nightly_sha == self.commits[name] for record in records)

            await until(evaluated, pause=POLL_INTERVAL)

    @property
    def issues(self) -> list[Issue]:
        """Return the bot's issues in the repository."""
        return [issue for issue in self.repository.issues.values() if issue.user.login == BOT]


def at_every_write(rows: HeldRows, side: When) -> list[Boundary]:
    """Return one side of every write that messages about both targets need, except writes of the results themselves."""
    sides: list[Boundary] = [Point(BothFail, "github", method, route, 0, side) for method, route in WRITES]
    kinds = ((WAITING_NEWS, 0), (WAITING_NEWS, 1), (REGRESSION_GROUP, 0))
    stored = [
        StoredPoint(BothFail, rows, operation, kind.prefix, number, side)
        for kind, number in kinds
        for operation in OPERATIONS
    ]
    # Each held row keeps a connection of the bot busy. Without a free one the bot stops, and logs errors.
    assert len(stored) < CONNECTIONS
    return [*sides, *stored]


WRITES = (("POST", ISSUES), ("PATCH", ONE_ISSUE))
OPERATIONS: tuple[RowWrite, ...] = ("INSERT", "DELETE")


@pytest.mark.exhaustive("before")
@pytest.mark.parametrize("side", ["before", "after"])
async def test_a_kill_around_any_write_of_a_message_about_two_targets_loses_and_repeats_nothing(
    tmp_path: Path, postgres_url: str, aws_world: World, side: When
) -> None:
    make_tables(postgres_url)
    with held_rows(postgres_url) as rows:
        async with open_place(tmp_path, without_time_limit(postgres_url), bucket=aws_world) as place:
            crash = Crash(place, alone(at_every_write(rows, side)))
            conversations = crash.side_by_side.conversations
            place.configure(
                [conversation.repository.full_name for conversation in conversations.values()],
                regressions={"to": ["issue"]},
            )
            await place.start()
            await crash.kill_at_every_point()
            await crash.side_by_side.end()
            assert [
                (name, differences)
                for name, conversation in conversations.items()
                if (differences := _differences(place, conversation))
            ] == []


def _differences(place: Place, conversation: object) -> list[object]:
    """Return what differs from a run without a kill."""
    assert isinstance(conversation, BothFail)
    issues = [(issue.title.startswith(MESSAGE), issue.state, issue.comments) for issue in conversation.issues]
    failing_sha, recovered_sha = (conversation.commits[name][:7] for name in ("second", "fourth"))
    lines = [f"- `{LAB}/{target}`: 1 test, since `{failing_sha}`; recovered at `{recovered_sha}`" for target in TARGETS]
    named = [line in (issue.body or "").splitlines() for issue in conversation.issues for line in lines]
    # The bot may also edit the issue first, if the targets recover one after the other.
    action_counts = {
        action: count
        for action, count in conversation.action_counts.items()
        if action.startswith("issue") and action != "issues.edited"
    }
    written = {
        (point.method, point.route)
        for point in points_of(place, conversation)
        if point.writes and ISSUES in point.route
    }
    results = [issues, named, action_counts, written]
    expected = [[(True, "closed", [])], [True, True], {"issues.opened": 1, "issues.closed": 1}, set(WRITES)]
    return [result for result, expected_result in zip(results, expected, strict=True) if result != expected_result]
