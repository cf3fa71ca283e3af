"""`@ci benchmark [TEST…] on TARGET`: compare what tests measure at the head and at its base, in turn on one device."""

from __future__ import annotations

from bot.commands.dialogue import CommandAnswer, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.github.commits.refs import merge_base
from bot.github.text.markdown import code
from handlers.device_tests.benchmarks import texts
from handlers.device_tests.benchmarks.model import BENCHMARK, BadOptions, benchmark_words
from handlers.device_tests.commands import KEY, head_request, takes_requests
from handlers.device_tests.model import FewTests, cut_tests
from handlers.device_tests.one_target import NoTarget, answer_for, one_target
from handlers.device_tests.requesting import answer_request
from handlers.device_tests.store import JOBS
from handlers.device_tests.targets import request_targets
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
    try:
        target = await one_target(request.context, results, accepting, words.target, texts.SEVERAL_TARGETS)
    except NoTarget as problem:
        return _refused(str(problem))
    limit, most = words.seconds or target.settings.benchmark_seconds, target.settings.timeout_seconds
    name, sha = code(target.full_name), code(pull.head_sha[:7])
    if limit > most:
        return _refused(texts.TOO_LONG.format(name=name, most=time_text(most), time=time_text(limit)))
    base = await merge_base(context.github, context.repository.full_name, pull.base_ref, pull.head_sha)
    if base is None:
        return _refused(texts.NO_BASE.format(branch=code(pull.base_ref)))
    job_request = await head_request(
        request,
        purpose=BENCHMARK,
        few_tests=FewTests(cut_tests(words.tests), base_sha=base, precision=words.precision, seconds=limit),
    )
    answer = await answer_request(context.part(JOBS), context.repository.id, job_request, target)
    if answer.open_job and answer.open_job.few_tests != job_request.few_tests:
        return _refused(texts.OTHER_OPEN.format(name=name, sha=sha))
    return answer_for(request, job_request, answer, texts.REQUESTED.format(name=name, sha=sha, base=code(base[:7])))


def _refused(say: str) -> CommandAnswer:
    return CommandAnswer(say=say, done=False)
