"""Fixtures of the whole suite."""

import gc
import os
from collections.abc import Generator

import pytest
from aiohttp import web_app
from hypothesis import settings

from tests.unclosed import all_closed, watch

pytest_plugins = ["pytester", "tests.postgres", "tests.bucket", "tests.tables"]
if "NIGHTJAR_STATEMENTS" in os.environ:
    pytest_plugins.append("tests.statements")

# How long one example takes says nothing about it on a machine that does other things too.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

NEW_OBJECTS = 20_000
"""So many, until garbage is collected. Python's own 700 cost conversations one second in thirty."""

watch()


@pytest.fixture(scope="session", autouse=True)
def _all_closed_in_the_end() -> Generator[None]:
    """Fail if a fixture that several tests share leaves a SQLite connection open."""
    with all_closed():
        yield


@pytest.fixture(autouse=True)
def _all_closed() -> Generator[None]:
    """Fail the very test that leaves a SQLite connection open."""
    with all_closed():
        yield


@pytest.fixture(autouse=True)
def _forgotten() -> Generator[None]:
    """Let go of the servers of a test: aiohttp remembers a thousand, and garbage collection goes through all."""
    yield
    web_app._cached_build_middleware.cache_clear()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, which took a fifth longer, and less often than is usual afterwards.

    What is there by then stays out of all later garbage collections: thousands of tests, and all modules.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(NEW_OBJECTS)
        gc.enable()
