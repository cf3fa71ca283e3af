"""Run cases in worker processes with limits. If a worker crashes, only the result of its case is affected."""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nightjar_lab.suite import texts
from nightjar_lab.suite.outcome import FAILED_AT, NOT_THE_BACKEND, SuiteOutcome, SuiteStage
from nightjar_lab.suite.result import SuiteResult, result_of, test_id_of, with_known_failure
from nightjar_lab.suite.worker_process import HALF_OUTPUT, START_SECONDS, WorkerProcess, describe_status

TICK = 0.05
"""Seconds between two checks of time and memory."""
MOST_FAILED_STARTS = 3
MB = 1 << 20


class CannotRun(Exception):
    """The suite cannot run, or cannot continue; the text says why. `backend` is that of the flow, empty if unknown."""

    def __init__(self, text: str, backend: str = "") -> None:
        super().__init__(text)
        self.backend = backend


@dataclass(frozen=True)
class SuiteLimits:
    """The limits of a case. `memory` is in bytes, and counts the resident memory of the worker.

    Not the address space (RLIMIT_AS): a compiler that maps its libraries and reserves an arena has many gigabytes of
    addresses and uses few of them. RLIMIT_DATA counts reserved memory too.
    """

    seconds: float | None = None
    memory: int = 4096 * MB


@dataclass(frozen=True)
class SuiteInfo:
    """A worker's description of its flow and its suite."""

    flow: str
    backend: str
    flow_version: str
    suite: str
    suite_version: str
    timeout: float
    description: str = ""
    quantization: str = ""
    model_format: str = ""


class SuiteRunner:
    """Runs cases of a suite on a flow. Use it in a `with` statement: at its end, no worker is left.

    `notice` is called with a sentence about each event outside of cases, such as a worker that crashes at its end.
    """

    def __init__(
        self,
        flow: str,
        suite: str,
        *,
        jobs: int = 1,
        limits: SuiteLimits | None = None,
        notice: Callable[[str], None] = lambda _text: None,
        half_output: int = HALF_OUTPUT,
    ) -> None:
        self._half_output = half_output
        self._names = (flow, suite)
        self._jobs = jobs
        self._limits = limits or SuiteLimits()
        self._notice = notice
        self._workers: list[WorkerProcess] = []
        self._selector = selectors.DefaultSelector()
        self._waiting: deque[str] = deque()
        self._retried: set[str] = set()
        self._failed_starts = 0
        self._info: SuiteInfo | None = None

    def __enter__(self) -> SuiteRunner:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.kill()
        self._workers.clear()
        self._selector.close()

    def start(self) -> SuiteInfo:
        """Start a worker, and return its description of the flow and the suite. Raises CannotRun."""
        worker = self._add()
        for event in self._until(worker, "ready"):
            if event["event"] == "ready":
                self._is_ready(worker, event)
        assert self._info is not None
        return self._info

    def names(self) -> list[str]:
        """Return the names of all cases. Raises CannotRun."""
        worker = self._workers[0]
        worker.allow(START_SECONDS)
        worker.send({"do": "names"})
        names: list[str] = []
        for event in self._until(worker, "names"):
            names = event.get("names", [])
        worker.idle()
        return names

    def run(self, names: Sequence[str]) -> Iterator[SuiteResult]:
        """Run cases and yield the result of each as it comes. Raises CannotRun if no further worker can be started."""
        self._waiting = deque(names)
        remaining = len(names)
        while remaining:
            for worker in [worker for worker in self._workers if worker.ready and worker.case is None]:
                self._give(worker)
            busy = sum(worker.case is not None or not worker.ready for worker in self._workers)
            if len(self._workers) < self._jobs and busy < remaining and self._waiting:
                self._add()
            self._selector.select(TICK)
            for worker in list(self._workers):
                for result in self._check(worker):
                    remaining -= 1
                    yield result

    def finish(self) -> None:
        """End all workers, and call `notice` for each that did not end well."""
        for worker in self._workers:
            worker.ask_to_end()
        for worker in list(self._workers):
            self._remove(worker)

    @property
    def _seconds(self) -> float:
        return self._limits.seconds or (self._info.timeout if self._info else 0)

    def _add(self) -> WorkerProcess:
        worker = WorkerProcess(*self._names, self._half_output)
        self._workers.append(worker)
        for descriptor in worker.open:
            self._selector.register(descriptor, selectors.EVENT_READ)
        return worker

    def _drop(self, worker: WorkerProcess) -> None:
        for descriptor in (worker.events, worker.output):
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)
        self._workers.remove(worker)

    def _remove(self, worker: WorkerProcess) -> None:
        """End an idle worker."""
        self._drop(worker)
        status = worker.end()
        if status is None:
            self._notice(texts.TEARDOWN_HANGS)
        elif status:
            self._notice(texts.TEARDOWN.format(how=describe_status(status)))

    def _is_ready(self, worker: WorkerProcess, event: dict[str, Any]) -> None:
        flow, suite = event["flow"], event["suite"]
        info = SuiteInfo(
            flow["name"],
            flow["backend"],
            flow["version"],
            suite["name"],
            suite["version"],
            float(event["timeout"]),
            flow["description"] or suite["description"],
            flow["quantization"],
            event["model_format"],
        )
        if self._info is not None and info != self._info:
            raise CannotRun(texts.CHANGED)
        self._info, self._failed_starts = info, 0
        worker.ready = True
        worker.idle()

    def _until(self, worker: WorkerProcess, awaited: str) -> Iterator[dict[str, Any]]:
        """Yield the events of a worker up to one of the kind `awaited`. Raises CannotRun if none comes in time."""
        while True:
            self._selector.select(TICK)
            status = worker.status
            for event in self._read(worker):
                if event.get("event") == "unavailable":
                    raise CannotRun(str(event.get("reason")), str(event.get("backend") or ""))
                yield event
                if event.get("event") == awaited:
                    return
            if status is not None:
                raise CannotRun(texts.NO_START.format(how=describe_status(status), output=worker.excerpt.text()))
            if time.monotonic() > worker.deadline:
                raise CannotRun(texts.NO_START.format(how=texts.TOO_SLOW, output=worker.excerpt.text()))

    def _read(self, worker: WorkerProcess) -> list[dict[str, Any]]:
        open_before = set(worker.open)
        events = worker.read()
        for descriptor in open_before - worker.open:
            self._selector.unregister(descriptor)
        return events

    def _give(self, worker: WorkerProcess) -> None:
        """Give an idle worker its next case; replace a worker that has grown, so that no case is blamed for it."""
        if not self._waiting:
            return
        if worker.memory > self._limits.memory / 2:
            self._remove(worker)
            return
        worker.begin(self._waiting.popleft())

    def _check(self, worker: WorkerProcess) -> Iterator[SuiteResult]:
        """Yield the result of a worker's case if there is one."""
        status = worker.status  # before its events are read, so that none can come later
        for event in self._read(worker):
            yield from self._on(worker, event)
        late = time.monotonic() > worker.deadline
        grown = worker.case is not None and worker.memory > self._limits.memory
        if status is None and not late and not grown:
            return
        self._drop(worker)
        worker.kill()
        if not worker.ready:
            self._not_started(worker, describe_status(status) if status is not None else texts.TOO_SLOW)
        elif worker.case is not None:
            yield from self._lost(worker, status, grown=grown)
        elif status is not None:
            self._notice(texts.ENDED_IDLE.format(how=describe_status(status)))

    def _on(self, worker: WorkerProcess, event: dict[str, Any]) -> Iterator[SuiteResult]:
        kind = event.get("event")
        if kind == "ready":
            self._is_ready(worker, event)
        elif kind == "unavailable":
            self._not_started(worker, str(event.get("reason")))
        elif kind == "begin":
            worker.has_begun, worker.known_failure = True, event.get("known")
        elif kind == "stage":
            worker.at_stage(SuiteStage(event["stage"]), event["params"], self._seconds)
        elif kind == "result" and worker.case is not None:
            known_failure = worker.known_failure
            result = replace(result_of(event["record"]), output=worker.excerpt.text())
            worker.idle()
            yield with_known_failure(result, known_failure)

    def _not_started(self, worker: WorkerProcess, how: str) -> None:
        self._failed_starts += 1
        if self._failed_starts == MOST_FAILED_STARTS:
            raise CannotRun(texts.NO_START.format(how=how, output=worker.excerpt.text()))

    def _lost(self, worker: WorkerProcess, status: int | None, *, grown: bool) -> Iterator[SuiteResult]:
        """Yield the result of a case whose worker was killed or has ended; retry a case that had not begun."""
        case = worker.case
        assert case is not None
        if status is not None and not worker.has_begun and case not in self._retried:
            self._retried.add(case)
            self._waiting.appendleft(case)
            return
        seconds = time.monotonic() - worker.since
        if status is not None:
            outcome, error = SuiteOutcome.CRASH, describe_status(status)
        elif grown:
            limit = self._limits.memory // MB
            outcome, error = SuiteOutcome.OUT_OF_MEMORY, texts.TOO_LARGE.format(limit=limit)
        elif worker.closed:
            outcome, error = SuiteOutcome.CRASH, texts.CLOSED
        else:
            outcome, error = SuiteOutcome.TIMEOUT, texts.TIMED_OUT.format(seconds=worker.allowed)
        # At these stages, the backend has not run yet.
        outcome = FAILED_AT[worker.stage] if worker.stage in NOT_THE_BACKEND else outcome
        error_at_stage = texts.AT_STAGE.format(stage=worker.stage.value if worker.stage else texts.BEFORE, what=error)
        flow = self._info.flow if self._info else self._names[0]
        result = SuiteResult(test_id_of(case, flow, worker.params), case, flow, outcome, worker.stage, error_at_stage)
        result = replace(result, params=worker.params, seconds=seconds, output=worker.excerpt.text())
        yield with_known_failure(result, worker.known_failure)
