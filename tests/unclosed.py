"""A SQLite connection that nobody closes is a warning, and so a failed test, on every Python.

Python 3.13 warns by itself (https://docs.python.org/3/library/sqlite3.html#sqlite3.Connection.close), at whatever
moment the garbage is collected; older ones say nothing.
"""

from __future__ import annotations

import functools
import sqlite3
import sys
import warnings
from typing import Any

UNCLOSED = "unclosed database in {connection!r}"


class Watched(sqlite3.Connection):
    """A connection that warns as those of Python 3.13 do."""

    open = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.open = True

    def close(self) -> None:
        super().close()
        self.open = False

    def __del__(self) -> None:
        if self.open:
            warnings.warn(UNCLOSED.format(connection=self), ResourceWarning, source=self, stacklevel=2)


def watch() -> None:
    """Have `sqlite3.connect` make such connections."""
    if sys.version_info >= (3, 13):
        return
    watched = functools.partial(sqlite3.connect, factory=Watched)
    for module in (sqlite3, sqlite3.dbapi2):
        setattr(module, "connect", watched)  # noqa: B010  # to mypy a function's type is not a partial's
