"""The failures that a command on an issue means, and the job that reproduces one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from nightjar_formats.model import TargetKey

from bot.commands.grammar import Command
from bot.core.events import UserComment
from bot.core.listing import listed
from bot.effects.issues import ISSUE, issue_key_in
from bot.github.text.markdown import code
from bot.plan.handler import Context
from bot.results.measurements.groups import clearest_change, moved_likewise
from bot.results.measurements.moved import MovedSeries
from bot.results.service import RESULTS
from bot.results.store.failures.failures import reported_failures
from bot.results.store.measurements.moved import moved_by_id
from handlers.device_tests.commands import budget_text
from handlers.device_tests.effects import SubmitDeviceJob
from handlers.device_tests.model import FewTests, JobOrigin, Someone
from handlers.device_tests.one_target import NoTarget, one_target
from handlers.device_tests.reproduce.command import purpose_of, read_request
from handlers.device_tests.reproduce.texts import ONE_TARGET, REQUESTED_ON_ISSUE
from handlers.device_tests.requesting import JobRequest, TargetAnswer, day_of, requested_job
from handlers.device_tests.store import JOBS
from handlers.device_tests.targets import named_targets, over_budget, request_targets
from handlers.device_tests.texts import times
from handlers.regressions.begun import member_of, members_of
from handlers.regressions.moved.groups import MOVED_GROUP, MOVED_ISSUE
from handlers.regressions.records import GROUP_ISSUE, REGRESSION_GROUP, TARGET_ISSUE, GroupMember
from handlers.results.config import LAB_RESULTS, RENAMES
from handlers.searches import texts
from handlers.searches.requests import chosen_members

MOST_NAMED = 5


class NoFailure(Exception):
    """A command means no failure, or more than one; the text says why to the person."""


class SearchedNames(NamedTuple):
    """What a command names: a target, a test, and what it measures; the last two may be empty."""

    target: str
    test: str = ""
    measurement: str = ""


class IssueFailures(NamedTuple):
    """Failures that began together, or one measurement that got worse on some targets; `issue` is the issue's key.

    The first member is on the target that somebody means. `measurement` is empty for failures.
    """

    issue: str
    members: Sequence[GroupMember]
    measurement: str = ""


async def failures_of_issue(context: Context, comment: UserComment, names: SearchedNames) -> IssueFailures:
    """Return the failures, or the measurement, that a comment on an issue means.

    Without a test, that is the only failure on the target, or the measurement that stands out most from its noise.
    Raises `NoFailure`.
    """
    results, issue = context.config.of(LAB_RESULTS), issue_key_in(context.delivery.payload.text("issue", "body"))
    stored = await context.records.get(ISSUE.of(context.repository.id, issue)) if issue else None
    if results is None or stored is None or stored.number != comment.number:
        raise NoFailure(texts.NO_REGRESSION)
    members, changes = await _members(context, issue), await _changes(context, issue)
    if not members and not changes:
        raise NoFailure(texts.NO_REGRESSION)
    # In a thread: some hundred targets are compared.
    named = await asyncio.to_thread(named_targets, results, [names.target])
    targets = [target.full_name for target in named.targets]
    if not targets:
        raise NoFailure(texts.NO_REQUESTS.format(target=code(names.target)))
    if changes:
        return _moved(issue, changes, targets, names)
    choices = [choice for target in targets for choice in chosen_members(members, target, names.test)]
    if not choices or names.measurement:
        raise NoFailure(texts.NO_FAILURE.format(target=code(names.target)))
    if len(choices) > 1:
        tests = [code(choice[0].tests[0]) for choice in choices]
        raise NoFailure(texts.SEVERAL_FAILURES.format(target=code(names.target), tests=listed(tests, MOST_NAMED)))
    return IssueFailures(issue, choices[0])


def _moved(issue: str, changes: Sequence[MovedSeries], targets: Sequence[str], names: SearchedNames) -> IssueFailures:
    """Return the measurement of an issue that somebody means; `targets` are LAB/TARGET. Raises `NoFailure`."""
    named = {target.casefold() for target in targets}
    chosen = [
        change
        for change in changes
        if change.target.full_name.casefold() in named
        and names.test in ("", change.test)
        and names.measurement in ("", change.name)
    ]
    if not chosen:
        raise NoFailure(texts.NO_CHANGE_ON.format(target=code(names.target)))
    change = clearest_change(chosen)
    return IssueFailures(issue, list(map(member_of, moved_likewise(change, changes))), change.name)


async def _changes(context: Context, issue: str) -> list[MovedSeries]:
    """Return the changes of measurements that an issue is about and that last; none if it is about something else."""
    if not issue.startswith(MOVED_ISSUE):
        return []
    group = await context.records.get(MOVED_GROUP.of(context.repository.id, issue.removeprefix(MOVED_ISSUE)))
    stored = await context.part(RESULTS).read(moved_by_id, group.lasting) if group else {}
    return [stored[change] for change in sorted(stored)]


async def reproduce_on_issue(context: Context, comment: UserComment, command: Command) -> tuple[str, SubmitDeviceJob]:
    """Return the answer to a command, and the effect that requests its runs. Raises `NoFailure`.

    The code is that of the nightly branch, so the request needs no approval. It uses its author's budget.
    """
    request = read_request(command, is_test_needed=False)
    if isinstance(request, str):
        raise NoFailure(request)
    failures = await failures_of_issue(context, comment, SearchedNames(request.target, request.test))
    if failures.measurement:
        raise NoFailure(texts.NO_REGRESSION)
    member = failures.members[0]
    test, moment = request.test or member.tests[0], context.delivery.received_at
    person, results = Someone(comment.author.id, comment.author.login), context.config.of(LAB_RESULTS)
    assert results is not None, "the failures are of its targets"
    try:
        target = await one_target(context, results, request_targets(results), member.full_name, ONE_TARGET)
    except NoTarget as problem:
        raise NoFailure(str(problem)) from problem
    used = await context.part(JOBS).requests(context.repository.id, target.lab, target.name, person.id, day_of(moment))
    if budget := over_budget(target.settings, used):
        raise NoFailure(budget_text(TargetAnswer(target, budget=budget)))
    job_request = JobRequest(
        number=0,
        sha=member.since,
        origin=JobOrigin.COMMAND,
        requested_by=person,
        requested_at=moment,
        approval_needed=False,
        purpose=purpose_of(test, comment.number),
        few_tests=FewTests((test,), request.repeat, member.good),
        suites=(member.suite,),
    )
    say = REQUESTED_ON_ISSUE.format(
        name=code(member.full_name),
        test=code(test),
        times=times(request.repeat),
        sha=code(member.since[:7]),
        base=code(member.good[:7]),
    )
    return say, requested_job(job_request, target)


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
