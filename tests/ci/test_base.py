"""What counts as failed: every end that leaves somebody wanting to try again."""

import pytest

from bot.ci.base import State, state_of


@pytest.mark.parametrize(
    ("status", "conclusion", "state"),
    [
        *[
            ("completed", conclusion, State.FAILED)
            for conclusion in ("failure", "cancelled", "timed_out", "startup_failure", "stale")
        ],
        ("completed", "action_required", State.UNAPPROVED),
        *[("completed", conclusion, State.SUCCEEDED) for conclusion in ("success", "neutral", "skipped")],
        *[(status, "", State.RUNNING) for status in ("queued", "in_progress", "waiting", "requested", "pending")],
        ("completed", "", State.RUNNING),
    ],
)
def test_cancelled_and_timed_out_are_failures_too(status: str, conclusion: str, state: State) -> None:
    """The predecessor ran again what had the conclusion FAILURE and nothing else."""
    assert state_of(status, conclusion) is state
