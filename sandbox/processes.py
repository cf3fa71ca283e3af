"""Programs that end with their parent process, so that a killed test or demo leaves nothing running."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

INHERITED = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "COVERAGE_PROCESS_START",
    "LD_PRELOAD",
)
LONGEST_LINE = 1 << 22
PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Program(Protocol):
    """A running program: the part of `asyncio.subprocess.Process` that we use."""

    pid: int
    stdout: asyncio.StreamReader | None
    stderr: asyncio.StreamReader | None

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""

    def send_signal(self, signal: int) -> None:
        """Send it a signal."""

    def terminate(self) -> None:
        """Send it SIGTERM."""

    def kill(self) -> None:
        """Send it SIGKILL."""

    async def wait(self) -> int:
        """Wait until it ends; return the exit status."""

    async def communicate(self) -> tuple[bytes, bytes]:
        """Read its output until it ends; return standard output and standard error."""


class Launch(Protocol):
    """Starts a program, `python -m MODULE ARGUMENTS`; `merged` sends standard error to standard output."""

    async def __call__(
        self, module: str, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, merged: bool = False
    ) -> Program:
        """Start the program, with pipes for its output."""


def inherited() -> dict[str, str]:
    """Return the part of our environment that any program needs."""
    return {name: os.environ[name] for name in INHERITED if name in os.environ}


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends: prctl(2), only on Linux. For `preexec_fn`."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


async def launch(
    module: str, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, merged: bool = False
) -> Program:
    """Start a module as a program."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        *arguments,
        env=env,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT if merged else asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
        preexec_fn=end_with_parent,
    )
