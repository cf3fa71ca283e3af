"""`@ci benchmark [TEST…] on TARGET`: compare what tests measure at the head and at its base, in turn on one device."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot.commands.dialogue import WRITERS, CommandAnswer, CommandFunction, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.commands.seen_head import saw_head
from bot.config.types import seconds
from bot.github.commits.refs import merge_base
from bot.github.repositories.permissions import role_of
from bot.github.text.markdown import code
from handlers.device_tests import texts as job_texts
from handlers.device_tests.benchmarks import texts
from handlers.device_tests.benchmarks.effects import SubmitBenchmark
from handlers.device_tests.benchmarks.model import BENCHMARK, BadOptions, BenchmarkWords, benchmark_words
from handlers.device_tests.commands import (
    KEY,
    approve_command,
    nightly_name,
    takes_requests,
    target_names,
    unknown_names,
)
from handlers.device_tests.degraded.targets import degraded_targets
from handlers.device_tests.degraded.texts import refusal
from handlers.device_tests.model import DeviceJobState
from handlers.device_tests.requesting import day_of
from handlers.device_tests.store import JOBS
from handlers.device_tests.targets import (
    RequestTarget,
    named_targets,
    over_budget,
    request_targets,
    without_degraded,
)
from handlers.device_tests.texts import time_text
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.results.settings.results import Results

SPEC = CommandSpec(
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
        return _refused(job_texts.NO_TARGETS)
    if not pull.is_open:
        return _refused(job_texts.TEST_CLOSED)
    try:
        words = benchmark_words(command.names)
    except BadOptions:
        return _refused(texts.BAD_OPTIONS)
    if not words.target:
        usage = code(f"{request.mention} {SPEC.name} on {accepting[0].name}")
        return _refused(texts.NAME_TARGET.format(command=usage, targets=target_names(accepting)))
    target = await _target(request, results, words.target)
    if isinstance(target, str):
        return _refused(target)
    if problem := await _open_or_over_budget(request, target):
        return _refused(problem)
    limit = words.seconds or target.settings.benchmark_seconds
    if limit > target.settings.timeout_seconds:
        most = time_text(seconds(target.settings.timeout))
        return _refused(texts.TOO_LONG.format(name=code(target.full_name), most=most, time=time_text(limit)))
    base = await merge_base(context.github, context.repository.full_name, pull.base_ref, pull.head_sha)
    if base is None:
        return _refused(texts.NO_BASE.format(branch=code(pull.base_ref)))
    effect = await _effect(request, target, words, base, limit)
    name, sha = code(target.full_name), code(pull.head_sha[:7])
    say = texts.REQUESTED.format(name=name, sha=sha, base=code(base[:7]))
    if effect.approval_needed:
        command_text = approve_command(request, pull.head_sha)
        say = job_texts.WAITS_FOR_APPROVAL.format(names=name, sha=sha, command=command_text)
    return CommandAnswer((effect,), say)


def _refused(say: str) -> CommandAnswer:
    return CommandAnswer(say=say, done=False)


async def _target(request: CommandRequest, results: Results, name: str) -> RequestTarget | str:
    """Return the target that a name means, or why there is none."""
    # In a thread: some hundred targets are compared.
    named = await asyncio.to_thread(named_targets, results, (name,))
    if named.nightly:
        return nightly_name(name)
    if not named.targets:
        return unknown_names((name,), request_targets(results))[0]
    degraded = await degraded_targets(request.context.records, request.context.repository.id)
    able = without_degraded(named.targets, degraded)
    if not able:
        (full_name, *_) = (target.full_name for target in named.targets)
        return refusal(full_name, degraded[full_name])
    if len(able) > 1:
        names = ", ".join(code(target.full_name) for target in able)
        return texts.SEVERAL_TARGETS.format(name=code(able[0].name), names=names)
    return able[0]


async def _open_or_over_budget(request: CommandRequest, target: RequestTarget) -> str:
    """Return why the target takes no other benchmark of the head; empty if it does."""
    pull, store, repository_id = request.pull, request.context.part(JOBS), request.context.repository.id
    name, sha = code(target.full_name), code(pull.head_sha[:7])
    for job in await store.of_pull(repository_id, pull.number):
        is_same = (job.purpose, job.sha, job.lab, job.target) == (BENCHMARK, pull.head_sha, target.lab, target.name)
        if is_same and job.is_open:
            text = texts.ALREADY_WAITING if job.state is DeviceJobState.WAITING else texts.ALREADY_OPEN
            return text.format(name=name, sha=sha, command=approve_command(request, pull.head_sha))
    since = day_of(request.context.delivery.received_at)
    used = await store.requests(repository_id, target.lab, target.name, request.by.id, since)
    budget = over_budget(target.settings, used)
    return job_texts.BUDGET_USED.format(name=name, budget=budget) if budget else ""


async def _effect(
    request: CommandRequest, target: RequestTarget, words: BenchmarkWords, base: str, limit: float
) -> SubmitBenchmark:
    context, pull = request.context, request.pull
    role = await role_of(context.github, context.repository.full_name, request.by)
    return SubmitBenchmark(
        number=pull.number,
        sha=pull.head_sha,
        base_sha=base,
        lab=target.lab,
        on=target.name,
        suites=target.settings.suites,
        tier=target.settings.tier,
        tests=words.tests,
        precision=words.precision,
        seconds=limit,
        by_id=request.by.id,
        by=request.by.login,
        at=context.delivery.received_at,
        # A person who may write approves their own request, if they saw the head.
        approval_needed=role not in WRITERS or not await saw_head(request),
    )


COMMANDS: tuple[tuple[CommandSpec, CommandFunction], ...] = ((SPEC, benchmark),)
