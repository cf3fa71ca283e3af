"""Check that the head of a pull request is the commit that a person saw who approves it.

A comment names no commit, and its author may have seen an older one. So the person approves the commit that the comment
names by its whole SHA, or else the head in our own record at the time of the comment.

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


async def saw_head(asked: CommandRequest) -> bool:
    """Return whether the person saw this head, by our own record; false if we don't know."""
    known = await head_of(asked.context.records, asked.context.repository.id, asked.pull.number)
    head = asked.pull.head_sha
    return known is not None and known.sha == head and not known.may_follow(asked.comment.written_at)


async def other_head(asked: CommandRequest, command: Command) -> str:
    """Return why the head is not the commit that the person approves; empty if it is.

    The command's only name may be the SHA of that commit.
    """
    head, mention = asked.pull.head_sha, asked.context.app_config.mentions[0]
    shown, usage = code(head[:7]), code(f"{mention} {command.spec.name} {head}")
    if command.names:
        if len(command.names) > 1 or not _SHA.fullmatch(command.names[0]):
            return texts.NAME_ONE_COMMIT
        named = command.names[0].lower()
        if not head.startswith(named):
            return texts.NOT_THE_HEAD.format(named=code(named), head=shown, command=usage)
        if named == head:
            return ""
    if await head_of(asked.context.records, asked.context.repository.id, asked.pull.number) is None:
        return texts.UNKNOWN_HEAD.format(head=shown, command=usage)
    return "" if await saw_head(asked) else texts.HEAD_MOVED_SINCE.format(head=shown, command=usage)
