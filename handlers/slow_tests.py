"""`@ci run slow tests` and `@ci skip slow tests`: whether CI runs the slow tests for a pull request.

The choice belongs to the pull request and stays through later pushes. Every head carries a status that says on or off,
why, and how to change it; CI itself asks `GET …/decision` (`handlers.ci_decisions.service`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.ci.base import CiRun, State
from bot.commands.dialogue import Answer, Asked, CommandFunction
from bot.commands.grammar import Command, CommandSpec
from bot.config.types import matches
from bot.core.events import PullRequestEvent
from bot.effects.remember import StoreRecord
from bot.effects.statuses import DESCRIPTION_LIMIT, SetStatus
from bot.engine.records import Record
from bot.feature import Feature
from bot.github.markdown import code, truncate
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router

if TYPE_CHECKING:
    from bot.config import SlowTests

NAME = "slow-tests"
KEY = "slow_tests"
SUCCESS = "success"  # never anything else: the status informs and must not block a merge
BRANCH_PREFIX = "refs/heads/"

RUN_SLOW = CommandSpec(
    name="run slow tests",
    summary="Run the slow tests for this pull request, on this push and on later ones.",
    example="run slow tests",
    feature=KEY,
    synonyms=("run slow test", "run slow", "run the slow tests", "slow tests", "slow test", "slow"),
)
SKIP_SLOW = CommandSpec(
    name="skip slow tests",
    summary="Stop running the slow tests for this pull request.",
    example="skip slow tests",
    feature=KEY,
    synonyms=("skip slow test", "skip slow", "skip the slow tests"),
    own_words=False,
)

ON_BRANCH = "On: the branch {branch} always runs everything."
ON_ASKED = "On: asked for by {login}. To switch off, comment: {mention} skip slow tests"
OFF_SKIPPED = "Off: skipped by {login}. To switch on, comment: {mention} run slow tests"
OFF = "Off: nobody asked for them. To switch on, comment: {mention} run slow tests"

CLOSED = "This pull request is closed, so nothing was changed. Reopen it first."
ALWAYS_ON = "The branch {branch} always runs everything, so there is nothing to switch on."
NEVER_OFF = (
    "The branch {branch} always runs everything; `slow_tests: branches:` in `.github/nightjar.yaml` or app.yaml "
    "says so."
)
ALREADY_ON = "Slow tests are on for this pull request already, since {login} asked."
ALREADY_OFF = "Slow tests are off for this pull request already."
OVERTAKEN = "{login} said {command} after this, and that stands."
SWITCHED_ON = "Slow tests are on for this pull request, from {sha} on until somebody says {command}."
SWITCHED_OFF = "Slow tests are off for this pull request, beginning with what CI starts from now on."
RUN_AGAIN = "CI had ended on {sha}, so this runs again with them: {names}."
STILL_RUNNING = (
    "Still running, so left alone: {names}. Where they were past the point at which they ask, {command} with their "
    "name runs them again once they have ended."
)
NOTHING_TO_RERUN = "Nothing had to be run again: CI has not begun on {sha}, and will ask when it does."
NOTHING_MATCHES = (
    "Nothing was run again: what ended on {sha} is not under `slow_tests: rerun:` in `.github/nightjar.yaml` or "
    "app.yaml."
)
NOTHING_MINE = "Nothing was run again: what there is on {sha} I cannot start: {names}."
MOST_LISTED = 10

router = Router()


@dataclass(frozen=True, slots=True)
class Choice:
    """What somebody chose for a pull request: on or off, who, and when (ISO 8601)."""

    on: bool
    by: str
    by_id: int
    at: str


CHOICE = Record("slow-tests", 1, Choice, "whether slow tests run for a pull request, and who chose so", days=365)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the slow tests run for a pull request, and why, in one line of plain text."""

    on: bool
    reason: str


def decide(config: SlowTests, head_ref: str, choice: Choice | None, mention: str) -> Verdict:
    """Say whether slow tests run; `head_ref` is the branch of this repository it comes from, empty for a fork's."""
    if head_ref and matches(config.branches, head_ref):
        return Verdict(True, ON_BRANCH.format(branch=head_ref))
    if choice is None:
        return Verdict(False, OFF.format(mention=mention))
    said = ON_ASKED if choice.on else OFF_SKIPPED
    return Verdict(choice.on, said.format(login=choice.by, mention=mention))


def status(config: SlowTests, sha: str, verdict: Verdict) -> SetStatus:
    """Return the effect that shows a verdict on a commit."""
    return SetStatus(sha, config.status, SUCCESS, truncate(verdict.reason, DESCRIPTION_LIMIT))


@router.on("pull_request", "opened", "reopened", "synchronize", name=NAME, feature=KEY)
async def show_on_head(context: Context) -> Plan:
    """Show on a new head whether slow tests run for its pull request."""
    config, event = context.config.slow_tests, PullRequestEvent.of(context.delivery.payload)
    if config is None or not event.pull.is_open:
        return NOTHING
    key = CHOICE.of(context.repository.id, event.pull.number)
    choice = await context.records.get(key)
    verdict = decide(config, event.pull.head_ref, choice, context.app_config.mentions[0])
    # A command may come between this and its retry: then what this would show is no longer true.
    shown = replace(
        status(config, event.pull.head_sha, verdict), record=key.name, recorded=CHOICE.dump(choice) if choice else None
    )
    return Plan((shown,), why=verdict.reason)


@router.on("push", name="slow-tests-branches", feature=KEY)
async def show_on_branch(context: Context) -> Plan:
    """Show on a branch that always runs everything that it does, for a CI that builds branches reads statuses too."""
    config, payload = context.config.slow_tests, context.delivery.payload
    ref = payload.text("ref")
    branch = ref.removeprefix(BRANCH_PREFIX)
    if config is None or branch == ref or payload.flag("deleted") or not matches(config.branches, branch):
        return NOTHING
    verdict = Verdict(True, ON_BRANCH.format(branch=branch))
    return Plan((status(config, payload.string("after"), verdict),), why=verdict.reason)


async def run_slow_tests(asked: Asked, command: Command) -> Answer:
    """Switch slow tests on, and have CI run again where it was done without them."""
    return await _switch(asked, on=True)


async def skip_slow_tests(asked: Asked, command: Command) -> Answer:
    """Switch slow tests off."""
    return await _switch(asked, on=False)


async def _switch(asked: Asked, *, on: bool) -> Answer:
    context, pull = asked.context, asked.pull
    config, mention = context.config.slow_tests, context.app_config.mentions[0]
    if config is None or not pull.is_open:
        return Answer(say=CLOSED, done=False)
    key = CHOICE.of(context.repository.id, pull.number)
    before = await context.records.get(key)
    verdict = decide(config, pull.head_ref, before, mention)
    always = pull.head_ref and matches(config.branches, pull.head_ref)
    if always:
        said = (ALWAYS_ON if on else NEVER_OFF).format(branch=code(pull.head_ref))
        return Answer((status(config, pull.head_sha, verdict),), said, done=on)
    choice = Choice(on=on, by=asked.by.login, by_id=asked.by.id, at=asked.remark.written_at)
    if before is not None and before.at > choice.at:
        # Webhooks come in any order, and one that was missed comes late: what was said last stands.
        later = (RUN_SLOW if before.on else SKIP_SLOW).name
        said = OVERTAKEN.format(login=code(before.by), command=code(later))
        return Answer((status(config, pull.head_sha, verdict),), said)
    if verdict.on is on:
        # Written down all the same: another command of this comment may have said the opposite before.
        kept = replace(before, at=choice.at) if before else choice
        shown = status(config, pull.head_sha, decide(config, pull.head_ref, kept, mention))
        already = ALREADY_ON.format(login=code(kept.by)) if on else ALREADY_OFF
        return Answer((StoreRecord.of(key, kept), shown), already)
    verdict = decide(config, pull.head_ref, choice, mention)
    # The record first: a CI that starts in between asks for the record, not for the status.
    effects: tuple[Effect, ...] = (StoreRecord.of(key, choice), status(config, pull.head_sha, verdict))
    if not on:
        return Answer(effects, SWITCHED_OFF)
    found = await asked.runs()
    again, said = catch_up(found.runs, config.rerun, pull.head_sha, mention)
    effects += tuple(found.rerun(run, failed_only=False) for run in again)
    return Answer(effects, "\n".join([said, *found.troubles]), done=not found.troubles)


def catch_up(runs: Sequence[CiRun], patterns: Sequence[str], sha: str, mention: str) -> tuple[list[CiRun], str]:
    """Return what must run again because it had ended before slow tests were on, and what to say."""
    runs = [run for run in runs if run.state is not State.MISSING]
    ours = [run for run in runs if not run.untouchable and any(matches(patterns, name) for name in run.names)]
    ended = [run for run in ours if run.state in (State.SUCCEEDED, State.FAILED)]
    running = [run for run in ours if run.state is State.RUNNING]
    shown = code(sha[:7])
    said = [SWITCHED_ON.format(sha=shown, command=code(f"{mention} {SKIP_SLOW.name}"))]
    if ended:
        said.append(RUN_AGAIN.format(sha=shown, names=_listed(ended)))
    if running:
        said.append(STILL_RUNNING.format(names=_listed(running), command=code(f"{mention} rerun")))
    if not runs:
        said.append(NOTHING_TO_RERUN.format(sha=shown))
    elif not ours:
        others = any(not run.untouchable for run in runs)
        said.append((NOTHING_MATCHES if others else NOTHING_MINE).format(sha=shown, names=_listed(runs)))
    return ended, "\n".join(said)


def _listed(runs: Sequence[CiRun]) -> str:
    names = [code(truncate(run.name, 100)) for run in runs[:MOST_LISTED]]
    more = len(runs) - MOST_LISTED
    return ", ".join([*names, *([f"and {more} more"] if more > 0 else [])])


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = (
    (RUN_SLOW, run_slow_tests),
    (SKIP_SLOW, skip_slow_tests),
)


FEATURE = Feature(name="slow_tests", config=(KEY,), router=router, commands=COMMANDS, records=(CHOICE,))
