"""Errors of the engine's database, whichever library and driver works on it."""

from __future__ import annotations


class DatabaseFailure(Exception):
    """The database did not answer, or it refused a statement; the cause is the driver's error, if it raised one.

    Log the type of the cause and not its text, which may quote stored data.
    """


class DuplicateKey(DatabaseFailure):
    """A row with the same unique key exists."""
