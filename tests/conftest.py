"""Fixtures of the whole suite."""

from hypothesis import settings

from tests.unclosed import watch

pytest_plugins = ["tests.postgres", "tests.bucket"]

# How long one example takes says nothing about it on a machine that does other things too.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")

watch()
