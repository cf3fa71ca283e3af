"""Run cases of one suite on one flow in a process of its own: `python -m nightjar_lab.suite.worker FLOW SUITE EVENTS`.

It reads commands from standard input and writes events to the descriptor EVENTS, both one JSON value a line:
`{"do": "names"}` and `{"do": "case", "name": …}`; `ready`, `unavailable`, `names`, `begin`, `stage`, `result`.
A flow may do anything with the process, so it gets an empty standard input, and the runner reads its output.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import fcntl
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from nightjar_lab.suite.case import TestSuite
from nightjar_lab.suite.compare import NumpyMissing, load_numpy
from nightjar_lab.suite.discovery import NotAvailable, load_flow, load_suite
from nightjar_lab.suite.flow import Flow, matching
from nightjar_lab.suite.outcome import SuiteStage
from nightjar_lab.suite.result import record_of
from nightjar_lab.suite.stages import describe_error, run_case

FIRST_OWN = 200
"""Our descriptors start at this number, beyond those that careless code closes."""
PR_SET_PDEATHSIG = 1

_T = TypeVar("_T")


class WorkerChannel:
    """Sends events. In a child that a flow forked, `send` ends the child instead."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN)
        os.close(descriptor)
        self._owner = os.getpid()

    def send(self, event: str, **members: Any) -> None:
        """Send an event."""
        if os.getpid() != self._owner:
            os._exit(0)
        line = json.dumps({"event": event, **members}).encode() + b"\n"
        while line:
            line = line[os.write(self._descriptor, line) :]


def main(arguments: list[str]) -> int:
    """Run commands until standard input ends."""
    flow_name, suite_name, descriptor = arguments
    _end_with_the_runner()
    faulthandler.enable()
    channel = WorkerChannel(int(descriptor))
    commands = os.fdopen(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, FIRST_OWN), "rb", buffering=0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    loaded = _load(flow_name, suite_name, channel)
    if loaded is None:
        return 1
    flow, suite = loaded
    while line := commands.readline():
        _obey(json.loads(line), flow, suite, channel)  # noqa: TID251  # from our own process
    return 0


def _load(flow_name: str, suite_name: str, channel: WorkerChannel) -> tuple[Flow, TestSuite] | None:
    """Load the flow and the suite, and send their descriptions; one of the two names may be empty."""
    try:
        load_numpy()
        # `suite list` asks for one of the two.
        flow = load_flow(flow_name) if flow_name else Flow("", "", _nothing, _nothing)
        suite = load_suite(suite_name) if suite_name else TestSuite.of("", [])
        versions = _text(flow.version), _text(suite.version)
    except (NotAvailable, NumpyMissing) as error:
        channel.send("unavailable", reason=str(error), backend=getattr(error, "backend", ""))
        return None
    except Exception as error:
        channel.send("unavailable", reason=describe_error(error))
        return None
    channel.send(
        "ready",
        flow={
            "name": flow.name,
            "backend": flow.backend,
            "version": versions[0],
            "description": flow.description,
            "quantization": flow.quantization,
        },
        suite={"name": suite.name, "version": versions[1], "description": suite.description},
        model_format=flow.model_format or suite.model_format,
        timeout=suite.timeout,
    )
    return flow, suite


def _obey(command: dict[str, Any], flow: Flow, suite: TestSuite, channel: WorkerChannel) -> None:
    if command["do"] == "names":
        try:
            channel.send("names", names=[str(name) for name in suite.names()])
        except Exception as error:
            channel.send("unavailable", reason=describe_error(error))
        return
    name = str(command["name"])
    channel.send("begin", name=name, known=matching(flow.known_failing, name))

    def announce(stage: SuiteStage, params: Mapping[str, str]) -> None:
        _flush()
        channel.send("stage", stage=stage.value, params=dict(params))

    result, _ = run_case(flow, suite, name, announce)
    _flush()
    channel.send("result", record=record_of(result))


def _nothing(*_: Any) -> Any:
    """Stand in for the functions of a flow, where only a suite is loaded."""


def _flush() -> None:
    """Flush the output, so that the runner reads it with the case that printed it."""
    for stream in (sys.stdout, sys.stderr):
        # A flow may have closed or replaced the stream.
        with contextlib.suppress(Exception):
            stream.flush()


def _text(value: str | Callable[[], str]) -> str:
    return str(value() if callable(value) else value)


def _end_with_the_runner() -> None:
    """Let Linux kill this process when the runner ends, for whatever reason. Elsewhere, it ends after its case."""
    if sys.platform == "linux":
        parent = os.getppid()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
