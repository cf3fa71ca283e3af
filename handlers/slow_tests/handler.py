"""`@ci run slow tests`, `@ci run level nightly` and `@ci skip slow tests`: which tests CI runs for a pull request.

The choice belongs to the pull request and stays through later pushes. Every head carries a status that says on or off,
why, and how to change it; CI itself asks `GET …/decision` (`handlers.ci_decisions.service`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nightjar_lab.levels import LEVELS, MAIN, PULL_REQUEST, is_above

from bot.ci.base import CiRun, CiState
from bot.commands.dialogue import CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.config.shared import files_for
from bot.config.types import matches
from bot.core.events import MERGE_GROUP, PullRequestEvent
from bot.core.listing import listed
from bot.effects.remember import StoreRecord
from bot.effects.statuses import DESCRIPTION_LIMIT, SetStatus
from bot.github.merge_queue import CHECKS_REQUESTED, MergeGroup
from bot.github.text.markdown import code, truncate
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import pull_page_url
from handlers.slow_tests import texts
from handlers.slow_tests.config import SLOW_TESTS
from handlers.slow_tests.records import CHOICE, SlowTestsChoice
from handlers.slow_tests.revert.fixes import automatic_choice
from handlers.slow_tests.revert.texts import ON_FIX

if TYPE_CHECKING:
    from handlers.slow_tests.config import SlowTests

NAME = "slow-tests"
KEY = "slow_tests"
SUCCESS = "success"  # always this state: the status only informs, and must not block a merge
BRANCH_PREFIX = "refs/heads/"

RUN_SLOW = CommandSpec(
    name="run slow tests",
    summary=texts.RUN_SUMMARY,
    example="run slow tests",
    feature=KEY,
    synonyms=("run slow test", "run slow", "run the slow tests", "slow tests", "slow test", "slow"),
)
SKIP_SLOW = CommandSpec(
    name="skip slow tests",
    summary=texts.SKIP_SUMMARY,
    example="skip slow tests",
    feature=KEY,
    synonyms=("skip slow test", "skip slow", "skip the slow tests"),
    own_words=False,
)
RUN_LEVEL = CommandSpec(
    name="run level",
    summary=texts.LEVEL_SUMMARY,
    example="run level nightly",
    feature=KEY,
    arguments=Arguments(choices=LEVELS),
)

MOST_LISTED = 10

router = Router()


@dataclass(frozen=True, slots=True)
class SlowTestsVerdict:
    """Whether the slow tests run for a pull request, and why, in one line of plain text.

    `later_level` is the level of tests that run too, if it comes after `main`, otherwise empty.
    """

    is_on: bool
    reason: str
    later_level: str = ""

    @property
    def level(self) -> str:
        """The level of tests to run."""
        return self.later_level or (MAIN if self.is_on else PULL_REQUEST)


def decide_slow_tests(
    config: SlowTests, head_ref: str, choice: SlowTestsChoice | None, mention: str
) -> SlowTestsVerdict:
    """Decide whether slow tests run; `head_ref` is the pull request's branch in this repository, empty for a fork's."""
    if choice and choice.on and choice.later_level:
        reason = texts.ON_LEVEL.format(level=choice.later_level, login=choice.by, mention=mention)
        return SlowTestsVerdict(True, reason, choice.later_level)
    if head_ref and matches(config.branches, head_ref):
        return SlowTestsVerdict(True, texts.ON_BRANCH.format(branch=head_ref))
    if choice is None:
        return SlowTestsVerdict(False, texts.OFF_DEFAULT.format(mention=mention))
    if choice.on and choice.fixes:
        return SlowTestsVerdict(True, ON_FIX.format(fixes=choice.fixes, mention=mention))
    reason = texts.ON_REQUESTED if choice.on else texts.OFF_SKIPPED
    return SlowTestsVerdict(choice.on, reason.format(login=choice.by, mention=mention))


def slow_tests_status(config: SlowTests, sha: str, verdict: SlowTestsVerdict, url: str = "") -> SetStatus:
    """Return the effect that shows a verdict on a commit; `url` is a page with more, empty for none."""
    return SetStatus(sha, config.status, SUCCESS, truncate(verdict.reason, DESCRIPTION_LIMIT), url)


@router.on("pull_request", "opened", "reopened", "synchronize", name=NAME, feature=KEY)
async def show_on_head(context: Context) -> Plan:
    """Show on a new head whether slow tests run for its pull request."""
    config, event = context.config.of(SLOW_TESTS), PullRequestEvent.of(context.delivery.payload)
    if config is None or not event.pull.is_open:
        return NOTHING
    key = CHOICE.of(context.repository.id, event.pull.number)
    choice, effects = await context.records.get(key), list[Effect]()
    if choice is None and (choice := await automatic_choice(context, event.pull)) is not None:
        effects.append(StoreRecord.of(key, choice))
    verdict = decide_slow_tests(config, event.pull.head_ref, choice, context.app_config.mentions[0])
    # A command may come before a retry of this; then this verdict is out of date.
    status = replace(
        slow_tests_status(config, event.pull.head_sha, verdict, pull_page_url(context, event.pull.number)),
        record=key.name,
        recorded=CHOICE.dump(choice) if choice else None,
    )
    return Plan((*effects, status), why=verdict.reason)


@router.on("push", name="slow-tests-branches", feature=KEY)
async def show_on_branch(context: Context) -> Plan:
    """Show on each commit of a branch that slow tests always run there: CI that builds branches reads statuses."""
    config, payload = context.config.of(SLOW_TESTS), context.delivery.payload
    ref = payload.text("ref")
    branch = ref.removeprefix(BRANCH_PREFIX)
    # Pushes of tags have another prefix, and pushes that delete a branch have forty zeros for `after`.
    if config is None or branch == ref or payload.flag("deleted") or not matches(config.branches, branch):
        return NOTHING
    verdict = SlowTestsVerdict(True, texts.ON_BRANCH.format(branch=branch))
    return Plan((slow_tests_status(config, payload.string("after"), verdict),), why=verdict.reason)


async def run_slow_tests(request: CommandRequest, command: Command) -> CommandAnswer:
    """Switch slow tests on, and restart CI that finished without them."""
    return await _switch(request, MAIN)


async def run_level(request: CommandRequest, command: Command) -> CommandAnswer:
    """Switch to a level of tests, and restart CI that finished without them."""
    if not command.choice:
        usage = code(f"{request.mention} {RUN_LEVEL.example}")
        levels = ", ".join(map(code, LEVELS))
        return CommandAnswer(say=texts.NAME_LEVEL.format(command=usage, levels=levels), done=False)
    return await _switch(request, command.choice)


async def skip_slow_tests(request: CommandRequest, command: Command) -> CommandAnswer:
    """Switch slow tests off."""
    return await _switch(request, PULL_REQUEST)


async def _switch(request: CommandRequest, level: str) -> CommandAnswer:
    """Store the choice and show it; the status says the rest, so the answer names only what restarts or doesn't."""
    context, pull = request.context, request.pull
    config, mention = context.config.of(SLOW_TESTS), context.app_config.mentions[0]
    if config is None or not pull.is_open:
        return CommandAnswer(say=texts.CLOSED, done=False)
    key, url = CHOICE.of(context.repository.id, pull.number), pull_page_url(context, pull.number)
    earlier = await context.records.get(key)
    verdict = decide_slow_tests(config, pull.head_ref, earlier, mention)
    turn_on, later_level = level != PULL_REQUEST, level if is_above(level, MAIN) else ""
    if pull.head_ref and matches(config.branches, pull.head_ref) and not (later_level or verdict.later_level):
        files = files_for(context.config, KEY, "branches")
        say = (texts.ALWAYS_ON if turn_on else texts.NEVER_OFF).format(branch=code(pull.head_ref), files=files)
        return CommandAnswer((slow_tests_status(config, pull.head_sha, verdict, url),), say, done=turn_on)
    choice = SlowTestsChoice(
        on=turn_on,
        by=request.by.login,
        by_id=request.by.id,
        at=request.comment.written_at,
        later_level=later_level,
    )
    if earlier is not None and earlier.at > choice.at:
        # Webhooks arrive in any order, and a redelivery late: the latest comment counts.
        later = (RUN_SLOW if earlier.on else SKIP_SLOW).name
        if earlier.later_level:
            later = f"{RUN_LEVEL.name} {earlier.later_level}"
        say = texts.OVERTAKEN.format(login=code(earlier.by), command=code(f"{mention} {later}"))
        return CommandAnswer((slow_tests_status(config, pull.head_sha, verdict, url),), say)
    replaces = frozenset({RUN_SLOW.name, SKIP_SLOW.name, RUN_LEVEL.name})
    earlier_level, changes = verdict.level, verdict.level != level
    if earlier is not None and not changes:
        # The reason names who chose first; only the time moves on, so that an older comment no longer counts.
        choice = replace(earlier, at=choice.at)
    verdict = decide_slow_tests(config, pull.head_ref, choice, mention)
    # The record first: a CI that starts in between asks for the record, not for the status.
    effects: tuple[Effect, ...] = (
        StoreRecord.of(key, choice),
        slow_tests_status(config, pull.head_sha, verdict, url),
    )
    if not is_above(level, earlier_level):
        return CommandAnswer(effects, replaces=replaces)
    found_runs = await request.runs()
    files = files_for(context.config, KEY, "rerun")
    restarted, say = catch_up(found_runs.runs, config.rerun, pull.head_sha, mention, files)
    effects += tuple(found_runs.rerun(run, failed_only=False) for run in restarted)
    if found_runs.troubles:
        say = "\n".join(filter(None, [texts.NOTHING_SEEN.format(why=" ".join(found_runs.troubles)), say]))
    return CommandAnswer(effects, say, replaces=replaces)


def catch_up(
    runs: Sequence[CiRun], patterns: Sequence[str], sha: str, mention: str, files: str
) -> tuple[list[CiRun], str]:
    """Return the runs to restart because they finished before slow tests were on, and the text about all others.

    `files` are those that accept the patterns.
    """
    runs = [run for run in runs if run.state is not CiState.MISSING]
    matching = [run for run in runs if not run.untouchable and any(matches(patterns, name) for name in run.names)]
    ended = [run for run in matching if run.state in (CiState.SUCCEEDED, CiState.FAILED)]
    running = [run for run in matching if run.state is CiState.RUNNING]
    quoted_sha = code(sha[:7])
    sentences = []
    if ended:
        sentences.append(texts.RESTARTING.format(sha=quoted_sha, names=_run_names(ended)))
    if running:
        sentences.append(texts.STILL_RUNNING.format(names=_run_names(running), command=code(f"{mention} rerun")))
    if runs and not matching:
        restartable = any(not run.untouchable for run in runs)
        text = texts.NOTHING_MATCHES if restartable else texts.NOTHING_RESTARTABLE
        sentences.append(text.format(sha=quoted_sha, names=_run_names(runs), files=files))
    return ended, "\n".join(sentences)


def _run_names(runs: Sequence[CiRun]) -> str:
    return listed([code(truncate(run.name, 100)) for run in runs[:MOST_LISTED]], MOST_LISTED, len(runs))


@router.on(MERGE_GROUP, CHECKS_REQUESTED, name="merge-group-slow-tests", feature=KEY)
async def show_on_group(context: Context) -> Plan:
    """Show whether a group of the merge queue runs the slow tests."""
    config = context.config.of(SLOW_TESTS)
    if config is None:
        return NOTHING
    group = MergeGroup.of(context.delivery.payload)
    description = (
        texts.ON_BRANCH.format(branch=group.branch) if matches(config.branches, group.branch) else texts.OFF_IN_GROUP
    )
    page = pull_page_url(context, group.number)
    return Plan(
        (SetStatus(group.sha, config.status, SUCCESS, truncate(description, DESCRIPTION_LIMIT), page),), why=description
    )


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = (
    (RUN_SLOW, run_slow_tests),
    (RUN_LEVEL, run_level),
    (SKIP_SLOW, skip_slow_tests),
)
