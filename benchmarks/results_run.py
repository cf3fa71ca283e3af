"""Measure one more nightly run in a store whose suite has had 47,000 names: its put, its check run, its messages.

All figures are processor time of this process. Work that the bot gives to other processes also runs here.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Claims, RunKey, Status, TargetKey

from benchmarks.device_corpus import RULES, every_test
from benchmarks.report import Options, Row, command
from bot.core.memory import freeze_startup_objects
from bot.core.untrusted.limits import AllLimits
from bot.results.compare.diff import CONFIRMED_RUNS
from bot.results.report.baseline import compared_suites, nearest_ancestors
from bot.results.report.findings import Findings
from bot.results.service import ResultsService
from bot.results.state import Admission, Run, RunState
from bot.results.store.commit import commit_state
from bot.results.store.failures.failures import late_run, newest_runs
from bot.results.store.store import ResultsStore
from bot.results.store.write.pending_checks import announced, scheduled_checks
from handlers.regressions.audiences import Audience
from handlers.regressions.decide import EvaluatedRun, EvaluatedTarget
from handlers.regressions.records import REGRESSIONS
from handlers.regressions.target_news import decide_regressions, load_changes
from handlers.results.check_runs import RequestedCheck, decide_check_run
from tests.results.uploads import REPOSITORY as PENDING
from tests.results.uploads import Upload
from tests.signal.github import StraightBranch
from tests.signal.lab import sha_of

TITLE = "One more nightly run in a store with 47,000 names, and 1,144 open checks"
REPOSITORY, LAB, SUITE = "octocat/compiler", "example-lab", "devices"
ABOUT = TargetKey(REPOSITORY, LAB, "board")
TESTS, RUNS, FLIPS = 7_000, 12, 30
OPEN = 1_144
TIMES = 9
DAY = 86_400.0
LATER = 1e13
SEED = 20_261_123

Made = TypeVar("Made")


async def measure(options: Options) -> list[Row]:
    """Store runs, and measure the last one."""
    freeze_startup_objects()  # as in the bot and in the processes of its pool
    folder = Path(tempfile.mkdtemp(prefix="nightjar-bench-"))
    store, pending = (ResultsStore(f"sqlite:///{folder}/{name}.db") for name in ("results", "pending"))
    for opened_store in (store, pending):
        opened_store.open()
    try:
        puts = _put_runs(store)
        checks = [await _timed(lambda: _check_run(store)) for _ in range(TIMES)]
        messages = [await _timed(lambda: _messages(store)) for _ in range(TIMES)]
        return [
            _row(f"a put of {TESTS:,} tests, the suite having had {len(RULES) * len(every_test()):,} names", puts),
            _row("its check run", checks),
            _row("its messages", messages),
            *(await _open_checks(pending, max(1, OPEN // (10 if options.quick else 1)))),
        ]
    finally:
        shutil.rmtree(folder)


def _row(label: str, taken: list[float]) -> Row:
    ordered = sorted(taken)
    milliseconds = [round(1000 * seconds, 1) for seconds in (ordered[0], ordered[len(ordered) // 2])]
    return {"what": label, "best, CPU ms": milliseconds[0], "median, CPU ms": milliseconds[1]}


async def _timed(work: Callable[[], Awaitable[object]]) -> float:
    began = time.process_time()
    await work()
    return time.process_time() - began


def _put_runs(store: ResultsStore) -> list[float]:
    for number, rule in enumerate(RULES):
        names = [rule(parts) for parts in every_test()]
        store.put(_run(f"other-{number}", 0), collect(_cases(names, set()), _resolve))
    names = [RULES[-1](parts) for parts in every_test()[:TESTS]]
    chance, failing, taken = random.Random(SEED), set[int](), []
    for number in range(RUNS):
        failing = {*list(failing)[: FLIPS // 2], *chance.sample(range(TESTS), FLIPS)}
        columns = collect(_cases(names, failing), _resolve)
        began = time.process_time()
        store.put(_run(ABOUT.target, number), columns)
        taken.append(time.process_time() - began)
    return taken[2:]


def _cases(names: list[str], failing: set[int]) -> Iterator[Case]:
    for place, name in enumerate(names):
        if place in failing:
            yield Case(name, Status.FAILED, seconds=0.5, message="Failed", text=f"Assertion failed at main.c:{place}")
        elif place % 3:
            yield Case(name, Status.PASSED, seconds=0.5)
        else:
            yield Case(name, Status.SKIPPED, message="runtime filter")


def _resolve(case: Case) -> tuple[str, str]:
    return case.name, ""


def _run(target: str, number: int) -> Run:
    key = RunKey(REPOSITORY, LAB, target, sha_of(number), "1")
    admission = Admission(DAY * number, mainline=True)
    return Run(key, "etag", RunState.STORED, "", DAY * number, 0, Claims(SUITE), admission)


class _SamePlace:
    """Runs in this process what the bot runs in a process of its pool."""

    limits = AllLimits()

    async def run(self, owner: object, limits: object, function: Callable[..., Made], *arguments: object) -> Made:
        del owner, limits
        return function(*arguments)


def _service(store: ResultsStore) -> ResultsService:
    nothing: Any = None
    return ResultsService(str, store, nothing, cast(Any, _SamePlace()), nothing)


async def _check_run(store: ResultsStore) -> None:
    """Decide the check run of the last run, as its handler does."""
    service, sha = _service(store), sha_of(RUNS - 1)
    github: Any = StraightBranch(range(RUNS))
    state = await service.read(commit_state, ABOUT, sha)
    compared = await compared_suites(service, github, REPOSITORY, state)
    findings = Findings(state=state, compared=compared, files=frozenset(), contacts=(), reproduce="", over=True)
    assert decide_check_run(findings, RequestedCheck(ABOUT, sha), None, 0.0, "", may_ignore=False).effects


async def _messages(store: ResultsStore) -> None:
    """Decide the messages about the last run, as their handler does."""
    service = _service(store)
    github: Any = StraightBranch(range(RUNS))
    newest = store.read(newest_runs, ABOUT)[0]
    store.read(late_run, ABOUT, newest.sha)
    ancestors = await nearest_ancestors(service, github, REPOSITORY, ABOUT, newest.sha, [SUITE], most=CONFIRMED_RUNS)
    changes, failing = store.read(load_changes, ABOUT, newest.sha, {SUITE: ancestors[SUITE][0].sha})
    target = EvaluatedTarget(ABOUT, newest.sha, newest.committed_at)
    audiences = [Audience(("slack", "issue"))]
    key = REGRESSIONS.of(1, LAB, ABOUT.target)
    assert decide_regressions(target, changes, failing, EvaluatedRun(), audiences, key).effects


async def _open_checks(store: ResultsStore, count: int) -> list[Row]:
    """Find the pending checks among many open ones: of complete commits, then of commits that wait for a shard."""
    rows = []
    for label, shards in (("all of it is there", 1), ("it waits for a shard", 2)):
        uploads = (Upload(number, {"a": "passed", "b": "passed"}, target=label) for number in range(1, count + 1))
        for upload in uploads:
            part = upload.in_shards(shards)[0]
            store.put(part.run, part.columns)
        rows.append(_row(f"{count:,} new checks, {label}", [_ask_pending(store) for _ in range(TIMES)]))
        for pending in store.read(scheduled_checks, PENDING, LATER / 10, 0.0, LATER):
            store.write(announced, pending)
    return [*rows, _row(f"{count:,} checks that are announced and wait", [_ask_pending(store) for _ in range(TIMES)])]


def _ask_pending(store: ResultsStore) -> float:
    began = time.process_time()
    store.read(scheduled_checks, PENDING, LATER / 10, 0.0, LATER)
    return time.process_time() - began


main = command(measure, TITLE, usual_rounds=1)

if __name__ == "__main__":
    main()
