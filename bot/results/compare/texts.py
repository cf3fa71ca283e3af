"""Why a run or a suite has no usable results, and why it could not be compared."""

from __future__ import annotations

UNTESTED = "every test was skipped, {skipped:,} in all"
COMPARISON_COST = "it could not be compared: {why}"
BASE_UNUSABLE = "its results at the base are unusable: {why}"
SEARCH_SKIPPED = "the search for renamed tests is skipped"
SEARCH_TOO_LONG = "that would take more than {most:,} steps"
STILL_CHANGING = "other results of this commit change while the bot stores this run"
