"""The messages between the server and a process that works for it, over a socket."""

from __future__ import annotations

import io
import pickle
import struct
from enum import Enum
from typing import Any

HEADER = struct.Struct("<ddqiq")
"""The head of a question: limits (CPU seconds, wall-clock seconds, bytes of memory), number of files, bytes to come."""
ANSWER = struct.Struct("<cq")
"""The head of an answer: its kind, and the bytes to come."""
STATUS = struct.Struct("<i")
"""How a process ended, as `os.waitstatus_to_exitcode` says it."""

RESULT, RAISED, FAULT, OUT_OF_MEMORY, TOO_LONG = b"R", b"E", b"F", b"M", b"L"

MAX_ANSWER_BYTES = 256 << 20
"""Bytes of a result that are read back."""

FILES_AT_ONCE = 64
"""File descriptors in one message; Linux takes at most 253 (unix(7), SCM_RIGHTS)."""

OURS = ("bot.", "handlers.", "nightjar_formats.")
"""An answer may contain classes of modules that begin with one of these."""
BUILTINS = frozenset({"frozenset", "set", "bytearray", "complex", "range", "slice"})
NOT_ALLOWED = "a worker's answer must not refer to {module}.{name}"


class _Reader(pickle.Unpickler):
    """Reads data and the classes of our own modules: a process that was subverted cannot have the server call others.

    https://docs.python.org/3/library/pickle.html#restricting-globals
    """

    def find_class(self, module: str, name: str) -> Any:
        if module == "builtins" and name in BUILTINS:
            return super().find_class(module, name)
        # A dotted name would reach attributes of a class. A module also has what it imports as attributes; `__module__`
        # tells them apart.
        if module.startswith(OURS) and "." not in name:
            loaded = super().find_class(module, name)
            if isinstance(loaded, type) and loaded.__module__ == module:
                return loaded
        raise pickle.UnpicklingError(NOT_ALLOWED.format(module=module, name=name))


class _Writer(pickle.Pickler):
    """Writes a member of an enumeration as a call of its class: Python 3.11.2 writes a call of `getattr`."""

    def reducer_override(self, value: object) -> Any:
        return (type(value), (value.value,)) if isinstance(value, Enum) else NotImplemented


def answer_of(value: object) -> bytes:
    """Return an answer with a value. Raises the errors of `pickle.dumps`."""
    answer = io.BytesIO()
    _Writer(answer, pickle.HIGHEST_PROTOCOL).dump(value)
    return answer.getvalue()


def read_answer(body: bytes | bytearray) -> Any:
    """Return the content of an answer. Raises `pickle.UnpicklingError` for anything but data and the bot's classes."""
    return _Reader(io.BytesIO(body)).load()
