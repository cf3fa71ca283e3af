"""Check that a person who approves a pull request has seen its head.

A comment has no commit, and its author may have seen an older one. So the person approves the commit whose whole SHA
the comment contains, or else the head in the bot's record at the time of the comment.

A short SHA does not identify a commit: anybody can compute two commits that share 12 digits within a minute, push the
harmless one for the review, and the other one for the approval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.commands import texts
from bot.core.patterns import Pattern
from bot.github.pull_heads import head_of
from bot.github.text.markdown import code

if TYPE_CHECKING:
    from bot.commands.dialogue import CommandRequest
    from bot.commands.grammar import Command

_SHA = Pattern(r"[0-9a-fA-F]{7,64}")


async def saw_head(request: CommandRequest) -> bool:
    """Return whether the person saw this head, by the bot's record; False if the record does not say."""
    recorded_head = await head_of(request.context.records, request.context.repository.id, request.pull.number)
    head = request.pull.head_sha
    return (
        recorded_head is not None
        and recorded_head.sha == head
        and not recorded_head.may_follow(request.comment.written_at)
    )


async def other_head(request: CommandRequest, command: Command) -> str:
    """Return why the head is not the commit that the person approves; empty if it is.

    The command's only name may be the SHA of that commit.
    """
    head, mention = request.pull.head_sha, request.mention
    short_head, usage = code(head[:7]), code(f"{mention} {command.spec.name} {head}")
    if command.names:
        if len(command.names) > 1 or not _SHA.fullmatch(command.names[0]):
            return texts.NAME_ONE_COMMIT
        named = command.names[0].lower()
        if not head.startswith(named):
            return texts.NOT_THE_HEAD.format(named=code(named), head=short_head, command=usage)
        if named == head:
            return ""
    if await head_of(request.context.records, request.context.repository.id, request.pull.number) is None:
        return texts.UNKNOWN_HEAD.format(head=short_head, command=usage)
    return "" if await saw_head(request) else texts.HEAD_MOVED_SINCE.format(head=short_head, command=usage)
