"""Run some of the tests that a session of pytest has collected in a fork of its process."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Generator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import pytest

ARGUMENTS = (
    *("-p", "no:xdist", "-p", "no:cov", "-p", "no:cacheprovider"),
    *("-s", "-qqq", "-W", "default", "-m", "not alone", "--timeout", "180"),
)
"""Those of the session. Nothing captures output: forks have none."""
MEMORY, CPU_SECONDS = 8 << 30, 30
"""Limits of a fork, and of each test in it: a change can make a loop endless."""
OURS = ("bot.", "handlers.", "nightjar_formats.", "nightjar_lab.")


class Observer(Protocol):
    """A plugin of pytest that prepares a fork and knows at its end what its tests have shown."""

    def begin(self) -> None:
        """Prepare the process."""

    def result(self) -> object:
        """Return what the tests have shown; JSON must be able to hold it."""


class CpuLimit:
    """A plugin of pytest that ends the process if a test takes too much CPU time."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Count the CPU time from here."""
        limit = int(time.process_time()) + 1 + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        return (yield)


def start_tests(session: pytest.Session, tests: Sequence[pytest.Item], folder: Path, observer: Observer) -> int:
    """Run tests in a fork of this process, which writes the observer's result to a folder; return its process ID.

    An observer that sets `session.shouldstop` ends the tests.
    """
    sys.stdout.flush()
    if child := os.fork():
        return child
    status = 1
    try:
        _silence()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        temporary = folder / "tests"
        temporary.mkdir(mode=0o755)
        session.config._tmp_path_factory._basetemp = temporary  # type: ignore[attr-defined]
        for plugin in (observer, CpuLimit()):
            session.config.pluginmanager.register(plugin)
        observer.begin()
        for test, following in pairwise([*tests, None]):
            assert test is not None
            if session.shouldstop:
                break
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
        session._setupstate.teardown_exact(None)
        (folder / "result").write_text(json.dumps(observer.result()))
        status = 0
    except BaseException:
        (folder / "error").write_text(traceback.format_exc())
    finally:
        os._exit(status)


def ended_tests(child: int, folder: Path) -> Any:
    """Wait for a fork; return its observer's result, or nothing if a signal ended it.

    Raise `RuntimeError` if the fork failed.
    """
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if (file := folder / "result").exists():
        return json.loads(file.read_text())
    if status < 0:
        return None
    raise RuntimeError((folder / "error").read_text())


def caches() -> list[Callable[[], None]]:
    """Return what empties the cache of each imported function of ours that has one."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(OURS)]
    values = {id(value): value for module in modules for value in vars(module).values()}
    return [value.cache_clear for value in values.values() if hasattr(value, "cache_clear")]


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
