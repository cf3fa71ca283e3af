"""What counts as failed: every conclusion that people want to retry."""

import pytest

from bot.ci.base import CiState, state_of


@pytest.mark.parametrize(
    ("status", "conclusion", "state"),
    [
        *[
            ("completed", conclusion, CiState.FAILED)
            for conclusion in ("failure", "cancelled", "timed_out", "startup_failure", "stale")
        ],
        ("completed", "action_required", CiState.UNAPPROVED),
        *[("completed", conclusion, CiState.SUCCEEDED) for conclusion in ("success", "neutral", "skipped")],
        *[(status, "", CiState.RUNNING) for status in ("queued", "in_progress", "waiting", "requested", "pending")],
        ("completed", "", CiState.RUNNING),
    ],
)
def test_cancelled_and_timed_out_count_as_failures(status: str, conclusion: str, state: CiState) -> None:
    """TVM's bot only reran what had the conclusion FAILURE."""
    assert state_of(status, conclusion) is state
