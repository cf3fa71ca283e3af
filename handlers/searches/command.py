"""`@ci find culprit [TEST] on TARGET`, on an issue about a regression: search for the commit that it began with."""

from __future__ import annotations

from nightjar_formats.model import TargetKey

from bot.commands.dialogue import WRITERS, CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandRegistry, CommandSpec
from bot.commands.on_issues import answer_to, first_command, handler_on_issues
from bot.core.events import UserComment, issue_comment_in
from bot.core.listing import listed
from bot.effects.issues import ISSUE, issue_key_in
from bot.github.repositories.permissions import role_of
from bot.github.text.markdown import code
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.results.service import RESULTS
from bot.results.store.failures.failures import reported_failures
from handlers.device_tests.commands import KEY, takes_requests
from handlers.device_tests.targets import named_targets
from handlers.regressions.begun import members_of
from handlers.regressions.records import GROUP_ISSUE, REGRESSION_GROUP, TARGET_ISSUE, GroupMember
from handlers.results.config import LAB_RESULTS, RENAMES
from handlers.searches import texts
from handlers.searches.decide import MOST_RUNS
from handlers.searches.effects import SearchEvent, StartSearch
from handlers.searches.records import CULPRIT_SEARCH
from handlers.searches.requests import chosen_members, request_of

NAME = "find-culprit"
MOST_NAMED = 5
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
REGISTRY = CommandRegistry([FIND_CULPRIT])


async def find_culprit(context: Context) -> Plan:
    """Start the search that a comment requests, or say why not."""
    comment = issue_comment_in(context.delivery)
    if comment is None:
        return NOTHING
    command = await first_command(context, comment, REGISTRY)
    if command is None:
        return Plan(why=texts.NO_COMMAND)
    if await role_of(context.github, context.repository.full_name, comment.author) not in WRITERS:
        return _refused(comment, texts.NOT_ALLOWED)
    names = command.names
    if len(names) not in (2, 3) or names[-2].casefold() != _ON:
        usage = code(f"{command.mention} {FIND_CULPRIT.example}")
        return _refused(comment, texts.USAGE.format(command=usage))
    return await _requested(context, comment, names[-1], names[0] if len(names) == 3 else "")


async def _requested(context: Context, comment: UserComment, name: str, test: str) -> Plan:
    """Start the search for a test on a target; an empty `test` means the only failure there."""
    results, issue = context.config.of(LAB_RESULTS), issue_key_in(context.delivery.payload.text("issue", "body"))
    stored = await context.records.get(ISSUE.of(context.repository.id, issue)) if issue else None
    if results is None or stored is None or stored.number != comment.number:
        return _refused(comment, texts.NO_REGRESSION)
    members = await _members(context, issue)
    if not members:
        return _refused(comment, texts.NO_REGRESSION)
    targets = [target.full_name for target in named_targets(results, [name]).targets]
    if not targets:
        return _refused(comment, texts.NO_REQUESTS.format(target=code(name)))
    choices = [choice for target in targets for choice in chosen_members(members, target, test)]
    if not choices:
        return _refused(comment, texts.NO_FAILURE.format(target=code(name)))
    if len(choices) > 1:
        tests = [code(choice[0].tests[0]) for choice in choices]
        return _refused(comment, texts.SEVERAL_FAILURES.format(target=code(name), tests=listed(tests, MOST_NAMED)))
    request = request_of(choices[0])
    if request is None:
        return _refused(comment, texts.NO_FAILURE.format(target=code(name)))
    search = await context.records.get(CULPRIT_SEARCH.of(context.repository.id, request.id))
    text = texts.search_sentence(search, MOST_RUNS) if search else texts.requested(request)
    effects = answer_to(comment, text, done=True)
    start = StartSearch(SearchEvent.start(request, context.delivery.received_at, issue))
    return Plan((start, *effects) if search is None else effects, why=texts.STARTED.format(id=request.id))


async def _members(context: Context, issue: str) -> list[GroupMember]:
    """Return the failures that an issue is about; none if it is about something else."""
    if issue.startswith(GROUP_ISSUE):
        name = issue.removeprefix(GROUP_ISSUE)
        group = await context.records.get(REGRESSION_GROUP.of(context.repository.id, name))
        return list(group.members) if group else []
    if not issue.startswith(TARGET_ISSUE):
        return []
    lab, _, target_name = issue.removeprefix(TARGET_ISSUE).partition("/")
    service = context.part(RESULTS)
    target = service.canonical(TargetKey(context.repository.full_name, lab, target_name))
    return members_of(target, await service.read(reported_failures, target, context.config.of(RENAMES).aliases))


def _refused(comment: UserComment, text: str) -> Plan:
    return Plan(answer_to(comment, text, done=False), why=texts.REFUSED)


async def on_pull_request(request: CommandRequest, command: Command) -> CommandAnswer:
    """Say on a pull request that regressions have issues."""
    return CommandAnswer(say=texts.ON_ISSUES, done=False)


router = Router()
router.add(handler_on_issues(NAME, find_culprit))
COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((FIND_CULPRIT, on_pull_request),)
