"""One place for work: a process that waits and forks for each job. A lost process is replaced."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

from bot.core.untrusted import wire
from bot.core.untrusted.limits import ANSWER, CPU, KILLED, MEMORY, MIB, VANISHED, WALL_CLOCK, Limits, OverLimit

CHUNK = 1 << 20
PR_SET_DUMPABLE = 4

ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT")
"""The environment variables that a process for untrusted input gets; the server's others may be secrets."""


class Lost(Exception):
    """A process ended without an answer, and not because of a limit; the text says how."""


class ChildFault(Exception):
    """The bot's own code failed in the process; the text is its traceback."""


class Slot:
    """Runs one job at a time; the process imports the modules of `preload` before its first job."""

    def __init__(self, preload: Sequence[str] = ()) -> None:
        self._preload = preload
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The process that waits for work, None before the first job and after a loss."""
        return self._process.pid if self._process is not None else None

    async def ask(self, limits: Limits, question: bytes, files: Sequence[BinaryIO]) -> bytearray:
        """Have a process answer a question; `files` are given to it by their descriptors.

        Raises `OverLimit`, `Lost`, or the exception of the function if its class is ours; otherwise `ChildFault`.
        """
        try:
            kind, body, status = await self._ask(limits, question, files)
        except OSError as error:  # the process that waits has ended
            self.close()
            raise Lost(VANISHED.format(act=limits.act)) from error
        except BaseException:
            self.close()  # the caller was cancelled, so the job must end
            raise
        return _result_or_raise(limits, kind, body, status)

    def close(self) -> None:
        """End the process, and the job with it."""
        process, control, self._process, self._control = self._process, self._control, None, None
        if control is not None:
            control.close()
        if process is not None:
            process.kill()
            process.wait()  # it was killed, so this takes no time

    async def _ask(self, limits: Limits, question: bytes, files: Sequence[BinaryIO]) -> tuple[bytes, bytearray, int]:
        loop, control = asyncio.get_running_loop(), self._control_of_started_process()
        server_end, child_end = socket.socketpair()
        with server_end:
            server_end.setblocking(False)
            with child_end:
                # With descriptors goes at least one byte: https://man7.org/linux/man-pages/man7/unix.7.html
                socket.send_fds(control, [b"j"], [child_end.fileno()])
            with suppress(ConnectionError):  # a limit ended it; its status says which
                header = (limits.cpu, limits.wall, limits.memory, len(files), len(question))
                await loop.sock_sendall(server_end, wire.HEADER.pack(*header))
                for start in range(0, len(files), wire.FILES_AT_ONCE):
                    descriptors = [file.fileno() for file in files[start : start + wire.FILES_AT_ONCE]]
                    # It cannot raise BlockingIOError: a run has at most four such messages, and Linux holds 277.
                    socket.send_fds(server_end, [b"f"], descriptors)
                await loop.sock_sendall(server_end, question)
            kind, body = await _read_answer(server_end)
        status = await _receive(control, wire.STATUS.size)
        if len(status) < wire.STATUS.size:
            raise ConnectionResetError
        return kind, body, wire.STATUS.unpack(status)[0]

    def _control_of_started_process(self) -> socket.socket:
        if self._control is not None:
            return self._control
        _hide_secrets()
        server_end, child_end = socket.socketpair()
        server_end.setblocking(False)
        environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
        with child_end:
            self._process = subprocess.Popen(  # noqa: S603  # this interpreter, with nothing from outside
                [sys.executable, "-m", "bot.core.untrusted.child", str(child_end.fileno()), *self._preload],
                env={**environment, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},  # noqa: PTH109
                pass_fds=[child_end.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the server, which stops its parts in order
            )
        self._control = server_end
        return server_end


def _hide_secrets() -> None:
    """Keep processes of the same user from reading the environment and memory of this one (Linux).

    A process that a report has subverted would find the secrets in /proc:
    https://man7.org/linux/man-pages/man2/PR_SET_DUMPABLE.2const.html
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


async def _read_answer(job: socket.socket) -> tuple[bytes, bytearray]:
    """Return the kind and the body of an answer; both are empty if the process ended before it was complete."""
    header = await _receive(job, wire.ANSWER.size)
    if len(header) < wire.ANSWER.size:
        return b"", bytearray()
    kind, length = wire.ANSWER.unpack(header)
    # A process that read hostile input may send anything: check the length before allocating memory.
    if not 0 <= length <= wire.MAX_ANSWER_BYTES:
        return wire.TOO_LONG, bytearray()
    body = await _receive(job, length)
    return (kind, body) if len(body) == length else (b"", bytearray())


async def _receive(job: socket.socket, length: int) -> bytearray:
    """Return so many bytes, or fewer at the end."""
    received, loop = bytearray(), asyncio.get_running_loop()
    # A reset connection is an end too: callers see that bytes are missing.
    with suppress(ConnectionError):
        while len(received) < length:
            piece = await loop.sock_recv(job, min(CHUNK, length - len(received)))
            if not piece:
                break
            received += piece
    return received


def _result_or_raise(limits: Limits, kind: bytes, body: bytearray, status: int) -> bytearray:
    match kind:
        case wire.RESULT:
            return body
        case wire.RAISED:
            error, text = wire.read_answer(body)
            raise error(text)
        case wire.FAULT:
            raise ChildFault(wire.read_answer(body))
        case wire.OUT_OF_MEMORY:
            raise OverLimit(MEMORY.format(act=limits.act, mib=limits.memory // MIB))
        case wire.TOO_LONG:
            raise OverLimit(ANSWER.format(act=limits.act, mib=wire.MAX_ANSWER_BYTES // MIB))
    if status == -signal.SIGXCPU:
        raise OverLimit(CPU.format(act=limits.act, seconds=limits.cpu))
    if status == -signal.SIGALRM:
        raise OverLimit(WALL_CLOCK.format(act=limits.act, seconds=limits.wall))
    if status < 0:
        raise Lost(KILLED.format(act=limits.act, number=-status))
    raise Lost(VANISHED.format(act=limits.act))
