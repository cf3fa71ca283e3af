"""What the page of a pull request says of each command: who gave it, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.commands.conclusion import CommandResults, Item
from bot.engine.jobs.journal import DONE, FAILED, WAITING, DeliveryRecord, EffectRecord, JobState, PlanRecord, PlanStage
from bot.engine.jobs.notes import APPLIED, PLANNED, REFUSED, ROUTED, UNCHANGED
from handlers.dashboard.pull.story import DeliveryStory, StoryTeller, without_links

GITHUB = "https://github.com/octocat/compiler"
URL = f"{GITHUB}/pull/42#issuecomment-1"
RERUN, MERGE = "`@ci rerun`", "`@ci merge`"
HELP, REVERT, SLOW = "`@ci help`", "`@ci revert`", "`@ci run slow tests`"
ASK = "You need write access for this."
DENIED = "GitHub denied this: the App needs *Actions: write*."


def job(state: str = DONE, outcome: str = PLANNED, text: str = "", message: str = "") -> JobState:
    return JobState(1, state, outcome, text, 1, None, 1.0, message)


def restart(name: str, outcome: str = APPLIED, state: str = DONE, **texts: str) -> EffectRecord:
    return EffectRecord(job(state, outcome, **texts), "RerunJob", name, {}, "")


def effect(kind: str, text: str) -> EffectRecord:
    return EffectRecord(job(outcome=APPLIED, text=text), kind, "a", {}, "")


def stories(
    *items: Item,
    effects: tuple[EffectRecord, ...] = (),
    planned: JobState | None = None,
    concluded: JobState | None = None,
    basis: Mapping[str, Any] | None = None,
    url: str = URL,
) -> list[tuple[str, str, str, str, str]]:
    """Return the stories of a comment whose commands were planned, and concluded if it has items."""
    results = CommandResults("issue_comment", 1, "", 42, url, "2026-11-20T05:00:00Z", items, by="hubot")
    plans = [PlanRecord(planned or job(), "commands", "intent", 0, PlanStage.PLAN, effects)]
    if items or basis is not None:
        stored = asdict(results) if basis is None else basis
        plans.append(PlanRecord(concluded or job(), "commands", "intent", 0, PlanStage.CONCLUSION, (), stored))
    record = DeliveryRecord(job(), "guid", "issue_comment", "created", "", 42, 1.0, None, (), tuple(plans))
    teller = StoryTeller(lambda text: text, GITHUB, {})
    return [(story.login, story.command, story.state, story.result, story.url) for story in teller.commands(record)]


@pytest.mark.parametrize(
    ("item", "effects", "state", "result"),
    [
        (Item(RERUN, "", True, ("a", "b")), (restart("a"), restart("b")), "done", "restarted 2 jobs"),
        (Item(RERUN, "", True, ("a",)), (restart("a"), restart("b")), "done", "restarted 1 job"),
        (Item(RERUN, "", True, ("a",)), (restart("a", UNCHANGED, text="lint runs"),), "done", "lint runs"),
        (Item(MERGE, "", True), (), "done", "done"),
        (Item(MERGE, ASK, False), (), "refused", ASK),
        (Item(RERUN, "", True, ("a",)), (restart("a", state=FAILED, message=DENIED),), "failed", DENIED),
        (Item(RERUN, "", True, ("a",)), (restart("a", REFUSED, REFUSED, message="Too old."),), "refused", "Too old."),
        (Item(RERUN, f"See [the run](<{GITHUB}/1>).", True), (), "done", "See the run."),
        (Item(MERGE, "It waits:\n- `gpu` runs.\n- Nobody approved.\n\nTo stop it: `@ci cancel`", True), (), "done",
         "It waits: `gpu` runs. Nobody approved. To stop it: `@ci cancel`"),
        (Item(RERUN, "Restarting:\n- jobs of `CI`\n- `gpu`\n\nNot mine: `lint`\n- `docs`", True), (), "done",
         "Restarting: jobs of `CI`, `gpu`. Not mine: `lint` `docs`"),
        (Item(HELP, "Write a command.\n\n| command | who |\n|---|---|\n| `@ci help` | all |\n\nExample: `x`", True),
         (), "done", "Write a command. Example: `x`"),
        (Item(REVERT, "", True, ("a",)), (effect("OpenRevert", "opened #22"),), "done", "opened #22"),
        (Item(SLOW, "", True, ("a",)), (effect("SetStatus", "ci/slow-tests on 1a2b3c4: On"),), "done",
         "ci/slow-tests on 1a2b3c4: On"),
    ],
)  # fmt: skip
def test_a_command_that_has_ended(item: Item, effects: tuple[EffectRecord, ...], state: str, result: str) -> None:
    assert stories(item, effects=effects) == [("hubot", item.shown, state, result, URL)]


def test_commands_that_have_not_ended_or_that_nobody_carried_out() -> None:
    waiting = Item(RERUN, "", True, ("a",))
    assert stories(waiting, effects=(restart("a", state=WAITING),), concluded=job(WAITING))[0][2:4] == (
        "working", "in progress",
    )  # fmt: skip
    assert stories(planned=job(WAITING, ""))[0][2:4] == ("waiting", "tried 1 time; the bot will try again")
    limit = stories(planned=job(text="over the limit of commands an hour"), effects=(restart("reply"),))
    assert limit == [("", "", "refused", "over the limit of commands an hour", "")]
    assert stories(planned=job()) == []  # the comment has no command


def test_a_delivery_names_its_event_and_the_earliest_next_try() -> None:
    def story_of(*jobs: JobState, action: str = "created") -> DeliveryStory:
        plans = tuple(PlanRecord(tried, "labels", "intent", 0, PlanStage.PLAN, ()) for tried in jobs)
        routed = job(outcome=ROUTED)
        record = DeliveryRecord(routed, "guid", "issue_comment", action, "", 42, 7.0, None, (), plans)
        return StoryTeller(lambda text: text, GITHUB, {}).delivery(record)

    later, sooner = (JobState(int(moment), WAITING, "", "", 1, moment, 1.0, "") for moment in (90.0, 60.0))
    story = story_of(job(), later, sooner)
    assert (story.event, story.what, story.why) == ("issue_comment.created", "Someone commented", "")
    assert (story.received_at, story.next_try) == (
        datetime.fromtimestamp(7, UTC), datetime.fromtimestamp(60, UTC),
    )  # fmt: skip
    assert story_of(job()).next_try is None
    assert [story_of(action=action).event for action in ("deleted", "")] == ["issue_comment.deleted", "issue_comment"]


def test_what_another_version_stored_and_where_a_stored_address_leads() -> None:
    assert stories(basis={"items": 7}, effects=(restart("a"),)) == []
    assert stories(Item(MERGE, ASK, False), url="https://evil.example.org/")[0][4] == ""
    assert (
        without_links("[x](javascript:alert(1)) [y](https://z.example.org) [a][b]")
        == "[x](javascript:alert(1)) y [a][b]"
    )
