"""Feed a simulated lab to the real code, run by run, and record what people are sent.

The bot's own store, comparison and handler make all decisions. Only their surroundings are replaced: GitHub by a
straight branch, the processes of the pool by a call, the table of records by a dict.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Set
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, cast

from nightjar_formats.columns.collect import Columns, collect
from nightjar_formats.model import BAD, Case, Claims, RunKey, Status, TargetKey, Trouble

from bot.app.load import parse_config
from bot.core.events import Delivery, Payload, Repository
from bot.core.parts import PartMap
from bot.core.untrusted.limits import AllLimits
from bot.core.untrusted.pool import Pool
from bot.core.untrusted.queue import Owner
from bot.effects.remember import StoreRecord
from bot.engine.records import Key, Record, Records, StoredValue
from bot.github.app import AppIdentity
from bot.github.client import GitHub
from bot.plan.handler import Context, Plan
from bot.results.deliveries import CHECK_EVENT, CheckEvent
from bot.results.report.baseline import compared_suites
from bot.results.report.findings import ComparedSuite
from bot.results.service import RESULTS, ResultsService
from bot.results.state import Admission, Run, RunState
from bot.results.store.commit import commit_state
from bot.results.store.failures.failures import reported_failures, store_reports
from bot.results.store.store import ResultsStore
from bot.results.store.write.pending_checks import announced, scheduled_checks
from handlers.regressions.decide import unpack_failures
from handlers.regressions.effects import StoreReports
from handlers.regressions.target_news import report_regressions
from tests.signal.github import StraightBranch
from tests.signal.lab import FAILED, PASSED, SKIPPED, LabFault, SimulatedLab, SimulatedRun

LAB, TARGET, SUITE = "example-lab", "adreno", "operators"
OTHER_TARGET = "hexagon-v73"
STATUSES = {PASSED: Status.PASSED, FAILED: Status.FAILED, SKIPPED: Status.SKIPPED}
NAME = "octocat/compiler"
CONFIG = parse_config(
    json.dumps(
        {
            "repositories": {
                NAME: {
                    "results": {"bucket": "device-results", "labs": {LAB: {"targets": [TARGET, OTHER_TARGET]}}},
                    "regressions": {"to": ["slack"]},
                }
            }
        }
    ).encode(),
    "app.yaml",
)
IN_TURN = 4
"""Of so many runs, one check run at least is computed."""
ME = AppIdentity(1, "nightjar", "nightjar[bot]", 2)

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Observed:
    """The consequences of one arrival: its check run, and the failures reported as begun and as ended.

    `check_run` is None if it was not computed: it takes a quarter of the time, and most repeat the others. `messages`
    counts the messages to the channel, `rechecked` the check runs that were computed.
    """

    run: SimulatedRun
    check_run: ComparedSuite | None
    began: frozenset[str]
    ended: frozenset[str]
    messages: int
    rechecked: int
    requests: int


class _SamePlace:
    """Does the pool's work at once: the tests of `bot.core.untrusted` cover its processes.

    `compared` has the last comparison of each commit, so that it is made once.
    """

    limits = AllLimits()

    def __init__(self) -> None:
        self.compared: dict[str, ComparedSuite] = {}

    async def run(self, owner: Owner, limits: object, function: Callable[..., T], *arguments: object) -> T:
        del limits
        made = function(*arguments)
        if isinstance(made, ComparedSuite):
            self.compared[owner.part.rpartition(" ")[2]] = made
        return made


class _SameThread(ThreadPoolExecutor):
    """Runs a thread's work at once: the handler's threads have nothing to do in parallel here."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future = Future[T]()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _RecordsInMemory:
    """The records of one lab, stored as JSON values, as in the table."""

    def __init__(self) -> None:
        self._stored: dict[str, StoredValue] = {}

    async def get(self, key: Key[T]) -> T | None:
        stored = self._stored.get(key.name)
        return None if stored is None else key.record.load(key.name, stored.value, stored.version)

    async def under(self, record: Record[T], *ids: int | str) -> dict[str, T]:
        del record, ids  # each lab has one target, and waits for no other
        return {}

    def apply(self, effect: StoreRecord) -> None:
        assert effect.stored is not None
        self._stored[effect.key] = effect.stored


class Replay:
    """One lab in a store that may hold many, each in its own repository; `now` is the clock of the store.

    `target` is the one that the lab tests on: labs of one seed with two targets share a repository. `results`, if
    given, makes what handlers read.
    """

    def __init__(
        self,
        store: ResultsStore,
        lab: SimulatedLab,
        clock: Clock,
        target: str = TARGET,
        results: type[ResultsService] = ResultsService,
    ) -> None:
        self._about = TargetKey(f"{NAME}-{lab.seed}", LAB, target)
        self._repository = Repository(lab.seed + 1, self._about.repository, None)
        self._store = store
        self._lab = lab
        self._clock = clock
        self._records = _RecordsInMemory()
        self._arrived = 0
        self._known: frozenset[str] = frozenset()
        self._names: Set[str] = frozenset()
        self._github = StraightBranch(run.position for run in lab.runs)
        self._pool = _SamePlace()
        self._results = results(
            CONFIG.configured.canonical_name, store, cast("Any", None), cast("Pool", self._pool), cast("Any", None)
        )
        self._parts = PartMap()
        self._parts[RESULTS] = self._results

    async def arrivals(self) -> list[Observed]:
        """Let every run arrive, and return the consequences of each."""
        asyncio.get_running_loop().set_default_executor(_SameThread())
        return [await self._arrive(run) for run in self._lab.arrivals]

    async def _arrive(self, run: SimulatedRun) -> Observed:
        self._clock.now = run.received_at
        reported_before, requests = self._known, self._github.requests
        self._store.put(self._run(run), _columns(run))
        messages = rechecked = 0
        for pending in self._store.read(scheduled_checks, self._about.repository, run.received_at, 0.0, 0.0):
            plan = await report_regressions(self._context(CheckEvent.of(pending)))
            self._store.write(announced, pending)
            messages += self._applied(plan)
            rechecked += 1
        requests = self._github.requests - requests
        check_run = self._pool.compared.get(run.sha)
        if check_run is None and self._is_of_interest(run):
            check_run = await self._compared(run)
        reported_after = self._known = self._reported()
        return Observed(
            run,
            check_run,
            reported_after - reported_before,
            reported_before - reported_after,
            messages,
            rechecked,
            requests,
        )

    def _is_of_interest(self, run: SimulatedRun) -> bool:
        """Return whether to compute a check run:

        tests came, went, flaked or broke with the lab; otherwise some in turn.
        """
        self._arrived += 1
        names, earlier_names = run.tests.keys(), self._names
        if run.counts:
            self._names = names
        return names != earlier_names or bool(run.flaky) or run.fault is not None or self._arrived % IN_TURN == 0

    async def _compared(self, run: SimulatedRun) -> ComparedSuite:
        """Compare a run that the handler did not have compared."""
        state = await self._results.read(commit_state, self._about, run.sha)
        github = cast("GitHub", self._github)
        return (await compared_suites(self._results, github, self._about.repository, state))[SUITE]

    def _reported(self) -> frozenset[str]:
        """Return the tests that people know to fail."""
        return frozenset(failure.test for failure in self._store.read(reported_failures, self._about))

    def _applied(self, plan: Plan) -> int:
        """Store the planned records, and count the messages."""
        for effect in plan.effects:
            if isinstance(effect, StoreRecord):
                self._records.apply(effect)
            elif isinstance(effect, StoreReports):
                ended = unpack_failures(effect.failures)
                self._store.write(store_reports, self._about, effect.sha, self._store.clock(), ended.pop(""), ended)
                for record in effect.then:
                    self._records.apply(record)
        return sum(not isinstance(effect, StoreRecord | StoreReports) for effect in plan.effects)

    def _context(self, event: CheckEvent) -> Context:
        delivery = Delivery(
            "check", CHECK_EVENT.name, Payload(CHECK_EVENT.body(self._repository, event)), self._clock.now
        )
        github, records = cast("GitHub", self._github), cast("Records", self._records)
        config = CONFIG.repositories[NAME]
        return Context(delivery, "", self._repository, config, CONFIG, github, ME, records, self._parts)

    def _run(self, run: SimulatedRun) -> Run:
        key = RunKey(self._about.repository, LAB, self._about.target, run.sha, "run-1")
        claims = Claims(SUITE, shard_total=2 if run.incomplete else 1, exit_status=137 if run.interrupted else 1)
        admission = Admission(run.committed_at, mainline=True)
        return Run(key, "v1", RunState.STORED, "", run.received_at, 100, claims, admission)


@dataclass
class Clock:
    """The time of the simulation, in seconds since 1970."""

    now: float = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def _columns(run: SimulatedRun) -> Columns:
    return collect(_cases(run), lambda case: (case.nodeid, case.nodeid.partition("::")[0]))


def _cases(run: SimulatedRun) -> Iterator[Case]:
    for name, letter in run.tests.items():
        status, trouble, message = STATUSES[letter], Trouble.NONE, ""
        if run.fault is LabFault.UNREADABLE:
            status, trouble, message = Status.ERRORED, Trouble.COLLECTION, "ImportError: no such module"
        elif run.fault is LabFault.RUNNER:
            status, trouble, message = Status.ERRORED, Trouble.INTERNAL, "INTERNALERROR"
        elif run.fault is LabFault.ONE_CAUSE:
            message = "the device was lost"
        elif status in BAD:
            message = f"wrong result of {name.rpartition('::')[2]}"
        yield Case(name, status, nodeid=name, flaky=name in run.flaky, trouble=trouble, message=message)
