"""Fixtures of the whole suite."""

import asyncio
import gc
import os
import signal
from collections.abc import Callable, Generator

import pytest
import structlog
from aiohttp import web_app
from hypothesis import settings

from tests import fork_server
from tests.patient_loop import PatientLoop
from tests.unclosed import all_closed, watch

pytest_plugins = ["pytester", "tests.exhaustive", "tests.postgres", "tests.bucket", "tests.tables"]
if "NIGHTJAR_STATEMENTS" in os.environ:
    pytest_plugins.append("tests.statements")

# No deadline for an example: on a busy machine, its duration means nothing.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

NEW_OBJECTS = 100_000
"""New objects before a garbage collection, which at 20,000 took 5 % of the CPU time of conversations, and takes 3 %."""

# Shells start background jobs with SIGINT ignored, and every program passes that on: no Ctrl-C that a test sends would
# reach the program that it runs. https://pubs.opengroup.org/onlinepubs/9699919799/utilities/V3_chap02.html#tag_18_11
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

watch()

# By default, structlog draws each traceback with Rich, where that is installed: it took a tenth of the CPU time of
# the tests, which log thousands of failures. This renderer also comes back with `structlog.reset_defaults`.
structlog.dev.ConsoleRenderer.get_active().exception_formatter = structlog.dev.plain_traceback


def pytest_configure(config: pytest.Config) -> None:
    """Collect what is in one folder together: pytest 9.1 loses the fixtures of a folder that it comes back to."""
    config.args.sort(key=lambda argument: argument.partition("::")[0].split("/"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the processes of `--forks` share one fork server."""
    if session.config.getoption("forks", 0) and not session.config.option.collectonly:
        fork_server.start()


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Let all tests run on a loop whose clock is not that of the machine."""
    return {"patient": PatientLoop}


@pytest.fixture(scope="session", autouse=True)
def _all_closed_in_the_end() -> Generator[None]:
    """Fail if a fixture that several tests share leaves a SQLite connection open."""
    with all_closed():
        yield


@pytest.fixture(autouse=True)
def _all_closed() -> Generator[None]:
    """Fail the test that leaves a SQLite connection open."""
    with all_closed():
        yield


@pytest.fixture(autouse=True)
def _forgotten() -> Generator[None]:
    """Release the servers of a test, and how it logs.

    aiohttp caches a thousand servers, and garbage collection traverses all. The stream that a test logs to is closed.
    """
    yield
    web_app._cached_build_middleware.cache_clear()
    structlog.reset_defaults()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection while pytest collects tests, which saves a fifth, and run it less often afterwards.

    Later garbage collections ignore all objects that exist by then: thousands of tests, and all modules.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS)
        gc.enable()
