"""`@ci test on hexagon-v73`, `@ci test status`, `@ci cancel tests` and `@ci approve tests`.

A request is bound to the head at the moment of the command. A device would run a stranger's code, so a request by a
person without the write role waits until somebody approves exactly that commit; a push needs a new approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.commands.dialogue import WRITERS, CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.commands.seen_head import other_head, saw_head
from bot.core.listing import listed
from bot.github.repositories.permissions import role_of
from bot.github.text.markdown import code, truncate
from handlers.device_tests import texts
from handlers.device_tests.availability import Availability
from handlers.device_tests.effects import ApproveDeviceJobs, CancelDeviceJobs, SubmitDeviceJob, submit_target
from handlers.device_tests.model import WHOLE_SUITE, DeviceJob, DeviceJobState, FewTests, JobEnd, JobOrigin, Someone
from handlers.device_tests.paused.texts import paused_text
from handlers.device_tests.requesting import JobRequest, TargetAnswer, answer_request
from handlers.device_tests.store import JOBS
from handlers.device_tests.targets import (
    NamedTargets,
    RequestTarget,
    named_targets,
    nearest_targets,
    request_targets,
)
from handlers.device_tests.texts import status_row
from handlers.device_tests.waiting import queue_place
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.plan.handler import Context

KEY = "results"
ALL = "all"
MOST_LISTED = 30
LONGEST_NAME = 130


def takes_requests(config: RepositoryConfig) -> bool:
    """Say whether a repository has targets that accept requests."""
    return bool(request_targets(config.of(LAB_RESULTS)))


async def listed_targets(context: Context) -> str:
    """List the targets for `@ci help` that accept requests now; a degraded target may accept none."""
    availability = await Availability.of(context)
    able = availability.accepting(request_targets(context.config.of(LAB_RESULTS)))
    accepting = texts.HELP_TARGETS.format(targets=_names(able)) if able else texts.HELP_NO_TARGETS
    return " ".join(filter(None, [accepting, paused_text(availability.paused)]))


TEST_ON = CommandSpec(
    name="test on",
    summary=texts.TEST_SUMMARY,
    example="test on hexagon-v73 adreno",
    feature=KEY,
    # Everybody else's request waits for approval anyway; `approve_tests` of app.yaml is for who may give it.
    fixed=True,
    synonyms=("test this on", "run tests on", "run on", "run-odt", "run odt"),
    arguments=Arguments(choices=(ALL,), names="TARGET…"),
    offered=takes_requests,
    details=listed_targets,
)
TEST_STATUS = CommandSpec(
    name="test status",
    summary=texts.STATUS_SUMMARY,
    example="test status",
    feature=KEY,
    fixed=True,
    synonyms=("tests status", "status of tests"),
    own_words=False,
    offered=takes_requests,
)
CANCEL_TESTS = CommandSpec(
    name="cancel tests",
    summary=texts.CANCEL_SUMMARY,
    example="cancel tests",
    feature=KEY,
    fixed=True,
    synonyms=("cancel the tests", "stop tests", "stop the tests"),
    own_words=False,
    offered=takes_requests,
)
APPROVE_TESTS = CommandSpec(
    name="approve tests",
    summary=texts.APPROVE_SUMMARY,
    example="approve tests",
    feature=KEY,
    allowed=("triage",),
    synonyms=("approve the tests",),
    arguments=Arguments(names="SHA"),
    offered=takes_requests,
)


async def test_on(request: CommandRequest, command: Command) -> CommandAnswer:
    """Request tests of the head on the named targets."""
    pull, results, context = request.pull, request.context.config.of(LAB_RESULTS), request.context
    accepting = request_targets(results)
    if results is None or not accepting:
        return CommandAnswer(say=texts.NO_TARGETS, done=False)
    if not pull.is_open:
        return CommandAnswer(say=texts.TEST_CLOSED, done=False)
    if command.choice != ALL and not command.names:
        usage = code(f"{request.mention} {TEST_ON.name} {accepting[0].name}")
        return CommandAnswer(say=texts.NAME_TARGETS.format(command=usage, targets=_names(accepting)), done=False)
    # In a thread: 20 names and some hundred targets are compared.
    named = await asyncio.to_thread(named_targets, results, command.names)
    requested = accepting if command.choice == ALL else named.targets
    availability = await Availability.of(context)
    targets = availability.accepting(requested)
    job_request = await head_request(request)
    store, repository_id = context.part(JOBS), context.repository.id
    answers = [await answer_request(store, repository_id, job_request, target) for target in targets]
    effects = [answer.effect for answer in answers if answer.effect]
    problems = [budget_text(answer) for answer in answers if answer.budget]
    problems += target_problems(replace(named, targets=tuple(requested)), accepting, availability)
    lines = [open_text(request, answer.open_job) for answer in answers if answer.open_job]
    if effects and job_request.approval_needed:
        lines.append(approval_text(request, effects))
    return CommandAnswer(tuple(effects), "\n".join([*lines, *problems]), done=not problems)


async def head_request(
    request: CommandRequest,
    *,
    purpose: str = "",
    few_tests: FewTests = WHOLE_SUITE,
    suites: tuple[str, ...] | None = None,
) -> JobRequest:
    """Return the request of a command's author for tests of the head, with whether it waits for an approval."""
    pull, context = request.pull, request.context
    role = await role_of(context.github, context.repository.full_name, request.by)
    return JobRequest(
        number=pull.number,
        sha=pull.head_sha,
        origin=JobOrigin.COMMAND,
        requested_by=Someone(request.by.id, request.by.login),
        requested_at=context.delivery.received_at,
        # A person who may write approves their own request, if they saw the head.
        approval_needed=role not in WRITERS or not await saw_head(request),
        purpose=purpose,
        few_tests=few_tests,
        suites=suites,
    )


def target_problems(
    named: NamedTargets,
    accepting: Sequence[RequestTarget],
    availability: Availability,
) -> list[str]:
    """Return why some named targets get no request; `accepting` has all that ever may."""
    able_names = {target.full_name for target in availability.accepting(named.targets)}
    refused = [target for target in named.targets if target.full_name not in able_names]
    return [
        *_unknown_names(named.unknown, accepting),
        *map(_nightly_name, named.nightly),
        *map(availability.refusal, refused),
    ]


def open_text(request: CommandRequest, job: DeviceJob) -> str:
    """Say that a test is requested already."""
    text = texts.ALREADY_WAITING if job.state is DeviceJobState.WAITING else texts.ALREADY_OPEN
    return text.format(
        name=code(job.about.full_name), sha=code(job.sha[:7]), command=_approve_command(request, job.sha)
    )


def budget_text(answer: TargetAnswer) -> str:
    """Say that the budget of a target is used up."""
    return texts.BUDGET_USED.format(name=code(answer.target.full_name), budget=answer.budget)


def approval_text(request: CommandRequest, effects: Sequence[SubmitDeviceJob]) -> str:
    """Say who may approve requested tests, and how."""
    sha = request.pull.head_sha
    names = ", ".join(code(f"{effect.lab}/{effect.on}") for effect in effects)
    return texts.WAITS_FOR_APPROVAL.format(names=names, sha=code(sha[:7]), command=_approve_command(request, sha))


def _approve_command(request: CommandRequest, sha: str) -> str:
    return code(f"{request.mention} {APPROVE_TESTS.name} {sha}")


def _unknown_names(names: Sequence[str], targets: Sequence[RequestTarget]) -> list[str]:
    lines = []
    for name in names:
        nearest = nearest_targets(name, targets)
        if nearest:
            suggestion = texts.DID_YOU_MEAN.format(names=", ".join(map(code, nearest)))
        else:
            suggestion = texts.AVAILABLE.format(names=_names(targets))
        lines.append(texts.UNKNOWN_TARGET.format(name=code(truncate(name, LONGEST_NAME))) + suggestion)
    return lines


def _nightly_name(name: str) -> str:
    return texts.NIGHTLY_ONLY.format(name=code(truncate(name, LONGEST_NAME)))


def _names(targets: Sequence[RequestTarget]) -> str:
    return listed(list(dict.fromkeys(code(target.name) for target in targets)), MOST_LISTED)


async def test_status(request: CommandRequest, command: Command) -> CommandAnswer:
    """List the tests of the head on devices."""
    jobs = await request.context.part(JOBS).of_pull(request.context.repository.id, request.pull.number)
    # The newest job of each target and purpose for this head. Jobs are in the order of requests, so later ones win.
    newest = {(job.about, job.purpose): job for job in jobs if job.sha == request.pull.head_sha}
    sha = code(request.pull.head_sha[:7])
    if not newest:
        return CommandAnswer(say=texts.NO_TESTS.format(sha=sha))
    rows = [await _status_row(request, job) for job in list(newest.values())[-MOST_LISTED:]]
    return CommandAnswer(say="\n".join([texts.STATUS.format(sha=sha), *rows]))


async def _status_row(request: CommandRequest, job: DeviceJob) -> str:
    place = await queue_place(request.context.part(JOBS), request.context.config, job)
    return status_row(job, place, request.context.delivery.received_at, _approve_command(request, job.sha))


async def cancel_tests(request: CommandRequest, command: Command) -> CommandAnswer:
    """End all tests of the pull request on devices, also those that run."""
    number = request.pull.number
    effect = CancelDeviceJobs(number, JobEnd.BY_PERSON.value, also_running=True)
    # Requests of earlier lines of the same comment are not stored yet, so they are removed from the plan.
    targets = request_targets(request.context.config.of(LAB_RESULTS))
    calls_off = frozenset(submit_target(number, target.lab, target.name) for target in targets)
    jobs = await request.context.part(JOBS).of_pull(request.context.repository.id, number)
    say = "" if any(job.is_open for job in jobs) else texts.NOTHING_TO_CANCEL
    return CommandAnswer((effect,), say, calls_off=calls_off)


async def approve_tests(request: CommandRequest, command: Command) -> CommandAnswer:
    """Let labs see the requests for exactly the head that the person saw."""
    pull = request.pull
    if not pull.is_open:
        return CommandAnswer(say=texts.TEST_CLOSED, done=False)
    if problem := await other_head(request, command):
        return CommandAnswer(say=problem, done=False)
    jobs = await request.context.part(JOBS).of_pull(request.context.repository.id, pull.number)
    names = [job.about.full_name for job in jobs if job.state is DeviceJobState.WAITING and job.sha == pull.head_sha]
    sha = code(pull.head_sha[:7])
    if not names:
        return CommandAnswer(say=texts.NOTHING_WAITS.format(sha=sha))
    effect = ApproveDeviceJobs(pull.number, pull.head_sha, request.by.id, request.by.login)
    return CommandAnswer((effect,), texts.APPROVING.format(sha=sha, names=", ".join(map(code, names))))


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = (
    (TEST_ON, test_on),
    (TEST_STATUS, test_status),
    (CANCEL_TESTS, cancel_tests),
    (APPROVE_TESTS, approve_tests),
)
