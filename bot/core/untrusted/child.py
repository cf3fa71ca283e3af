"""The process that waits for work, and the process that it forks for each job.

The waiting process imports the modules of jobs once, and forks for each job: a job begins within milliseconds, in a
process that no earlier job has used. The environment has none of the server's secrets. Both processes end with the
server, also if it is killed: the waiting one reads the end of its socket; the kernel kills the working one with its
parent, and in any case its own alarm does.
"""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import pickle
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO, NoReturn
from xml.parsers import expat

from nightjar_formats.patterns import TextPattern

from bot.core.memory import freeze_startup_objects
from bot.core.untrusted import wire

PR_SET_PDEATHSIG = 1
LOST_PARENT = 3


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends (Linux: prctl(2)); elsewhere only the alarm ends it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Fork a process for each job of the server, and send back the exit status of the process."""
    control = socket.socket(fileno=int(sys.argv[1]))
    end_with_parent()
    for module in sys.argv[2:]:
        importlib.import_module(module)
    _compile_patterns()
    freeze_startup_objects()  # a fork then copies fewer pages, too
    # If the server is killed before it has read a status, the connection is reset:
    # https://man7.org/linux/man-pages/man7/unix.7.html
    with suppress(ConnectionError):
        while True:
            _, descriptors, _, _ = socket.recv_fds(control, 1, 1)
            if not descriptors:
                return  # the server has ended
            parent, child = os.getpid(), os.fork()
            if child == 0:
                control.close()
                _work(socket.socket(fileno=descriptors[0]), parent)
            os.close(descriptors[0])
            _, status = os.waitpid(child, 0)
            control.sendall(wire.STATUS.pack(os.waitstatus_to_exitcode(status)))


def _compile_patterns() -> None:
    """Compile the patterns of all imported modules, so that not each forked process has to."""
    for module in list(sys.modules.values()):
        for value in list(getattr(module, "__dict__", {}).values()):
            if isinstance(value, TextPattern):
                value.match("")


def _work(job: socket.socket, parent: int) -> NoReturn:
    """Do one job within its limits, and end the process."""
    end_with_parent()
    # The parent may have ended before we asked the kernel to end us with it:
    # https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html
    if os.getppid() != parent:
        os._exit(LOST_PARENT)
    with suppress(ConnectionError):  # the server has ended, or no longer waits
        try:
            _answer(job)
        except MemoryError:
            job.sendall(wire.ANSWER.pack(wire.OUT_OF_MEMORY, 0))
    # Skip clean-up: buffers and exit handlers are copies of those of the process that waits.
    os._exit(0)


def _answer(job: socket.socket) -> None:
    cpu, wall, memory, count, length = wire.HEADER.unpack(_receive(job, wire.HEADER.size))
    _limit(cpu, wall, memory)
    files = _files(job, count)
    function, arguments = pickle.loads(_receive(job, length))  # noqa: S301  # the server wrote it
    kind, body = _outcome(function, (files, *arguments) if files else arguments)
    if len(body) > wire.MAX_ANSWER_BYTES:
        kind, body = wire.TOO_LONG, b""
    job.sendall(wire.ANSWER.pack(kind, len(body)))
    job.sendall(body)


def _outcome(function: object, arguments: Sequence[object]) -> tuple[bytes, bytes]:
    """Call a function; return how it ended, as a tag of `wire`, and what the server gets of that, pickled."""
    try:
        result = function(*arguments)  # type: ignore[operator]  # the server sends functions
        return wire.RESULT, wire.answer_of(result)
    except Exception as error:  # the server decides how to handle it
        if _is_out_of_memory(error):
            return wire.OUT_OF_MEMORY, b""
        error_class = type(error)
        # The server makes the error again from its text alone, so its constructor must take nothing else.
        if error_class.__module__.startswith(wire.OURS) and error_class.__init__ is Exception.__init__:
            return wire.RAISED, pickle.dumps((error_class, str(error)))
        return wire.FAULT, pickle.dumps("".join(traceback.format_exception(error)))


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, also if a parser reports that as a fault of its input."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            return True
        if isinstance(cause, expat.ExpatError) and expat.ErrorString(cause.code) == expat.errors.XML_ERROR_NO_MEMORY:
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _limit(cpu: float, wall: float, memory: int) -> None:
    """Set limits whose signals end the process even within C code, because Python handles none of them."""
    signal.setitimer(signal.ITIMER_REAL, wall)
    # Whole seconds. The soft limit sends SIGXCPU, which tells why the process ended; the hard limit kills a process
    # that ignores it:
    # https://man7.org/linux/man-pages/man2/getrlimit.2.html
    seconds = math.ceil(cpu)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump would hold uploaded data
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if sys.platform == "linux":  # macOS takes no limit below the gigabytes that it maps into every process
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _files(job: socket.socket, count: int) -> list[BinaryIO]:
    descriptors: list[int] = []
    while len(descriptors) < count:
        _, received, _, _ = socket.recv_fds(job, 1, wire.FILES_AT_ONCE)
        if not received:
            raise ConnectionError
        descriptors += received
    files: list[BinaryIO] = [open(descriptor, "rb") for descriptor in descriptors]  # noqa: PTH123, SIM115
    for file in files:
        # Rewind: the position is shared with the server's own descriptor, which has read or written before.
        file.seek(0)
    return files


def _receive(job: socket.socket, length: int) -> bytearray:
    received = bytearray(length)
    view = memoryview(received)
    while view:
        count = job.recv_into(view)
        if not count:
            raise ConnectionError
        view = view[count:]
    return received


if __name__ == "__main__":
    main()
