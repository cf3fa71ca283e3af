"""`@ci benchmark [TEST…] on TARGET`: compare what tests measure at the head and at its base, in turn on one device."""

from __future__ import annotations

import asyncio

from bot.commands.dialogue import WRITERS, CommandAnswer, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.commands.seen_head import saw_head
from bot.github.commits.refs import merge_base
from bot.github.repositories.permissions import role_of
from bot.github.text.markdown import code
from handlers.device_tests.availability import Availability
from handlers.device_tests.benchmarks import texts
from handlers.device_tests.benchmarks.model import BENCHMARK, BadOptions, benchmark_words
from handlers.device_tests.commands import (
    KEY,
    approval_text,
    budget_text,
    open_text,
    takes_requests,
    target_problems,
)
from handlers.device_tests.model import FewTests, JobOrigin, Someone, cut_tests
from handlers.device_tests.requesting import JobRequest, answer_request
from handlers.device_tests.store import JOBS
from handlers.device_tests.targets import named_targets, request_targets
from handlers.device_tests.texts import NO_TARGETS, TEST_CLOSED, time_text
from handlers.results.config import LAB_RESULTS

BENCHMARK_COMMAND = CommandSpec(
    name="benchmark",
    summary=texts.SUMMARY,
    example="benchmark tests/test_conv.py::test_conv2d on hexagon-v73",
    feature=KEY,
    # As for `test on`: everybody else's request waits for approval.
    fixed=True,
    arguments=Arguments(names="TEST… on TARGET"),
    offered=takes_requests,
)


async def benchmark(request: CommandRequest, command: Command) -> CommandAnswer:
    """Request a benchmark of the head on the named target."""
    pull, context = request.pull, request.context
    results = context.config.of(LAB_RESULTS)
    accepting = request_targets(results)
    if results is None or not accepting:
        return _refused(NO_TARGETS)
    if not pull.is_open:
        return _refused(TEST_CLOSED)
    try:
        words = benchmark_words(command.names)
    except BadOptions:
        return _refused(texts.BAD_OPTIONS)
    if not words.target:
        usage = code(f"{request.mention} {BENCHMARK_COMMAND.name} on {accepting[0].name}")
        return _refused(texts.NAME_TARGET.format(command=usage))
    # In a thread: some hundred targets are compared.
    named = await asyncio.to_thread(named_targets, results, [words.target])
    availability = await Availability.of(context)
    targets = availability.accepting(named.targets)
    if problems := target_problems(named, accepting, availability):
        return _refused("\n".join(problems))
    if len(targets) > 1:
        names = ", ".join(code(target.full_name) for target in targets)
        return _refused(texts.SEVERAL_TARGETS.format(name=code(words.target), names=names))
    target = targets[0]
    limit, most = words.seconds or target.settings.benchmark_seconds, target.settings.timeout_seconds
    name, sha = code(target.full_name), code(pull.head_sha[:7])
    if limit > most:
        return _refused(texts.TOO_LONG.format(name=name, most=time_text(most), time=time_text(limit)))
    base = await merge_base(context.github, context.repository.full_name, pull.base_ref, pull.head_sha)
    if base is None:
        return _refused(texts.NO_BASE.format(branch=code(pull.base_ref)))
    role = await role_of(context.github, context.repository.full_name, request.by)
    job_request = JobRequest(
        number=pull.number,
        sha=pull.head_sha,
        origin=JobOrigin.COMMAND,
        requested_by=Someone(request.by.id, request.by.login),
        requested_at=context.delivery.received_at,
        # A person who may write approves their own request, if they saw the head.
        approval_needed=role not in WRITERS or not await saw_head(request),
        purpose=BENCHMARK,
        few_tests=FewTests(cut_tests(words.tests), base_sha=base, precision=words.precision, seconds=limit),
    )
    answer = await answer_request(context.part(JOBS), context.repository.id, job_request, target)
    if answer.open_job and answer.open_job.few_tests != job_request.few_tests:
        return _refused(texts.OTHER_OPEN.format(name=name, sha=sha))
    if answer.effect is None:
        text = open_text(request, answer.open_job) if answer.open_job else budget_text(answer)
        return CommandAnswer(say=text, done=bool(answer.open_job))
    lines = [texts.REQUESTED.format(name=name, sha=sha, base=code(base[:7]))]
    if job_request.approval_needed:
        lines.append(approval_text(request, [answer.effect]))
    return CommandAnswer((answer.effect,), "\n".join(lines))


def _refused(say: str) -> CommandAnswer:
    return CommandAnswer(say=say, done=False)
