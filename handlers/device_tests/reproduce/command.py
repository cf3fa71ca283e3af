"""`@ci reproduce TEST on TARGET x20`: request runs of one test at the head and at its base, in turn on one device.

Approval, budgets and pushes are as for `@ci test on`: a device runs the head's code. On an issue about a regression,
the same command runs the test where it began to fail, and at the last good commit (`handlers.searches.on_issues`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.commands.dialogue import CommandAnswer, CommandRequest
from bot.commands.grammar import Arguments, Command, CommandSpec
from bot.core.patterns import Pattern
from bot.github.commits.refs import merge_base
from bot.github.text.markdown import code
from bot.results.service import RESULTS
from bot.results.store.history.timelines import has_test, suites_of_target
from handlers.device_tests.commands import KEY, head_request, takes_requests
from handlers.device_tests.model import MOST_REPEATS, DeviceJob, FewTests
from handlers.device_tests.one_target import NoTarget, answer_for, one_target
from handlers.device_tests.reproduce import texts
from handlers.device_tests.requesting import answer_request
from handlers.device_tests.store import JOBS, digest_of
from handlers.device_tests.targets import request_targets
from handlers.device_tests.texts import NO_TARGETS, TEST_CLOSED, times
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    import sqlalchemy as sa

REPRODUCE_PURPOSE = "reproduce:"
"""The beginning of the purpose of a job that reproduces a failure; the digest of the test follows."""
REPEATS = 10
"""How often a test runs at each commit, unless the command says so."""
_COUNT = Pattern(r"[x\x{d7}](\p{Nd}{1,6})", ignore_case=True)
_ON = "on"

REPRODUCE = CommandSpec(
    name="reproduce",
    summary=texts.REPRODUCE_SUMMARY,
    example="reproduce tests/test_ops.py::test_add on hexagon-v73 x20",
    feature=KEY,
    fixed=True,
    arguments=Arguments(names="TEST on TARGET [xN]"),
    offered=takes_requests,
)


def purpose_of(test: str, issue: int = 0) -> str:
    """Return the purpose of the jobs that reproduce the failures of a test, on a pull request or on an issue."""
    purpose = f"{REPRODUCE_PURPOSE}{digest_of(test)}"
    return f"{purpose}:{issue}" if issue else purpose


def issue_of(job: DeviceJob) -> int:
    """Return the number of the issue or pull request on which somebody requested a job that reproduces a failure."""
    return job.pull_request or int(job.purpose.rpartition(":")[2])


@dataclass(frozen=True, slots=True)
class ReproduceRequest:
    """What somebody wrote: a test, empty if it may be left out and was; the name of a target, and how often to run."""

    test: str
    target: str
    repeat: int


def read_request(command: Command, *, is_test_needed: bool = True) -> ReproduceRequest | str:
    """Return what a command requests, or the sentence that says what is wrong with it."""
    words, repeat = command.names, REPEATS
    if len(words) > 2 and (count := _COUNT.fullmatch(words[-1])) and words[-3].casefold() == _ON:
        repeat, words = int(count[1]), words[:-1]
    test = words[:-2]
    if len(words) < 2 or words[-2].casefold() != _ON or len(test) > 1 or (is_test_needed and not test):
        return texts.USAGE.format(command=code(f"{command.mention} {REPRODUCE.example}"))
    if not 1 <= repeat <= MOST_REPEATS:
        return texts.BAD_COUNT.format(most=MOST_REPEATS, written=code(command.names[-1]))
    return ReproduceRequest(test[0] if test else "", words[-1], repeat)


async def reproduce(request: CommandRequest, command: Command) -> CommandAnswer:
    """Request runs of a test on a target."""
    pull, context = request.pull, request.context
    results = context.config.of(LAB_RESULTS)
    accepting = request_targets(results)
    if results is None or not accepting:
        return CommandAnswer(say=NO_TARGETS, done=False)
    if not pull.is_open:
        return CommandAnswer(say=TEST_CLOSED, done=False)
    wanted = read_request(command)
    if isinstance(wanted, str):
        return CommandAnswer(say=wanted, done=False)
    test, repeat = wanted.test, wanted.repeat
    try:
        target = await one_target(context, results, accepting, wanted.target, texts.ONE_TARGET)
    except NoTarget as problem:
        return CommandAnswer(say=str(problem), done=False)
    about = context.part(RESULTS).canonical(TargetKey(context.repository.full_name, target.lab, target.name))
    base = await merge_base(context.github, context.repository.full_name, pull.base_ref, pull.head_sha)
    job_request = await head_request(
        request,
        purpose=purpose_of(test),
        few_tests=FewTests((test,), repeat, base or ""),
        suites=await context.part(RESULTS).read(_suites_with, about, test) or None,
    )
    answer = await answer_request(context.part(JOBS), context.repository.id, job_request, target)
    template = texts.REQUESTED if base else texts.REQUESTED_ALONE
    requested = template.format(
        name=code(target.full_name),
        test=code(test),
        times=times(repeat),
        sha=code(pull.head_sha[:7]),
        base=code((base or "")[:7]),
    )
    return answer_for(request, job_request, answer, requested)


def _suites_with(connection: sa.Connection, target: TargetKey, test: str) -> tuple[str, ...]:
    """Return the suites of a target that have had a test; none for a test that the pull request adds."""
    suites = suites_of_target(connection, target)
    return tuple(suite for suite in suites if has_test(connection, target, suite, test))
