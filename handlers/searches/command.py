"""Commands on an issue about a regression.

`@ci find culprit [TEST] on TARGET` searches for the commit that it began with. `@ci reproduce [TEST] on TARGET` runs it
at the nightly commit where it began, and at the last good one.
"""

from __future__ import annotations

from bot.commands.dialogue import WRITERS, CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandRegistry, CommandSpec
from bot.commands.on_issues import answer_to, first_command, handler_on_issues
from bot.core.events import UserComment, issue_comment_in
from bot.github.repositories.permissions import role_of
from bot.github.text.markdown import code
from bot.plan.handler import NOTHING, Context, Plan, Router
from handlers.device_tests.commands import KEY, takes_requests
from handlers.device_tests.reproduce.command import REPRODUCE
from handlers.searches import texts
from handlers.searches.decide import MOST_RUNS
from handlers.searches.effects import SearchEvent, StartSearch
from handlers.searches.on_issues import NoFailure, failures_of_issue, reproduce_on_issue
from handlers.searches.records import CULPRIT_SEARCH
from handlers.searches.requests import request_of

NAME = "find-culprit"
_ON = "on"

FIND_CULPRIT = CommandSpec(
    name="find culprit",
    summary=texts.FIND_SUMMARY,
    example="find culprit tests/test_ops.py::test_add on hexagon-v73",
    feature=KEY,
    allowed=("write",),
    fixed=True,
    arguments=Arguments(names="TEST on TARGET | on TARGET"),
    offered=takes_requests,
)
REGISTRY = CommandRegistry([FIND_CULPRIT, REPRODUCE])


async def answer_on_issue(context: Context) -> Plan:
    """Start the search or the runs that a comment requests, or say why not."""
    comment = issue_comment_in(context.delivery)
    if comment is None:
        return NOTHING
    command = await first_command(context, comment, REGISTRY)
    if command is None:
        return Plan(why=texts.NO_COMMAND)
    if await role_of(context.github, context.repository.full_name, comment.author) not in WRITERS:
        return _refused(comment, texts.NOT_ALLOWED)
    if command.spec is REPRODUCE:
        return await _reproduced(context, comment, command)
    names = command.names
    if len(names) not in (2, 3) or names[-2].casefold() != _ON:
        usage = code(f"{command.mention} {FIND_CULPRIT.example}")
        return _refused(comment, texts.USAGE.format(command=usage))
    return await _requested(context, comment, names[-1], names[0] if len(names) == 3 else "")


async def _requested(context: Context, comment: UserComment, name: str, test: str) -> Plan:
    """Start the search for a test on a target; an empty `test` means the only failure there."""
    try:
        issue, members = await failures_of_issue(context, comment, name, test)
    except NoFailure as problem:
        return _refused(comment, str(problem))
    request = request_of(members)
    if request is None:
        return _refused(comment, texts.NO_FAILURE.format(target=code(name)))
    search = await context.records.get(CULPRIT_SEARCH.of(context.repository.id, request.id))
    text = texts.search_sentence(search, MOST_RUNS) if search else texts.requested(request)
    effects = answer_to(comment, text, done=True)
    start = StartSearch(SearchEvent.start(request, context.delivery.received_at, issue))
    return Plan((start, *effects) if search is None else effects, why=texts.STARTED.format(id=request.id))


async def _reproduced(context: Context, comment: UserComment, command: Command) -> Plan:
    """Request runs of a test at the commit where it began to fail, and at the last good one."""
    try:
        say, effect = await reproduce_on_issue(context, comment, command)
    except NoFailure as problem:
        return _refused(comment, str(problem))
    return Plan((effect, *answer_to(comment, say, done=True)), why=texts.REPRODUCES)


def _refused(comment: UserComment, text: str) -> Plan:
    return Plan(answer_to(comment, text, done=False), why=texts.REFUSED)


async def on_pull_request(request: CommandRequest, command: Command) -> CommandAnswer:
    """Say on a pull request that regressions have issues."""
    return CommandAnswer(say=texts.ON_ISSUES, done=False)


router = Router()
router.add(handler_on_issues(NAME, answer_on_issue))
COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((FIND_CULPRIT, on_pull_request),)
