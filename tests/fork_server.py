"""Fork the bot's processes from one that has already imported it, because the imports cost more than most tests.

`launch` replaces `sandbox.processes.launch`. It starts a normal process, with a pid, an environment, a folder, output
and an exit status of its own, which ends with the tests. Such a process does not show that `python -m bot` imports
everything that it needs, so at least one test of each command starts that.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from bot.config.private_key import pem_of, rsa_key
from sandbox import processes
from sandbox.processes import end_with_parent

ROOT = Path(__file__).parent.parent
PRELOADED = (
    "bot.app.serve",
    "bot.cli.main",
    "bot.cli.backup",
    "bot.cli.ci",
    "bot.cli.deliveries",
    "bot.cli.doctor",
    "bot.cli.results",
    "bot.cli.timers",
    "bot.cli.token",
    "boto3",
    "nightjar_lab.cli.agent",
    "nightjar_lab.cli.doctor",
    "nightjar_lab.cli.run",
)
NUMBER = struct.Struct("!i")
UNDERSTOOD = {"PYTHONPATH", "PYTHONWARNINGS", "PYTHONDEVMODE"}
"""Variables that can be set after a start, or that select a fork server of their own."""


class Request(NamedTuple):
    """What to run, as with `python -m`."""

    module: str
    arguments: Sequence[str]
    env: Mapping[str, str]
    cwd: str


class Forked:
    """A process that was forked; the part of `asyncio.subprocess.Process` that tests use."""

    def __init__(self, job: socket.socket, pid: int, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader | None):
        self._job = job
        self._ended = asyncio.Event()
        self.pid = pid
        self.stdout: asyncio.StreamReader | None = stdout
        self.stderr = stderr
        self.returncode: int | None = None
        asyncio.get_running_loop().add_reader(job, self._read_status)

    def _read_status(self) -> None:
        status = self._job.recv(NUMBER.size)
        self.returncode = NUMBER.unpack(status)[0] if status else -signal.SIGKILL
        asyncio.get_running_loop().remove_reader(self._job)
        self._job.close()
        self._ended.set()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for the end; return the exit status, negative for a signal."""
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    async def communicate(self) -> tuple[bytes, bytes]:
        """Read all output and wait for the end."""
        out, err = await asyncio.gather(*(_all(stream) for stream in (self.stdout, self.stderr)))
        await self.wait()
        return out, err


async def _all(stream: asyncio.StreamReader | None) -> bytes:
    return await stream.read() if stream else b""


async def launch(
    module: str, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, merged: bool = False
) -> processes.Program:
    """Fork a process that runs a module; start a new one if the environment has variables that Python itself reads.

    A caller who is cancelled meanwhile leaves no process.
    """
    special = {name for name in env if name.startswith("PYTHON") and env[name] != os.environ.get(name)}
    if sys.platform != "linux" or not special <= UNDERSTOOD:
        return await processes.launch(module, *arguments, env=env, cwd=cwd, merged=merged)
    launching = asyncio.create_task(_fork(Request(module, arguments, dict(env), str(cwd or Path.cwd())), merged))
    try:
        return await asyncio.shield(launching)
    except asyncio.CancelledError:
        process = await launching
        process.kill()
        await process.communicate()
        raise


async def _fork(request: Request, merged: bool) -> Forked:
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    stdout, out = await _pipe()
    stderr, err = (None, os.dup(out)) if merged else await _pipe()
    try:
        socket.send_fds(_control(request.env.get("PYTHONDEVMODE", "")), [b"j"], [theirs.fileno(), out, err])
    finally:
        theirs.close()
        os.close(out)
        os.close(err)
    question = json.dumps(request).encode()
    await loop.sock_sendall(ours, NUMBER.pack(len(question)) + question)
    pid = NUMBER.unpack(await loop.sock_recv(ours, NUMBER.size))[0]
    return Forked(ours, pid, stdout, stderr)


async def _pipe() -> tuple[asyncio.StreamReader, int]:
    read, write = os.pipe()
    reader = asyncio.StreamReader(limit=processes.LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read, "rb", buffering=0)
    )
    return reader, write


def start() -> None:
    """Start the fork server, for this process and those that it forks; else the first `launch` does."""
    _control("")


@functools.cache
def _control(dev_mode: str) -> socket.socket:
    """Start the fork server; it ends with this process."""
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.fork_server", str(theirs.fileno())],
            cwd=ROOT,
            env={**os.environ, "PYTHONWARNINGS": "error", "PYTHONDEVMODE": dev_mode},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            preexec_fn=end_with_parent,
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def main() -> None:
    """Fork for each request; a child runs its module and ends with the status of any program."""
    control = socket.socket(fileno=int(sys.argv[1]))
    for module in PRELOADED:
        importlib.import_module(module)
    gc.collect()
    gc.freeze()  # so that a fork copies fewer pages
    request = _serve(control)
    if request is not None:
        sys.argv = [request.module, *request.arguments]
        _end_with_status(_status_of_module(request.module))


def _status_of_module(module: str) -> int:
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        sys.stderr.write(f"{error.code}\n")
        return 1
    except KeyboardInterrupt:
        raise  # Python ends such a process by a signal
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _end_with_status(status: int) -> NoReturn:
    """End this process after what programs do at their end, except that no module is freed.

    That would copy all pages that are shared with the fork server: 0.1 s, ten times the rest of a short command.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    gc.collect()  # shows what was left open
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status & 0xFF)


def _serve(control: socket.socket) -> Request | None:
    """Fork until the tests end; return the request in each child, and None at the end."""
    running: dict[int, tuple[int, socket.socket]] = {}
    with control, selectors.DefaultSelector() as ready:
        ready.register(control, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fd in running:
                    ready.unregister(key.fd)
                    os.close(key.fd)
                    pid, job = running.pop(key.fd)
                    _, status = os.waitpid(pid, 0)
                    _report(job, os.waitstatus_to_exitcode(status))
                    job.close()
                    continue
                _, descriptors, _, _ = socket.recv_fds(control, 1, 3)
                if not descriptors:
                    return None
                job, parent = socket.socket(fileno=descriptors[0]), os.getpid()
                request = _request(job)
                if pem := request.env.get("GITHUB_PRIVATE_KEY"):
                    # To check that its primes are prime takes half of a start. All that follow have this result.
                    rsa_key(pem_of(pem))
                pid = os.fork()
                if pid == 0:
                    job.close()
                    for other, (_, theirs) in running.items():
                        os.close(other)
                        theirs.close()
                    return _become(request, descriptors[1:], parent)
                for descriptor in descriptors[1:]:
                    os.close(descriptor)
                watched = os.pidfd_open(pid)
                running[watched] = pid, job
                ready.register(watched, selectors.EVENT_READ)
                _report(job, pid)


def _report(job: socket.socket, number: int) -> None:
    try:
        job.sendall(NUMBER.pack(number))
    except ConnectionError:  # the test that started it no longer waits
        return


def _request(job: socket.socket) -> Request:
    with job.makefile("rb") as stream:
        (length,) = NUMBER.unpack(stream.read(NUMBER.size))
        return Request(*json.loads(stream.read(length)))


def _become(request: Request, outputs: Sequence[int], parent: int) -> Request:
    """Apply the outputs, environment and folder of a request, and return it."""
    end_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    for number, descriptor in enumerate(outputs, start=1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    os.chdir(request.cwd)
    warnings.resetwarnings()
    # Python does this when it starts.
    for category in (ResourceWarning, ImportWarning, PendingDeprecationWarning, DeprecationWarning):
        warnings.simplefilter("default" if sys.flags.dev_mode else "ignore", category)
    if action := request.env.get("PYTHONWARNINGS"):
        warnings.simplefilter(action)  # type: ignore[arg-type]  # no test has another form of it
    return request


if __name__ == "__main__":
    main()
