"""What counts as failed: every end that leaves somebody wanting to try again."""

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
def test_cancelled_and_timed_out_are_failures_too(status: str, conclusion: str, state: CiState) -> None:
    """The predecessor ran again what had the conclusion FAILURE and nothing else."""
    assert state_of(status, conclusion) is state
