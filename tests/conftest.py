"""Fixtures of the whole suite."""

import gc
from collections.abc import Generator

import pytest
from aiohttp import web_app
from hypothesis import settings

from tests.unclosed import all_closed, watch

pytest_plugins = ["pytester", "tests.postgres", "tests.bucket", "tests.tables"]

# How long one example takes says nothing about it on a machine that does other things too.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

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


def pytest_collection_finish() -> None:
    """Keep what was collected out of every garbage collection to come: thousands of tests, and all modules."""
    gc.collect()
    gc.freeze()
