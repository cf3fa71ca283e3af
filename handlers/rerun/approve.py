"""`@ci approve ci`: start the workflow runs that wait for a maintainer's approval, on one commit.

GitHub does not start the workflows of a new contributor's fork until somebody with write access has looked at them. The
approval is for the commit that this person saw: the one that the comment names, or else the head at that time.
https://docs.github.com/en/actions/how-tos/manage-workflow-runs/approve-runs-from-forks
"""

from __future__ import annotations

from bot.ci.base import CiRun, CiState
from bot.ci.rerun_actions import ApproveRun
from bot.ci.restarts import PullOrigin
from bot.commands.dialogue import CommandAnswer, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.core.patterns import Pattern
from bot.github.markdown import code, truncate
from bot.github.pull_heads import head_of
from handlers.rerun import texts

APPROVE_CI = CommandSpec(
    name="approve ci",
    summary=texts.APPROVE_SUMMARY,
    example="approve ci",
    feature="rerun",
    allowed=("write",),
    # GitHub leaves this to people with write access, and app.yaml must not pass it on.
    fixed=True,
    synonyms=("approve the ci", "approve workflows", "approve the workflows"),
    arguments=Arguments(names="SHA"),
)

MOST_LISTED = 10
_SHA = Pattern(r"[0-9a-fA-F]{7,40}")


async def approve_ci(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Approve what waits on the head that the person saw."""
    pull = asked.pull
    if not pull.is_open:
        return CommandAnswer(say=texts.APPROVE_CLOSED, done=False)
    if refusal := await _other_head(asked, command.names):
        return CommandAnswer(say=refusal, done=False)
    found = await asked.runs()
    waiting = [run for run in found.runs if run.state is CiState.UNAPPROVED and not run.untouchable]
    shown = code(pull.head_sha[:7])
    if not waiting:
        say = "\n".join([*([] if found.troubles else [texts.NOTHING_WAITS.format(sha=shown)]), *found.troubles])
        return CommandAnswer(say=say, done=not found.troubles)
    origin = PullOrigin.of(pull)
    effects = tuple(ApproveRun(int(run.key), pull.head_sha, run.name, origin) for run in waiting)
    say = "\n".join([texts.APPROVING.format(sha=shown, names=_listed(waiting)), *found.troubles])
    return CommandAnswer(effects, say, done=not found.troubles)


async def _other_head(asked: CommandRequest, names: tuple[str, ...]) -> str:
    """Say why the head is not the commit that the person approves; empty where it is."""
    head, mention = asked.pull.head_sha, asked.context.app_config.mentions[0]
    shown, command = code(head[:7]), code(f"{mention} {APPROVE_CI.name} {head[:12]}")
    if names:
        if len(names) > 1 or not _SHA.fullmatch(names[0]):
            return texts.NAME_ONE_COMMIT
        same = head.startswith(names[0].lower())
        return "" if same else texts.NOT_THE_HEAD.format(named=code(names[0]), head=shown, command=command)
    known = await head_of(asked.context.records, asked.context.repository.id, asked.pull.number)
    if known is None:
        return texts.UNKNOWN_HEAD.format(head=shown, command=command)
    if known.sha != head or known.may_follow(asked.comment.written_at):
        return texts.HEAD_MOVED_SINCE.format(head=shown, command=command)
    return ""


def _listed(runs: list[CiRun]) -> str:
    names = [code(truncate(run.name, 100)) for run in runs[:MOST_LISTED]]
    more = len(runs) - MOST_LISTED
    return ", ".join([*names, *([f"and {more} more"] if more > 0 else [])])
