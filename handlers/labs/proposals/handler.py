"""`@ci lab accept`, on an issue that proposes a lab: answer with the lines of app.yaml that accept it.

The bot changes nothing: who may upload results, and whose devices run the code, is for the operator to write down.
"""

from __future__ import annotations

from bot.commands.dialogue import CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Command, CommandRegistry, CommandSpec
from bot.commands.on_issues import answer_to, first_command, handler_on_issues
from bot.core.events import UserComment, issue_comment_in
from bot.github.repositories.permissions import role_of
from bot.plan.handler import NOTHING, Context, Plan, Router
from handlers.labs.proposals import texts
from handlers.labs.proposals.form import NotAProposal, accepted_text, read_proposal

NAME = "lab-proposals"
MAINTAINERS = frozenset({"maintain", "admin"})

LAB_ACCEPT = CommandSpec(
    name="lab accept",
    summary=texts.SUMMARY,
    example="lab accept",
    feature="results",
    allowed=("maintain",),
    fixed=True,
)
REGISTRY = CommandRegistry([LAB_ACCEPT])


async def accept_lab(context: Context) -> Plan:
    """Answer a comment that accepts a lab."""
    payload = context.delivery.payload
    comment = issue_comment_in(context.delivery)
    if comment is None:
        return NOTHING
    if await first_command(context, comment, REGISTRY) is None:
        return Plan(why=texts.WHY_NO_COMMAND)
    if await role_of(context.github, context.repository.full_name, comment.author) not in MAINTAINERS:
        return _refused(comment, texts.NOT_ALLOWED)
    try:
        proposal = read_proposal(payload.text("issue", "body"))
    except NotAProposal as problem:
        return _refused(comment, str(problem))
    proposer_id = payload.integer("issue", "user", "id") if payload.has("issue", "user", "id") else comment.author.id
    text = accepted_text(proposal, context.repository.full_name, proposer_id)
    reason = texts.WHY_ACCEPTED.format(lab=proposal.lab)
    return Plan(answer_to(comment, text, done=True), why=reason)


def _refused(comment: UserComment, text: str) -> Plan:
    return Plan(answer_to(comment, text, done=False), why=texts.WHY_REFUSED)


async def lab_accept(request: CommandRequest, command: Command) -> CommandAnswer:
    """Say on a pull request that proposals are issues."""
    return CommandAnswer(say=texts.ON_ISSUES, done=False)


router = Router()
router.add(handler_on_issues(NAME, accept_lab))
COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((LAB_ACCEPT, lab_accept),)
