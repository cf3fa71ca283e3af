"""`@ci merge`, `@ci merge when green`, `@ci cancel`: people with write access merge a pull request by a comment.

A command applies to the head that its author saw. The answer lists every reason that blocks the merge, each with what
to do about it (`handlers.merge.readiness`). `handlers.merge.waiting` handles pending merges.

This differs from TVM's bot on purpose. A pull request's author with write access may merge it. A line with more than
the command is not a command, and the answer says so. We ask GitHub for the role of a login and compare ids, instead of
searching lists. A command on a closed pull request is answered. Errors are explained in a sentence, not by a traceback.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.commands.dialogue import CommandAnswer, CommandFunction, CommandRequest, ConcludingCommand
from bot.commands.grammar import Command, CommandSpec
from bot.core.errors import TryAgain, UserError
from bot.github.commits.ours import Ours
from bot.github.commits.required import State
from bot.github.pull_heads import head_of
from bot.github.text.markdown import code
from bot.plan.handler import Router
from handlers.merge import texts
from handlers.merge.conclusion import decide_after_command
from handlers.merge.config import MERGE as MERGE_KEY
from handlers.merge.effects import COMPUTING_SECONDS, LeaveQueue, MergePull, merge_target
from handlers.merge.pending import pending_merge
from handlers.merge.pending_effects import RequestRefresh, StorePendingMerge
from handlers.merge.readiness import BlockerKind, RestartCommand, is_undecided, listed_blockers, merge_blockers
from handlers.merge.records import PendingMerge
from handlers.merge.snapshot import merge_state_of
from handlers.merge.update_effects import UpdateBranch
from handlers.rerun.commands import RERUN
from handlers.rerun.config import RERUN as RERUN_KEY

if TYPE_CHECKING:
    from bot.plan.effect import Effect
    from bot.plan.handler import Context
    from handlers.merge.readiness import MergeBlocker, MergeState

KEY = "merge"

MERGE = CommandSpec(
    name="merge",
    summary=texts.MERGE_SUMMARY,
    example="merge",
    feature=KEY,
    allowed=("write",),
    synonyms=("merge this", "merge this pr", "merge it", "merge now"),
)
WHEN_GREEN = CommandSpec(
    name="merge when green",
    summary=texts.WHEN_GREEN_SUMMARY,
    example="merge when green",
    feature=KEY,
    allowed=("write",),
    synonyms=(
        "merge when ready",
        "merge this when green",
        "merge this when ready",
        "merge this pr when green",
        "merge this pr when ready",
        "merge it when green",
        "merge it when ready",
    ),
)
CANCEL = CommandSpec(
    name="cancel",
    summary=texts.CANCEL_SUMMARY,
    example="cancel",
    feature=KEY,
    # The author may cancel too: nobody should have to watch the merge of a fault that they have just found.
    allowed=("author", "write"),
    synonyms=("cancel merge", "cancel the merge", "stop", "stop merge", "stop the merge"),
    own_words=False,
)

UPDATE = CommandSpec(
    name="update",
    summary=texts.UPDATE_SUMMARY,
    example="update",
    feature=KEY,
    allowed=("write",),
    synonyms=("update branch", "update the branch", "update this", "update this pr", "update it"),
)

router = Router()


async def merge(request: CommandRequest, command: Command) -> CommandAnswer:
    """Merge now, or list everything that blocks the merge."""
    merge_state, blockers = await _read_blockers(request)
    if blockers:
        return CommandAnswer(say=texts.NOT_MERGED.format(why=listed_blockers(blockers)), done=False)
    return _start_merge(request, merge_state)


async def merge_when_green(request: CommandRequest, command: Command) -> CommandAnswer:
    """Merge now if nothing blocks it; wait if all blockers can resolve without a push; else list them."""
    merge_state, blockers = await _read_blockers(request)
    if not blockers:
        return _start_merge(request, merge_state)
    if not all(blocker.can_resolve for blocker in blockers):
        return CommandAnswer(say=texts.WILL_NOT_WAIT.format(why=listed_blockers(blockers)), done=False)
    number = request.pull.number
    # The answer below already says that the branch is behind; `refused` keeps a refresh from saying it again.
    pending = replace(
        _pending_of(request, merge_state), refused=any(blocker.kind is BlockerKind.BEHIND for blocker in blockers)
    )
    cancel = code(f"{request.mention} {CANCEL.name}")
    say = texts.WAITING.format(sha=code(pending.sha[:7]), why=listed_blockers(blockers), cancel=cancel)
    return CommandAnswer((StorePendingMerge(number, pending), RequestRefresh(number, watch=pending.sha)), say)


async def cancel(request: CommandRequest, command: Command) -> CommandAnswer:
    """Cancel the pending merge, and remove it from the merge queue if it is there."""
    number = request.pull.number
    pending = await pending_merge(request.context.records, request.context.repository.id, number)
    # Stored even if no merge is pending: an earlier command of this comment may just have asked for one.
    said_at = request.comment.written_at or request.pull.updated_at
    effects: tuple[Effect, ...] = (StorePendingMerge(number, said_at=said_at),)
    calls_off = frozenset({merge_target(number), effects[0].effect_key})
    if pending is None:
        return CommandAnswer(effects, texts.NOTHING_TO_CANCEL, calls_off=calls_off)
    if pending.queued:
        effects += (LeaveQueue(number),)
    return CommandAnswer(
        effects, texts.CANCELLED.format(sha=code(pending.sha[:7]), by=code(pending.by.login)), calls_off=calls_off
    )


async def _read_blockers(request: CommandRequest) -> tuple[MergeState, list[MergeBlocker]]:
    """Read the pull request's merge state from GitHub; return it, and what blocks its merge.

    Raises `UserError` if its head is not the one that the person saw, and `TryAgain` while GitHub computes conflicts.
    """
    context, sha = request.context, request.pull.head_sha
    await _check_head(request)
    config = context.config.of(MERGE_KEY)
    assert config is not None
    own_contexts = Ours.of(context.me, context.config)
    repository = context.repository.full_name
    number = request.pull.number
    merge_state = await merge_state_of(context.github, repository, number, own_contexts, config.required)
    if merge_state.pull.head_sha != sha:
        raise TryAgain(texts.WHY_UNDECIDED)  # somebody has just pushed: the webhook is on its way
    blockers = merge_blockers(
        merge_state, config, await _restart_command(request, merge_state), update_command(context)
    )
    if is_undecided(merge_state, blockers):
        raise TryAgain(texts.WHY_UNDECIDED, retry_in=COMPUTING_SECONDS)
    return merge_state, blockers


async def _check_head(request: CommandRequest) -> None:
    """Raise `UserError` if a webhook has reported that the head moved after the command was written.

    A command may be handled hours after it was written, because GitHub redelivers webhooks that failed. If no webhook
    has reported the pull request yet, for example because it is older than the App's installation, we cannot know which
    head the person saw. The bot merges all the same: somebody with write access has approved exactly this head, and a
    refusal would be permanent, because another command would not tell us more. `approve ci`, which needs no approval,
    refuses.
    """
    seen_head, head_sha = request.known_head, request.pull.head_sha
    if seen_head is not None and seen_head != head_sha:
        raise UserError(texts.HEAD_MOVED.format(old=code(seen_head[:7]), new=code(head_sha[:7])))
    recorded_head = await head_of(request.context.records, request.context.repository.id, request.pull.number)
    if recorded_head is not None and recorded_head.may_follow(request.comment.written_at):
        raise UserError(texts.HEAD_MOVED_SINCE.format(new=code(head_sha[:7])))


async def update(request: CommandRequest, command: Command) -> CommandAnswer:
    """Have GitHub merge the base branch into the head that the comment's author saw."""
    await _check_head(request)
    pull = request.pull
    return CommandAnswer((UpdateBranch(pull.number, pull.head_sha, pull.base_ref),))


def update_command(context: Context) -> str:
    """Return the command that merges the base branch into a pull request."""
    return f"{context.app_config.mentions[0]} {UPDATE.name}"


async def _restart_command(request: CommandRequest, merge_state: MergeState) -> RestartCommand | None:
    """Return the command that restarts failed runs; None if nothing failed, `rerun` is off, or a CI is unavailable.

    Only runs that `rerun` can restart are offered. Finding them takes three requests, and none if no check failed.
    """
    failed = any(signal.state is State.RED for signal in merge_state.signals)
    if not failed or request.context.config.of(RERUN_KEY) is None:
        return None
    found_runs = await request.runs()
    if found_runs.troubles:
        return None
    names = frozenset(name for run in found_runs.runs if not run.untouchable for name in run.names)
    return RestartCommand(f"{request.mention} {RERUN.name}", names)


def _pending_of(request: CommandRequest, merge_state: MergeState) -> PendingMerge:
    pull, comment = merge_state.pull, request.comment
    return PendingMerge(pull.head_sha, pull.base_ref, request.by, comment.url, comment.written_at or pull.updated_at)


def _start_merge(request: CommandRequest, merge_state: MergeState) -> CommandAnswer:
    pull = merge_state.pull
    say = (
        texts.TO_THE_QUEUE.format(sha=code(pull.head_sha[:7]), base=code(pull.base_ref))
        if merge_state.rules.queue
        else ""
    )
    return CommandAnswer((MergePull(pull.number, _pending_of(request, merge_state)),), say)


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = (
    (MERGE, ConcludingCommand(merge, decide_after_command)),
    (WHEN_GREEN, ConcludingCommand(merge_when_green, decide_after_command)),
    (CANCEL, cancel),
    (UPDATE, update),
)
