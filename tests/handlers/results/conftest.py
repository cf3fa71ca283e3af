"""Fixtures of the tests of hardware results."""

from tests.results.conftest import store

__all__ = ["store"]
