"""A flow that damages its process in the way and at the stage that a case's name says: `run_segfault`."""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nightjar_lab.suite.case import CaseData, SuiteCase, TestSuite
from nightjar_lab.suite.flow import Flow, LoweringReport
from nightjar_lab.suite.outcome import InvalidCase, SkipCase

CONTROLS = "".join(map(chr, (*range(32), 127, 0x9B, 0x202E, 0xD800)))
ANNOUNCED = "announced.pipe"
GROWN: list[Any] = []


def act(deed: str) -> None:
    if deed == "fails":
        raise ValueError("no such op: é | `x` @octocat\nsee log")
    if deed == "skips":
        raise SkipCase("needs a device")
    if deed == "invalid":
        raise InvalidCase("the model has no output")
    if deed == "exits":
        raise SystemExit(3)
    if deed == "leaves":
        os._exit(0)
    if deed == "segfault":
        sys.stdout.write("about to crash\n")
        os.kill(os.getpid(), signal.SIGSEGV)
    if deed == "sleeps":
        time.sleep(1000)
    if deed == "grows":
        GROWN.append(b"x" * (400 << 20))
        time.sleep(1000)
    if deed == "memory":
        raise MemoryError
    if deed == "prints":
        sys.stdout.write('{"event": "result"}\n' * 3)
        os.write(2, b"\x1b[2J" + b"y" * 100_000)
    if deed == "closes":
        os.closerange(0, 1024)
    if deed == "forks":
        # The copy continues as if it were the worker.
        os.fork()
    if deed == "orphans":
        # The worker must not end, and its processes with it, before this one is known.
        known, announced = os.pipe()
        if not os.fork():
            # It keeps the connection and the output open, and does not end by itself.
            Path(ANNOUNCED).write_text(str(os.getpid()))
            os.write(announced, b"1")
            time.sleep(1000)
        os.read(known, 1)
    if deed == "announces":
        Path(ANNOUNCED).write_text(str(os.getpid()))
        time.sleep(1000)
    if deed == "teardown":
        atexit.register(os.abort)


def at(stage: str, name: str) -> None:
    stage_of_deed, _, deed = name.partition("_")
    if stage_of_deed == stage:
        act(deed)


def make(name: str) -> SuiteCase:
    def data(_seed: int) -> CaseData:
        at("make", name)
        return CaseData(name, [[1.0, 2.0]], lambda: expected(name))

    return SuiteCase(name, data, params={"dtype": "float32"} if name.startswith("lower") else {})


def expected(name: str) -> list[Any]:
    at("reference", name)
    return [[1.0, 2.0]]


def stage(name: str) -> Any:
    def run(model: str, *_: object) -> str:
        at(name, model)
        return model

    return run


def outputs(model: str, inputs: Sequence[Any]) -> list[Any]:
    at("run", model)
    return [[1.0, 9.0]] if model == "run_differs" else list(inputs)


def report(_model: str) -> LoweringReport:
    return LoweringReport({"list.mul": 1}, {}, size_bytes=1600)


FLOW = Flow(
    "hostile",
    "lists",
    stage("lower"),
    outputs,
    quantize=stage("quantize"),
    load=stage("load"),
    report=report,
    skip={"skip_*": "not for this backend"},
    known_failing={"run_memory": "leaks", "pass_known": "was broken"},
    version="1",
)
NAMES = (
    "pass_a",
    "run_fails", "make_fails", "reference_fails", "quantize_fails", "lower_fails", "load_fails", "run_differs",
    "skip_me", "load_skips", "lower_invalid", "run_exits", "run_memory", "pass_known", "run_prints", "lower_segfault",
    "run_leaves", "run_forks", "pass_b", "make_segfault", "reference_leaves", "make_memory",
    "pass_\x1b[31m\n`|@octocat", CONTROLS,
)  # fmt: skip
SUITE = TestSuite("deeds", lambda: NAMES, make, version="1")
SLOW = TestSuite("slow", lambda: ("run_sleeps", "run_closes", "run_grows", "run_teardown", "pass_z"), make, timeout=30)
ORPHANS = TestSuite("orphans", lambda: ("run_orphans", "pass_a"), make)
KILLED = TestSuite("killed", lambda: ("pass_a", "pass_b", "run_announces"), make)


def announced(folder: Path) -> int:
    """Wait until a worker runs the case that announces itself; return a descriptor of its process."""
    return os.pidfd_open(int((folder / ANNOUNCED).read_text()))


def has_ended(process: int) -> bool:
    """Wait until a process has ended, for at most a minute."""
    ended = bool(select.select([process], [], [], 60)[0])
    os.close(process)
    return ended
