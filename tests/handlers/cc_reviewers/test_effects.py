"""What is stored about review requests, and how failed ones are reported."""

from __future__ import annotations

from handlers.cc_reviewers.effects import reviewers_refused_text
from tests.gfm import rendered


def test_refused_reviewers_are_named_without_a_mention() -> None:
    page = rendered(reviewers_refused_text(["Stranger", "example-lab/gpu"]))
    assert "<code>Stranger</code>, <code>example-lab/gpu</code>" in page
    assert "@" not in page


def test_without_a_refusal_there_is_nothing_to_report() -> None:
    assert reviewers_refused_text([]) == ""
