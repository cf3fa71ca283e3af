"""SIGKILL at every request: whatever the process was doing, nothing is lost and nothing is done twice."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path

from bot.app.features import CODEC
from tests.bucket import World
from tests.robustness.conversation import Rerun, SlowTests
from tests.robustness.crashes import Crash, Point, Undisturbed, alone, packed, spread
from tests.robustness.place import open_place

NOT_KILLED = {"UpsertSection", "CancelPausedJobs", "SubmitCommitJob"}
"""`welcome` plans the first, for a first contribution. The same writes are part of other effects, which kills hit."""
IN_CHANNELS = {"StoreReports", "SearchMoves", "EnsureIssue", "PostNews", "PostMessage"}
"""Effects of news: tests/robustness/test_channel_crashes.py has channels, and kills the bot around them."""

IN_ALARMS = {"RequestScan"}
"""Effects of alarms on main: tests/robustness/test_alarm_crashes.py kills the bot around them."""
IN_DEVICES = {
    "SubmitDeviceJob",
    "CancelDeviceJobs",
    "ApproveDeviceJobs",
    "NoteShownStep",
    "SendLabWebhook",
    "StartLabWorkflow",
}
"""Effects of device tests: tests/robustness/test_device_crashes.py and test_device_workflow_crashes.py kill the bot
around them."""

IN_MERGES = {
    "ApproveRun",
    "EndPendingMerge",
    "EnsureLabel",
    "StorePendingMerge",
    "LeaveQueue",
    "RequestRefresh",
    "MergePull",
    "UpdateBranch",
}
"""Effects of merges: tests/robustness/test_merge_crashes.py kills the bot around them."""

IN_SEARCHES = {
    *("AnnounceBegun", "StartSearch", "StoreSearch", "EnsureIssueSection"),
    *("CheckRevert", "CorrectDraft", "MakeRevertedHead", "RemoveRevertedHead", "StoreRevert"),
}
"""Effects of searches for a culprit: tests/robustness/test_search_crashes.py kills the bot at every write of one."""

IN_SECTIONS = {"RequestSection", "SubmitSection", "MarkOutOfDate", "ShowSection"}
"""Effects of sections about a commit: tests/robustness/test_section_crashes.py kills the bot around them."""

IN_TEAMS = {"StoreTeamList", "MentionSubscribers"}
"""Effects of team tags: tests/robustness/test_team_crashes.py kills the bot around them."""

IN_TIMERS = {"EnsurePull", "Remind"}
"""Effects of timers: tests/robustness/test_timer_crashes.py kills the bot around them."""

NO_CONVERSATION = (
    "no conversation uses these effects, so no kill hits them: write one in tests/handlers/<feature>/crashes.py, as "
    "docs/architecture.md shows"
)
AT_ONCE = 45
"""Requests that one kill hits: fewer than jobs run at once, for each job that is held takes the place of another."""


def test_the_conversations_use_every_kind_of_effect(
    undisturbed: Undisturbed, undisturbed_nightly_runs: Undisturbed
) -> None:
    elsewhere = IN_CHANNELS | IN_ALARMS | IN_DEVICES | IN_MERGES | IN_SEARCHES | IN_SECTIONS | IN_TEAMS | IN_TIMERS
    covered = undisturbed.kinds | undisturbed_nightly_runs.kinds | elsewhere
    assert CODEC.kinds - NOT_KILLED - covered == set(), NO_CONVERSATION
    assert covered <= CODEC.kinds


async def killed_and_started_again(
    folder: Path, undisturbed: Undisturbed, points: Sequence[Point], bucket: World | None = None
) -> None:
    """Kill the bot at each of these points, restart it, and check that the result is that of an undisturbed run."""
    groups = packed(points, undisturbed.points)
    batches = math.ceil(len(groups) / AT_ONCE)
    for number in range(batches):
        batch_folder = folder / str(number)
        await asyncio.to_thread(batch_folder.mkdir)
        await _killed(batch_folder, undisturbed, groups[number::batches], bucket)


async def _killed(
    folder: Path, undisturbed: Undisturbed, groups: Sequence[Sequence[Point]], bucket: World | None
) -> None:
    async with open_place(folder, f"sqlite:///{folder}/nightjar.db", bucket=bucket) as place:
        crash = Crash(place, groups)
        await place.start()
        await crash.kill_at_every_point()
        await crash.side_by_side.end()
        assert crash.side_by_side.differences(undisturbed.seen) == {}


async def test_a_kill_before_or_after_any_write_loses_and_repeats_nothing(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    await killed_and_started_again(tmp_path, undisturbed, undisturbed.around_writes)


async def test_a_kill_while_planning_or_between_plan_and_effects_loses_and_repeats_nothing(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    await killed_and_started_again(tmp_path, undisturbed, undisturbed.at_reads)


async def test_another_replica_takes_over_from_one_that_was_killed_for_good(
    undisturbed: Undisturbed, tmp_path: Path, postgres_url: str
) -> None:
    async with open_place(tmp_path, postgres_url) as place:
        crash = Crash(place, alone([*spread(undisturbed.around_writes, 8), *spread(undisturbed.at_reads, 4)]))
        await place.start()
        await crash.reach_points()
        replica = place.replica()
        await replica.start()
        place.app.webhook_url = f"{replica.url}/webhook"
        await place.bot.kill()
        crash.lose_what_is_held()
        try:
            await crash.side_by_side.end()
        finally:
            await replica.kill()
        assert crash.side_by_side.differences(undisturbed.seen) == {}


async def test_rerun_skips_what_already_ran_again_while_the_bot_was_dead(
    undisturbed: Undisturbed, tmp_path: Path, sqlite_url: str
) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        reruns = [p.at("after") for p in undisturbed.points if p.writes and p.route.endswith(("/rerun", "Parameters"))]
        crash = Crash(place, alone(reruns))
        await place.start()
        await crash.reach_points()
        await place.bot.kill()
        crash.lose_what_is_held()
        conversations = crash.side_by_side.conversations.values()
        for conversation in conversations:
            conversation.let_ci_end()
        await place.start()
        await crash.side_by_side.end()
        ends = {
            (type(conversation), run.attempt, len(conversation.job.builds) if conversation.job else 0)
            for conversation in conversations
            for run in conversation.repository.workflow_runs
        }
        assert ends == {(SlowTests, 2, 2), (Rerun, 2, 1)}
