"""Commands on an issue about a regression.

`@ci find culprit [TEST] on TARGET` searches for the commit that it began with. On an issue about measurements that got
worse, `@ci find culprit [[MEASUREMENT of] TEST] on TARGET` does. `@ci reproduce [TEST] on TARGET` runs a test at the
nightly commit where it began to fail, and at the last good one.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from handlers.searches.on_issues import NoFailure, SearchedNames, failures_of_issue, reproduce_on_issue
from handlers.searches.records import CULPRIT_SEARCH
from handlers.searches.requests import request_of

NAME = "find-culprit"

FIND_CULPRIT = CommandSpec(
    name="find culprit",
    summary=texts.FIND_SUMMARY,
    example="find culprit tests/test_ops.py::test_add on hexagon-v73",
    feature=KEY,
    allowed=("write",),
    fixed=True,
    arguments=Arguments(names="TEST on TARGET | on TARGET | MEASUREMENT of TEST on TARGET"),
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
    names = searched_names(command.names)
    if names is None:
        usage = code(f"{command.mention} {FIND_CULPRIT.example}")
        return _refused(comment, texts.USAGE.format(command=usage))
    return await _requested(context, comment, names)


def searched_names(words: Sequence[str]) -> SearchedNames | None:
    """Return what the words after the command mean; None if they are no such command."""
    match [word if number % 2 == 0 else word.casefold() for number, word in enumerate(reversed(words))]:
        case [target, "on"]:
            return SearchedNames(target)
        case [target, "on", test]:
            return SearchedNames(target, test)
        case [target, "on", test, "of", measurement]:
            return SearchedNames(target, test, measurement)
    return None


async def _requested(context: Context, comment: UserComment, names: SearchedNames) -> Plan:
    """Start the search that the names mean; without a test, for the only failure on the target."""
    try:
        issue, members, measurement = await failures_of_issue(context, comment, names)
    except NoFailure as problem:
        return _refused(comment, str(problem))
    request = request_of(members, measurement)
    if request is None:
        return _refused(comment, texts.NO_FAILURE.format(target=code(names.target)))
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
