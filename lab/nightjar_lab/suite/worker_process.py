"""Control a worker from the runner: a process with a connection, an output, a deadline and a limit of memory."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

from nightjar_lab.command import clean_environment, hide_secrets
from nightjar_lab.suite import texts
from nightjar_lab.suite.outcome import SuiteStage

BOOT = (
    "import sys; sys.path[:] = [one for one in sys.path if one]; "
    "from nightjar_lab.suite.worker import main; sys.exit(main(sys.argv[1:]))"
)
"""Not `-m`, which would import from the current folder: a checkout of the backend would hide the installed one."""
START_SECONDS = 300.0
"""The most seconds for a worker to load its flow and its suite, and to make a case."""
END_SECONDS = 10.0
CLOSED_SECONDS = 1.0
"""Seconds from the end of the connection until the worker is killed; it also closes when a worker ends by itself."""
CHUNK = 1 << 16
HALF_OUTPUT = 4096
"""The most bytes of a case's output that are stored from its beginning, and as many from its end."""
MOST_LINE = 64 << 20


class OutputExcerpt:
    """The beginning and the end of an output of any length."""

    def __init__(self, half: int = HALF_OUTPUT) -> None:
        self._half = half
        self._head, self._tail, self._dropped = b"", b"", 0

    def add(self, chunk: bytes) -> None:
        """Add the next bytes."""
        room = self._half - len(self._head)
        self._head += chunk[:room]
        tail = self._tail + chunk[room:]
        self._dropped += max(0, len(tail) - self._half)
        self._tail = tail[-self._half :]

    def text(self) -> str:
        """Return the output, with a mark where something was left out."""
        mark = texts.OUTPUT_CUT.format(count=self._dropped) if self._dropped else ""
        return self._head.decode(errors="replace") + mark + self._tail.decode(errors="replace")


class WorkerProcess:
    """A worker. `case` is the case that it runs, None if it is idle; `stage` is the last one that it announced."""

    def __init__(self, flow: str, suite: str, half_output: int = HALF_OUTPUT) -> None:
        hide_secrets()
        self._half_output = half_output
        self.events, write_end = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603  # this interpreter
                [sys.executable, "-c", BOOT, flow, suite, str(write_end)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(write_end,),
                env=clean_environment({"PYTHONUNBUFFERED": "1"}),
                start_new_session=True,
            )
        finally:
            os.close(write_end)
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()
        for descriptor in (self.events, self.output):
            os.set_blocking(descriptor, False)
        self.open = {self.events, self.output}
        self.excerpt = OutputExcerpt(self._half_output)
        self.ready = False
        self.case: str | None = None
        self.has_begun = False
        self.known_failure: str | None = None
        self.stage: SuiteStage | None = None
        self.params: dict[str, str] = {}
        self.allow(START_SECONDS)
        self.closed = False
        self._line = b""

    @property
    def status(self) -> int | None:
        """Return its exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def memory(self) -> int:
        """Return the bytes of its resident memory; 0 on systems other than Linux."""
        try:
            with open(f"/proc/{self._process.pid}/statm", "rb") as file:  # noqa: PTH123  # ten times a second
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError, ValueError):
            return 0

    def send(self, command: dict[str, Any]) -> None:
        """Send a command. An ended worker is not an error here: `status` shows it."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()

    def begin(self, case: str) -> None:
        """Start a case. Its time begins after it is made, because making the first one may load the whole suite."""
        self.case, self.has_begun, self.known_failure, self.stage, self.params = case, False, None, None, {}
        self.excerpt = OutputExcerpt(self._half_output)
        self.allow(START_SECONDS)
        self.send({"do": "case", "name": case})

    def at_stage(self, stage: SuiteStage, params: dict[str, str], seconds: float) -> None:
        """Store the stage of the case; the first stage after the case is made starts its time limit."""
        if self.stage in (None, SuiteStage.MAKE) and stage is not SuiteStage.MAKE:
            self.allow(seconds)
        self.stage, self.params = stage, params

    def allow(self, seconds: float) -> None:
        """Set its deadline to `seconds` from now."""
        self.since, self.allowed = time.monotonic(), seconds
        self.deadline = self.since + seconds

    def idle(self) -> None:
        """Note that it has done its case."""
        self.case, self.deadline = None, float("inf")

    def read(self) -> list[dict[str, Any]]:
        """Return the events that have arrived, and add new output to the excerpt."""
        for chunk in self._chunks(self.output):
            self.excerpt.add(chunk)
        for chunk in self._chunks(self.events):
            self._line += chunk
        *lines, self._line = self._line.split(b"\n")
        if (self.events not in self.open and not self.closed) or len(self._line) > MOST_LINE:
            self.closed = True
            self.deadline = min(self.deadline, time.monotonic() + CLOSED_SECONDS)
        events = []
        for line in lines:
            # A line that is no event comes from a flow that wrote to our descriptor.
            with contextlib.suppress(ValueError):
                event = json.loads(line)  # noqa: TID251  # errors of outputs may be infinite
                events += [event] if isinstance(event, dict) else []
        return events

    def _chunks(self, descriptor: int) -> list[bytes]:
        chunks: list[bytes] = []
        while descriptor in self.open and len(chunks) < MOST_LINE // CHUNK:
            try:
                chunk = os.read(descriptor, CHUNK)
            except BlockingIOError:
                break
            if not chunk:
                self.open.discard(descriptor)
                break
            chunks.append(chunk)
        return chunks

    def ask_to_end(self) -> None:
        """Close its standard input, after which it ends by itself."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def end(self) -> int | None:
        """Wait for its end; return its exit status, None if it had to be killed."""
        self.ask_to_end()
        deadline = time.monotonic() + END_SECONDS
        while self.status is None and time.monotonic() < deadline:
            self.read()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
        status = self.status
        self.kill()
        return status

    def kill(self) -> None:
        """Kill the worker and the processes that it has started, and close its descriptors."""
        # The worker has a process group of its own, in which it may have left processes.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.ask_to_end()
        if self.events >= 0:
            os.close(self.events)
            self.events = -1
            assert self._process.stdout is not None
            self._process.stdout.close()


def describe_status(status: int) -> str:
    """Say how a process ended."""
    if status >= 0:
        return texts.ENDED.format(status=status)
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = str(-status)
    return (texts.KILLED if -status == signal.SIGKILL else texts.SIGNAL).format(name=name)
