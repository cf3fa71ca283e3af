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
from bot.commands.seen_head import other_head
from bot.core.listing import listed
from bot.github.text.markdown import code, truncate
from handlers.rerun import texts

APPROVE_CI = CommandSpec(
    name="approve ci",
    summary=texts.APPROVE_SUMMARY,
    example="approve ci",
    feature="rerun",
    allowed=("write",),
    # GitHub allows this only to people with write access, so app.yaml cannot allow it to others.
    fixed=True,
    synonyms=("approve the ci", "approve workflows", "approve the workflows"),
    arguments=Arguments(names="SHA"),
)

MOST_LISTED = 10


async def approve_ci(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Approve the waiting workflow runs of the head that the person saw."""
    pull = asked.pull
    if not pull.is_open:
        return CommandAnswer(say=texts.APPROVE_CLOSED, done=False)
    if refusal := await other_head(asked, command):
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


def _listed(runs: list[CiRun]) -> str:
    return listed([code(truncate(run.name, 100)) for run in runs[:MOST_LISTED]], MOST_LISTED, len(runs))
