"""Make an expensive value once for all processes of `--forks`: in the first that needs it."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from typing import TypeVar

import pytest

T = TypeVar("T")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[], T]) -> T:
    """Return the result of `make`, which only one worker calls; it must be picklable."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return make()
    # https://pytest-xdist.readthedocs.io/en/stable/how-to.html#making-session-scoped-fixtures-execute-only-once
    file = factory.getbasetemp().parent / f"{name}.pickle"
    with file.open("a+b") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        opened.seek(0)
        if written := opened.read():
            value: T = pickle.loads(written)
            return value
        made = make()
        pickle.dump(made, opened)
        return made
