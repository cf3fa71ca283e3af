"""The error of a queueing lock that another job holds, which both our code and Procrastinate's catch."""

from __future__ import annotations

from procrastinate.exceptions import UniqueViolation
from procrastinate.manager import QUEUEING_LOCK_CONSTRAINT

from bot.engine.sql.errors import DuplicateKey


class DuplicateJob(DuplicateKey, UniqueViolation):
    """A job with the same queueing lock exists; `queueing_lock` is None if the driver does not name it."""

    def __init__(self, queueing_lock: str | None) -> None:
        super().__init__(constraint_name=QUEUEING_LOCK_CONSTRAINT, queueing_lock=queueing_lock)
