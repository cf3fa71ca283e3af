"""The statements that the store of results executes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa


@contextmanager
def statements() -> Iterator[list[str]]:
    """Yield the statements that are executed meanwhile."""
    seen = list[str]()

    def note(_: object, __: object, statement: str, *___: object) -> None:
        seen.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
