"""Timers of many repositories run at their minute: by a simulated clock, and within GitHub's real limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.timer_rounds import simulated_round

REPOSITORIES = 30
SOON = 120.0
"""Seconds."""


@pytest.mark.no_cover
def test_all_repositories_run_within_a_round_and_nightly_at_its_minute(tmp_path: Path) -> None:
    """A run takes two reads, so 1,000 repositories of one installation take 134 a minute, of 450."""
    figures = simulated_round(tmp_path, REPOSITORIES, owners=1, nightly=REPOSITORIES)
    for late in figures.late.values():
        assert len(late) == REPOSITORIES
        assert 0 <= min(late) <= max(late) < SOON
    # The heads of two branches. Only the first read of the nightly branch is new to the bot.
    assert (figures.requests, figures.quota) == (4 * REPOSITORIES, REPOSITORIES)
