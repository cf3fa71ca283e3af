"""Bound the work of a rename search, because the names that a lab uses determine how much there is to compare."""

from __future__ import annotations


class TooManyStepsError(Exception):
    """A search would take more steps than its budget."""


class StepBudget:
    """Counts the steps of one search."""

    def __init__(self, most: int) -> None:
        self._left = most

    def take(self, count: int) -> None:
        """Take steps. Raises `TooManyStepsError` when there are none left."""
        self._left -= count
        if self._left < 0:
            raise TooManyStepsError
