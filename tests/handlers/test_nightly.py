"""What is decided about the nightly branch, as a table."""

import pytest

from bot.config.nightly import Nightly
from bot.effects.nightly import ConcludeNightly
from bot.effects.refs import MoveBranch
from bot.github.refs import Commit
from bot.required import Signal, State
from handlers.nightly import Look, Looked, decide

AT = 1_772_859_600.0
"""21:00 on 6 March 2026 in Los Angeles, on the next day in UTC."""
A, B, C = (Commit(letter * 40, letter) for letter in "abc")
RED = tuple(Signal(name, State.RED) for name in ("cpu", "docs", "gpu", "lint"))


@pytest.mark.parametrize(
    ("look", "moved_to", "fine", "why"),
    [
        (Look(None, "ahead", (Looked(A, ()),), None), A, True, "nightly is made at aaaaaaa"),
        (Look("c" * 40, "ahead", (Looked(A, ()),), 1), A, True, "nightly moves to aaaaaaa, one commit on"),
        (
            Look("c" * 40, "ahead", (Looked(A, RED[:1]), Looked(B, ())), 4),
            B,
            True,
            "nightly moves to bbbbbbb, 4 commits on; what is newer is not fit: aaaaaaa: cpu is red",
        ),
        (
            Look("c" * 40, "ahead", (Looked(A, RED), Looked(B, RED[:1])), None),
            None,
            False,
            "none of the 2 newest commits of main that were looked at is fit: "
            "aaaaaaa: cpu is red, docs is red, gpu is red, and 1 more",
        ),
        (Look("c" * 40, "identical", (), None), None, True, "nothing new: nightly is at the head of main"),
        (Look("c" * 40, "behind", (), None), None, True, "nothing new: nightly is ahead of main"),
        # Refused where it is applied, and told in the same way as a protected branch.
        (Look("c" * 40, "diverged", (Looked(A, ()),), None), A, True, "nightly moves to aaaaaaa, some commits on"),
    ],
)
def test_the_newest_commit_that_is_fit_is_taken(look: Look, moved_to: Commit | None, fine: bool, why: str) -> None:
    plan = decide(look, Nightly(), AT)
    assert plan.effects == ((MoveBranch("nightly", moved_to.sha),) if moved_to else ())
    assert plan.why == why
    assert isinstance(plan.closing, ConcludeNightly)
    assert plan.closing.fine is fine
    assert (plan.closing.at, plan.closing.day) == ("2026-03-07T05:00:00Z", "2026-03-06")
    assert len(plan.closing.why_not_newer) == len(look.looked)
