"""What is remembered of review requests, and what is said of those that came to nothing."""

from __future__ import annotations

import json

import pytest

from handlers.cc_reviewers.effects import Asked, refusal_text
from tests.gfm import rendered


@pytest.mark.parametrize(
    "asked",
    [Asked(), Asked(frozenset({"octocat", "example-lab/gpu"}), ("Stranger",), "**Reviewers:** no `Stranger`")],
)
def test_what_is_remembered_is_read_again(asked: Asked) -> None:
    assert Asked.read(json.loads(json.dumps(asked.as_record()))) == asked


def test_without_a_record_nobody_was_asked() -> None:
    assert Asked.read(None) == Asked(frozenset(), (), "")


def test_those_who_could_not_be_asked_are_named_and_not_called() -> None:
    page = rendered(refusal_text(["Stranger", "example-lab/gpu"]))
    assert "<code>Stranger</code>, <code>example-lab/gpu</code>" in page
    assert "@" not in page


def test_where_everybody_could_be_asked_there_is_nothing_to_say() -> None:
    assert refusal_text([]) == ""
