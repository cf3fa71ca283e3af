"""A SQLite connection that nobody closes fails the test that opened it, at the end of that test.

Python 3.13 warns by itself (https://docs.python.org/3/library/sqlite3.html#sqlite3.Connection.close), but only at a
garbage collection, which may be in another test; older versions do not warn.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

UNCLOSED = "these SQLite connections are still open; close each where it is opened:\n{connections}"
OPENED = "- opened at {place} in {test}"

_HERE = Path(__file__)
_ROOT = str(_HERE.parents[1])
_PACKAGES = str(Path(sys.prefix))


class Watched(sqlite3.Connection):
    """A connection that is registered, with the line and the test that opened it, until it is closed."""

    opened = ""
    cursor_class: type[sqlite3.Cursor] = sqlite3.Cursor

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        test = os.environ.get("PYTEST_CURRENT_TEST", "no test").rpartition(" (")[0] or "no test"
        self.opened = OPENED.format(place=_place(), test=test)
        _open.add(self)

    def cursor(self, factory: Any = None) -> Any:
        return super().cursor(factory or self.cursor_class)

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        cursor: sqlite3.Cursor = self.cursor()
        return cursor.execute(*arguments)

    def close(self) -> None:
        super().close()
        _open.discard(self)


_open: set[Watched] = set()


def _place() -> str:
    """Return the innermost line of this repository that opened the connection."""
    frame = sys._getframe(2)
    while frame.f_back is not None:
        name = frame.f_code.co_filename
        if name.startswith(_ROOT) and not name.startswith(_PACKAGES) and name != str(_HERE):
            return f"{Path(name).relative_to(_ROOT)}:{frame.f_lineno}"
        frame = frame.f_back
    return "an unknown line"


@contextlib.contextmanager
def all_closed() -> Generator[None]:
    """Raise AssertionError if a connection that was opened in the block is open at its end."""
    before = frozenset(_open)
    yield
    left = _open - before
    if left:
        # Only its own test reports it, not a later one.
        _open.difference_update(left)
        for connection in left:
            with contextlib.suppress(sqlite3.Error):  # another thread's
                sqlite3.Connection.close(connection)
        raise AssertionError(UNCLOSED.format(connections="\n".join(sorted(each.opened for each in left))))


def in_transaction() -> list[str]:
    """Return where those open connections were opened that are in a transaction, for whose end another may wait."""
    return [each.opened for each in tuple(_open) if each.in_transaction]


def watch() -> None:
    """Let `sqlite3.connect` make such connections."""
    watched = functools.partial(sqlite3.connect, factory=Watched)
    for module in (sqlite3, sqlite3.dbapi2):
        setattr(module, "connect", watched)  # noqa: B010  # for mypy, a function and a partial have different types
