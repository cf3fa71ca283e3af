"""Misbehavior that input may cause in the code that reads it; each function runs in its own process."""

from __future__ import annotations

import ctypes
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from nightjar_formats.refused import Refused


def add(left_number: int, right_number: int) -> int:
    return left_number + right_number


def lengths(files: Sequence[BinaryIO], *_: object) -> list[int]:
    return [len(file.read()) for file in files]


def backtrack() -> None:
    """Never release the interpreter's lock: it is held in C code, where no Python handler runs."""
    re.match(r"(a+)+$", "a" * 64 + "b")


def sleep() -> None:
    signal.pause()


def grow() -> int:
    return len(bytearray(8 << 30))


def swallow_memory_error() -> None:
    """Act like a parser that treats every error as a fault of its input."""
    try:
        bytearray(8 << 30)
    except MemoryError as error:
        raise Refused("the file is broken") from error


def answer_too_much() -> bytes:
    return bytes(300 << 20)


def refuse() -> None:
    raise Refused("a.xml is no report")


def fail() -> None:
    raise ValueError("a fault of ours")


def crash() -> None:
    ctypes.string_at(0)


def crash_once(path: str) -> str:
    """Crash the first time, while the file exists, and remove it."""
    if Path(path).exists():
        Path(path).unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"


def environment() -> dict[str, str]:
    return dict(os.environ)


def who() -> tuple[int, int]:
    return os.getpid(), os.getppid()


def name_a_function() -> object:
    return os.system


def environment_of(pid: int) -> str:
    """Return the environment of another process, or the reason why it cannot be read."""
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError as error:
        return str(error.strerror)
