"""Run the lab's command for one suite: under a supervisor, with a time limit, and a log file of limited size."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

MOST_LOG = 32 << 20
"""The most bytes of a log; the rest of the output is read and dropped."""
MOST_TAIL = 4096
"""The most bytes of the output's end that stay in memory."""
CHUNK = 1 << 16
SECRETS = (
    "NIGHTJAR_LAB_TOKEN",
    "NIGHTJAR_TOKEN",
    "AWS_",
    "ACTIONS_ID_TOKEN_",
    "ACTIONS_RUNTIME_TOKEN",
    "BUILDKITE_AGENT_",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "CI_JOB_TOKEN",
    "CI_JOB_JWT",
    "CI_REPOSITORY_URL",
    "CI_REGISTRY_PASSWORD",
    "CI_DEPLOY_PASSWORD",
    "CI_DEPENDENCY_PROXY_PASSWORD",
    # Files with which a step changes the steps after it:
    # https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#environment-files
    "GITHUB_ENV",
    "GITHUB_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "BUILDKITE_ENV_FILE",
)
"""Beginnings of the variables that the command does not get, because it runs a stranger's code."""
KILL_SECONDS = 10.0
DRAIN_SECONDS = 2.0
"""Seconds to wait for the last output: a process that has left the group may hold the pipe open forever."""
PR_SET_DUMPABLE = 4
SUPERVISOR = Path(__file__).with_name("supervisor.py")


def clean_environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the command: the agent's own, without its secrets."""
    safe = {name: value for name, value in os.environ.items() if not name.startswith(SECRETS)}
    return {**safe, **more}


def hide_secrets() -> None:
    """Keep other processes of this user, such as the command, from reading our environment and memory in /proc.

    https://man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


class StreamedCommand:
    """A running command that writes to our own output. Signal handlers may call `interrupt` and `kill`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        hide_secrets()
        self._process = subprocess.Popen(  # noqa: S603  # the lab's own command
            [sys.executable, "-I", str(SUPERVISOR), *command], env=dict(environment), stdin=subprocess.PIPE
        )

    def wait(self) -> int:
        """Wait for the command and return its exit status: 128 plus the number of a signal."""
        status = self._process.wait()
        return 128 - status if status < 0 else status

    def interrupt(self) -> None:
        """Ask the command to end, as Ctrl-C does."""
        if self._process.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        """Kill the command and the processes that it has started."""
        if self._process.stdin is not None:
            self._process.stdin.close()


class RunningCommand:
    """A running command. Any thread may call `stop`, any number of times."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path) -> None:
        hide_secrets()
        self._process = subprocess.Popen(  # noqa: S603  # the lab's own command
            [sys.executable, "-I", str(SUPERVISOR), *command],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.tail = b""
        """The end of the output. It is not read from the log, which the command may replace by any other file."""
        self._copying = threading.Thread(target=self._copy, args=(log,), daemon=True)
        self._copying.start()
        self._lock = threading.Lock()

    def wait(self, seconds: float, stopped: threading.Event) -> int | None:
        """Wait for the exit status; after `seconds`, or when `stopped` is set, kill the command and return None."""
        until = time.monotonic() + seconds
        while self._process.poll() is None:
            if stopped.is_set() or time.monotonic() >= until:
                self.stop()
                return None
            stopped.wait(min(0.2, max(0.0, until - time.monotonic())))
        self._copying.join(DRAIN_SECONDS)
        return self._process.returncode

    def stop(self) -> None:
        """Kill the whole group and wait until it has ended."""
        with self._lock:
            if self._process.stdin is not None and not self._process.stdin.closed:
                self._process.stdin.close()
        try:
            self._process.wait(KILL_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._copying.join(DRAIN_SECONDS)

    def _copy(self, log: Path) -> None:
        """Copy the output to a new file. A full disk ends the file, not the command."""
        pipe, written = self._process.stdout, 0
        assert pipe is not None
        with pipe:
            try:
                # An earlier command may have made a link or a pipe of this name: neither is opened.
                with log.open("xb", buffering=0) as file:
                    while chunk := self._read(pipe):
                        written += file.write(chunk[: max(0, MOST_LOG - written)]) or 0
            except OSError:
                while self._read(pipe):
                    pass

    def _read(self, pipe: IO[bytes]) -> bytes:
        chunk = os.read(pipe.fileno(), CHUNK)
        self.tail = (self.tail + chunk)[-MOST_TAIL:]
        return chunk
