"""What the commands share that request runs of a few tests on one target."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.commands.dialogue import CommandAnswer, CommandRequest
from bot.github.text.markdown import code
from bot.results.settings.results import Results
from handlers.device_tests.availability import Availability
from handlers.device_tests.commands import approval_text, budget_text, open_text, target_problems
from handlers.device_tests.requesting import JobRequest, TargetAnswer
from handlers.device_tests.targets import RequestTarget, named_targets

if TYPE_CHECKING:
    from bot.plan.handler import Context


class NoTarget(Exception):
    """No target, or more than one, can take the request; the text says why to the person."""


async def one_target(
    context: Context, results: Results, accepting: Sequence[RequestTarget], name: str, several: str
) -> RequestTarget:
    """Return the target that a name means, with its current tier.

    `accepting` has all targets that ever accept requests; `several` is the text for a name of several targets, with
    places for `name` and `names`. Raises `NoTarget`.
    """
    # In a thread: some hundred targets are compared.
    named = await asyncio.to_thread(named_targets, results, [name])
    availability = await Availability.of(context)
    targets = availability.accepting(named.targets)
    if problems := target_problems(named, accepting, availability):
        raise NoTarget("\n".join(problems))
    if len(targets) > 1:
        names = ", ".join(code(target.full_name) for target in targets)
        raise NoTarget(several.format(name=code(name), names=names))
    return targets[0]


def answer_for(request: CommandRequest, job_request: JobRequest, answer: TargetAnswer, requested: str) -> CommandAnswer:
    """Return the answer to a request: `requested` if it became a job, else why it did not."""
    if answer.effect is None:
        text = open_text(request, answer.open_job) if answer.open_job else budget_text(answer)
        return CommandAnswer(say=text, done=bool(answer.open_job))
    lines = [requested]
    if job_request.approval_needed:
        lines.append(approval_text(request, [answer.effect]))
    return CommandAnswer((answer.effect,), "\n".join(lines))
