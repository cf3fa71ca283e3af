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
from bot.github.markdown import code
from bot.github.ours import Ours
from bot.github.pull_heads import head_of
from bot.github.required import State
from bot.plan.handler import Router
from handlers.merge import texts
from handlers.merge.conclusion import decide_after_command
from handlers.merge.config import MERGE as MERGE_KEY
from handlers.merge.effects import COMPUTING_SECONDS, LeaveQueue, MergePull, merge_target
from handlers.merge.pending import PendingMerge, pending_merge
from handlers.merge.pending_effects import RequestRefresh, StorePendingMerge
from handlers.merge.readiness import BlockerKind, RestartCommand, listed_blockers, merge_blockers, undecided
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


async def merge(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Merge now, or list everything that blocks the merge."""
    merge_state, found = await _refresh(asked)
    if found:
        return CommandAnswer(say=texts.NOT_MERGED.format(why=listed_blockers(found)), done=False)
    return _merging(asked, merge_state)


async def merge_when_green(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Merge now if nothing blocks it; wait if all blockers can resolve without a push; else list them."""
    merge_state, found = await _refresh(asked)
    if not found:
        return _merging(asked, merge_state)
    if not all(reason.can_resolve for reason in found):
        return CommandAnswer(say=texts.WILL_NOT_WAIT.format(why=listed_blockers(found)), done=False)
    number = asked.pull.number
    # The answer below already says that the branch is behind; `refused` keeps a refresh from saying it again.
    pending = replace(
        _pending_of(asked, merge_state), refused=any(reason.kind is BlockerKind.BEHIND for reason in found)
    )
    cancel = code(f"{asked.context.app_config.mentions[0]} {CANCEL.name}")
    say = texts.WAITING.format(sha=code(pending.sha[:7]), why=listed_blockers(found), cancel=cancel)
    return CommandAnswer((StorePendingMerge(number, pending), RequestRefresh(number, watch=pending.sha)), say)


async def cancel(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Cancel the pending merge, and remove it from the merge queue if it is there."""
    number = asked.pull.number
    pending = await pending_merge(asked.context.records, asked.context.repository.id, number)
    # Stored even if no merge is pending: an earlier command of this comment may just have asked for one.
    said_at = asked.comment.written_at or asked.pull.updated_at
    effects: tuple[Effect, ...] = (StorePendingMerge(number, said_at=said_at),)
    calls_off = frozenset({merge_target(number), effects[0].target})
    if pending is None:
        return CommandAnswer(effects, texts.NOTHING_TO_CANCEL, calls_off=calls_off)
    if pending.queued:
        effects += (LeaveQueue(number),)
    return CommandAnswer(
        effects, texts.CANCELLED.format(sha=code(pending.sha[:7]), by=code(pending.by.login)), calls_off=calls_off
    )


async def _refresh(asked: CommandRequest) -> tuple[MergeState, list[MergeBlocker]]:
    """Return the pull request's merge state, and what blocks its merge.

    Raises `UserError` if its head is not the one that the person saw, and `TryAgain` while GitHub computes conflicts.
    """
    context, sha = asked.context, asked.pull.head_sha
    await _check_head(asked)
    config = context.config.of(MERGE_KEY)
    assert config is not None
    ours = Ours.of(context.me, context.config)
    repository = context.repository.full_name
    merge_state = await merge_state_of(context.github, repository, asked.pull.number, ours, config.required)
    if merge_state.pull.head_sha != sha:
        raise TryAgain(texts.WHY_UNDECIDED)  # somebody has just pushed: the webhook is on its way
    found = merge_blockers(merge_state, config, await _restart_command(asked, merge_state), update_command(context))
    if undecided(merge_state, found):
        raise TryAgain(texts.WHY_UNDECIDED, retry_in=COMPUTING_SECONDS)
    return merge_state, found


async def _check_head(asked: CommandRequest) -> None:
    """Raise `UserError` if a webhook has reported that the head moved after the command was written.

    A command may be handled hours after it was written, because GitHub redelivers webhooks that failed. If no webhook
    has reported the pull request yet, for example because it is older than the App's installation, we cannot know which
    head the person saw. The bot merges all the same: somebody with write access has approved exactly this head, and a
    refusal would be permanent, because another command would not tell us more. `approve ci`, which needs no approval,
    refuses.
    """
    known, new = asked.known_head, asked.pull.head_sha
    if known is not None and known != new:
        raise UserError(texts.HEAD_MOVED.format(old=code(known[:7]), new=code(new[:7])))
    head = await head_of(asked.context.records, asked.context.repository.id, asked.pull.number)
    if head is not None and head.may_follow(asked.comment.written_at):
        raise UserError(texts.HEAD_MOVED_SINCE.format(new=code(new[:7])))


async def update(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Have GitHub merge the base branch into the head that the comment's author saw."""
    await _check_head(asked)
    pull = asked.pull
    return CommandAnswer((UpdateBranch(pull.number, pull.head_sha, pull.base_ref),))


def update_command(context: Context) -> str:
    """Return the command that merges the base branch into a pull request."""
    return f"{context.app_config.mentions[0]} {UPDATE.name}"


async def _restart_command(asked: CommandRequest, merge_state: MergeState) -> RestartCommand | None:
    """Return the command that restarts failed runs; None if nothing failed, `rerun` is off, or a CI is unavailable.

    Only runs that `rerun` can restart are offered. Finding them takes three requests, and none if no check failed.
    """
    failed = any(signal.state is State.RED for signal in merge_state.signals)
    if not failed or asked.context.config.of(RERUN_KEY) is None:
        return None
    found = await asked.runs()
    if found.troubles:
        return None
    names = frozenset(name for run in found.runs if not run.untouchable for name in run.names)
    return RestartCommand(f"{asked.context.app_config.mentions[0]} {RERUN.name}", names)


def _pending_of(asked: CommandRequest, merge_state: MergeState) -> PendingMerge:
    pull, comment = merge_state.pull, asked.comment
    return PendingMerge(pull.head_sha, pull.base_ref, asked.by, comment.url, comment.written_at or pull.updated_at)


def _merging(asked: CommandRequest, merge_state: MergeState) -> CommandAnswer:
    pull = merge_state.pull
    say = (
        texts.TO_THE_QUEUE.format(sha=code(pull.head_sha[:7]), base=code(pull.base_ref))
        if merge_state.rules.queue
        else ""
    )
    return CommandAnswer((MergePull(pull.number, _pending_of(asked, merge_state)),), say)


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = (
    (MERGE, ConcludingCommand(merge, decide_after_command)),
    (WHEN_GREEN, ConcludingCommand(merge_when_green, decide_after_command)),
    (CANCEL, cancel),
    (UPDATE, update),
)
