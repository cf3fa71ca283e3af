"""`@ci test on hexagon-v73`, `@ci test status`, `@ci cancel tests` and `@ci approve tests`.

A request is bound to the head at that moment. A device runs a stranger's code, so for people without the write role it
waits until somebody approves exactly that commit; a push needs a new approval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.commands.dialogue import WRITERS, CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.commands.seen_head import other_head, saw_head
from bot.core.listing import listed
from bot.github.markdown import code, truncate
from bot.github.permissions import role_of
from handlers.device_tests import texts
from handlers.device_tests.degraded.targets import degraded_targets
from handlers.device_tests.degraded.words import refusal
from handlers.device_tests.effects import ApproveDeviceJobs, CancelDeviceJobs, SubmitDeviceJob, submit_target
from handlers.device_tests.model import DeviceJob, DeviceJobState, JobEnd, JobOrigin, Someone
from handlers.device_tests.requesting import JobRequest, TargetAnswer, answer_request
from handlers.device_tests.store import JOBS
from handlers.device_tests.targets import (
    RequestTarget,
    named_targets,
    nearest_targets,
    request_targets,
    without_degraded,
)
from handlers.device_tests.waiting import queue_place
from handlers.device_tests.words import status_row
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
    """List the targets for `@ci help` that accept requests now: not those that do not while they are degraded."""
    degraded = await degraded_targets(context.records, context.repository.id)
    able = without_degraded(request_targets(context.config.of(LAB_RESULTS)), degraded)
    return texts.HELP_TARGETS.format(targets=_names(able)) if able else texts.HELP_NO_TARGETS


TEST_ON = CommandSpec(
    name="test on",
    summary=texts.TEST_SUMMARY,
    example="test on hexagon-v73 adreno",
    feature=KEY,
    # Everybody else's request waits for approval anyway; `approve_tests` of app.yaml is for who may give it.
    fixed=True,
    synonyms=("test this on", "run tests on", "run on"),
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


async def test_on(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Ask labs to test the head on the named targets."""
    pull, results, context = asked.pull, asked.context.config.of(LAB_RESULTS), asked.context
    known = request_targets(results)
    if results is None or not known:
        return CommandAnswer(say=texts.NO_TARGETS, done=False)
    if not pull.is_open:
        return CommandAnswer(say=texts.TEST_CLOSED, done=False)
    if command.choice != ALL and not command.names:
        mention = context.app_config.mentions[0]
        usage = code(f"{mention} {TEST_ON.name} {known[0].name}")
        return CommandAnswer(say=texts.NAME_TARGETS.format(command=usage, targets=_names(known)), done=False)
    # In a thread: 20 names and some hundred targets are compared.
    meant = await asyncio.to_thread(named_targets, results, command.names)
    wanted = known if command.choice == ALL else meant.targets
    degraded = await degraded_targets(context.records, context.repository.id)
    targets = without_degraded(wanted, degraded)
    able = {one.full_name for one in targets}
    role = await role_of(context.github, context.repository.full_name, asked.by)
    by, at = Someone(asked.by.id, asked.by.login), context.delivery.received_at
    # Who may write approves what they ask for, if it is what they saw.
    approval_needed = role not in WRITERS or not await saw_head(asked)
    request = JobRequest(pull.number, pull.head_sha, JobOrigin.COMMAND, by, at, approval_needed)
    found = [await answer_request(context.part(JOBS), context.repository.id, request, one) for one in targets]
    effects = [answer.effect for answer in found if answer.effect]
    problems = [*map(_budget_text, [one for one in found if one.budget]), *_unknown(meant.unknown, known)]
    problems += map(_nightly, meant.nightly)
    problems += [refusal(one.full_name, degraded[one.full_name]) for one in wanted if one.full_name not in able]
    lines = [_open_text(asked, answer.known) for answer in found if answer.known]
    if effects and approval_needed:
        lines.append(_approval_text(asked, effects))
    return CommandAnswer(tuple(effects), "\n".join([*lines, *problems]), done=not problems)


def _open_text(asked: CommandRequest, job: DeviceJob) -> str:
    text = texts.ALREADY_WAITING if job.state is DeviceJobState.WAITING else texts.ALREADY_OPEN
    return text.format(name=code(job.about.full_name), sha=code(job.sha[:7]), command=_approve_command(asked, job.sha))


def _budget_text(answer: TargetAnswer) -> str:
    return texts.BUDGET_USED.format(name=code(answer.target.full_name), budget=answer.budget)


def _approval_text(asked: CommandRequest, effects: Sequence[SubmitDeviceJob]) -> str:
    sha = asked.pull.head_sha
    names = ", ".join(code(f"{one.lab}/{one.on}") for one in effects)
    return texts.WAITS_FOR_APPROVAL.format(names=names, sha=code(sha[:7]), command=_approve_command(asked, sha))


def _approve_command(asked: CommandRequest, sha: str) -> str:
    return code(f"{asked.context.app_config.mentions[0]} {APPROVE_TESTS.name} {sha}")


def _unknown(names: Sequence[str], known: Sequence[RequestTarget]) -> list[str]:
    lines = []
    for name in names:
        close = nearest_targets(name, known)
        said = texts.DID_YOU_MEAN.format(names=", ".join(map(code, close))) if close else _available(known)
        lines.append(texts.UNKNOWN_TARGET.format(name=code(truncate(name, LONGEST_NAME))) + said)
    return lines


def _available(known: Sequence[RequestTarget]) -> str:
    return texts.AVAILABLE.format(names=_names(known))


def _nightly(name: str) -> str:
    return texts.NIGHTLY_ONLY.format(name=code(truncate(name, LONGEST_NAME)))


def _names(known: Sequence[RequestTarget]) -> str:
    return listed(list(dict.fromkeys(code(one.name) for one in known)), MOST_LISTED)


async def test_status(asked: CommandRequest, command: Command) -> CommandAnswer:
    """List the tests of the head on devices."""
    jobs = await asked.context.part(JOBS).of_pull(asked.context.repository.id, asked.pull.number)
    # Of each target the newest one of this head: a list in the order of requests ends with it.
    newest = {job.about.full_name: job for job in jobs if job.sha == asked.pull.head_sha}
    sha = code(asked.pull.head_sha[:7])
    if not newest:
        return CommandAnswer(say=texts.NO_TESTS.format(sha=sha))
    rows = [await _status(asked, job) for job in list(newest.values())[-MOST_LISTED:]]
    return CommandAnswer(say="\n".join([texts.STATUS.format(sha=sha), *rows]))


async def _status(asked: CommandRequest, job: DeviceJob) -> str:
    waits = await queue_place(asked.context.part(JOBS), asked.context.config, job)
    return status_row(job, waits, asked.context.delivery.received_at, _approve_command(asked, job.sha))


async def cancel_tests(asked: CommandRequest, command: Command) -> CommandAnswer:
    """End all tests of the pull request on devices, also those that run."""
    number = asked.pull.number
    effect = CancelDeviceJobs(number, JobEnd.BY_PERSON.value, also_running=True)
    # Requests of earlier lines of the same comment are not stored yet, so they are taken out of the plan.
    known = request_targets(asked.context.config.of(LAB_RESULTS))
    calls_off = frozenset(submit_target(number, one.lab, one.name) for one in known)
    jobs = await asked.context.part(JOBS).of_pull(asked.context.repository.id, number)
    say = "" if any(job.is_open for job in jobs) else texts.NOTHING_TO_CANCEL
    return CommandAnswer((effect,), say, calls_off=calls_off)


async def approve_tests(asked: CommandRequest, command: Command) -> CommandAnswer:
    """Let labs see the requests of exactly the head that the person saw."""
    pull = asked.pull
    if not pull.is_open:
        return CommandAnswer(say=texts.TEST_CLOSED, done=False)
    if problem := await other_head(asked, command):
        return CommandAnswer(say=problem, done=False)
    jobs = await asked.context.part(JOBS).of_pull(asked.context.repository.id, pull.number)
    names = [job.about.full_name for job in jobs if job.state is DeviceJobState.WAITING and job.sha == pull.head_sha]
    sha = code(pull.head_sha[:7])
    if not names:
        return CommandAnswer(say=texts.NOTHING_WAITS.format(sha=sha))
    effect = ApproveDeviceJobs(pull.number, pull.head_sha, asked.by.id, asked.by.login)
    return CommandAnswer((effect,), texts.APPROVING.format(sha=sha, names=", ".join(map(code, names))))


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = (
    (TEST_ON, test_on),
    (TEST_STATUS, test_status),
    (CANCEL_TESTS, cancel_tests),
    (APPROVE_TESTS, approve_tests),
)
