"""Sentences of the dashboard's pages that code chooses; what stands in one place only is in its template."""

from __future__ import annotations

NO_RESULTS_YET = "No results yet"
"""The state of a target that has never sent any."""
