"""What is remembered of review requests, and what is said about those that came to nothing."""

from __future__ import annotations

from handlers.cc_reviewers.effects import reviewers_refused_text
from tests.gfm import rendered


def test_those_who_could_not_be_asked_are_named_and_not_called() -> None:
    page = rendered(reviewers_refused_text(["Stranger", "example-lab/gpu"]))
    assert "<code>Stranger</code>, <code>example-lab/gpu</code>" in page
    assert "@" not in page


def test_where_everybody_could_be_asked_there_is_nothing_to_say() -> None:
    assert reviewers_refused_text([]) == ""
