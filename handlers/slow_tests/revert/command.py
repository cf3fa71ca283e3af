"""`@ci revert`: a draft that reverts a merged pull request; it has slow tests, and says what failed."""

from __future__ import annotations

from bot.commands.dialogue import CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Command, CommandSpec
from bot.effects.remember import StoreRecord
from bot.effects.reverts import MergedPull, OpenRevert, RevertState, existing_reverts, marker_of, revert_title
from bot.github.commits.ours import Ours
from bot.github.commits.required import State
from bot.github.commits.signals import signals_of
from bot.plan.page_links import pull_page_url
from handlers.slow_tests.config import SLOW_TESTS
from handlers.slow_tests.records import REVERT_REQUEST, RevertRequest
from handlers.slow_tests.revert import texts

REVERT = CommandSpec(
    name="revert",
    summary=texts.SUMMARY,
    example="revert",
    feature=SLOW_TESTS.name,
    allowed=("write",),
    fixed=True,
)
ANSWERS = {RevertState.OPEN: texts.OPEN, RevertState.MERGED: texts.MERGED, RevertState.CLOSED: texts.CLOSED}


async def revert(request: CommandRequest, command: Command) -> CommandAnswer:
    """Open the revert, or name the one that exists. GitHub links a new one on the pull request, so it needs no answer.

    Slow tests are switched on when GitHub reports the new pull request (`handlers.slow_tests.revert.fixes`).
    """
    context, pull = request.context, request.pull
    if not pull.merge_commit:
        say = texts.STILL_OPEN if pull.is_open else texts.NOT_MERGED
        return CommandAnswer(say=say.format(number=pull.number), done=False)
    repository, merged = context.repository.full_name, MergedPull(pull.number, pull.head_branch, pull.base_ref)
    existing = await existing_reverts(context.github, repository, context.me, merged)
    if existing:
        first = existing[0]
        say = ANSWERS[first.state].format(number=first.number, reverted=pull.number)
        return CommandAnswer(say=say, done=first.state is not RevertState.CLOSED)
    own_reports = Ours.of(context.me, context.config).on(pull.base_ref)
    signals = await signals_of(context.github, repository, pull.merge_commit, own_reports)
    body = texts.revert_body(
        marker_of(pull.number),
        f"{repository}#{pull.number}",
        pull.merge_commit,
        [signal for signal in signals if signal.state is State.RED and not signal.ours],
        number=pull.number,
        comment=request.comment.url,
        page=pull_page_url(context, pull.number),
    )
    return CommandAnswer(
        (
            StoreRecord.of(
                REVERT_REQUEST.of(context.repository.id, pull.number), RevertRequest(request.by.login, request.by.id)
            ),
            OpenRevert(merged, revert_title(pull.title), body),
        )
    )


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((REVERT, revert),)
