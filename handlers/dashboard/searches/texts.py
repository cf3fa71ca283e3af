"""Texts of the list of searches for a culprit."""

from __future__ import annotations

RUNNING, NAMED, OTHER = (
    ("search runs", "searches run"),
    ("change is named", "changes are named"),
    "{count} without a name",
)
NO_SEARCHES = "No search yet"
OUTCOMES = {
    "": "searching",
    "culprit": "began with",
    "environment": "no commit: the device, the lab or its environment changed",
    "not repeated": "cannot tell: the failure does not repeat",
    "range": "cannot tell which commit",
    "budget": "cannot tell: out of runs",
}
