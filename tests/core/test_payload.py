"""A missing field in a delivery is a permanent error; in an answer of GitHub it is a transient one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.core.errors import AnswerError, PayloadError
from bot.core.events import Payload, answered

READS: list[Callable[[Payload], object]] = [
    lambda payload: payload.string("title"),
    lambda payload: payload.integer("user", "id"),
    lambda payload: payload.at("head"),
    lambda payload: payload.flag("title"),
    lambda payload: list(payload.items("title")),
    lambda payload: payload.at("user").integer("login"),
    lambda payload: next(payload.items("labels")).string("name"),
]
DATA = {"title": 7, "user": {"login": "octocat"}, "labels": [{}]}


@pytest.mark.parametrize("read", READS)
def test_the_data_knows_its_source_however_deep_it_is_read(read: Callable[[Payload], object]) -> None:
    with pytest.raises(PayloadError):
        read(Payload(DATA, "pull_request"))
    with pytest.raises(AnswerError, match=r"GitHub's answer: pull_request\."):
        read(Payload(answered(DATA), "pull_request"))


def test_the_items_of_a_list_in_an_answer_are_answers_too() -> None:
    (item,) = answered([DATA])
    with pytest.raises(AnswerError):
        Payload(item).at("head")


def test_an_answer_equals_what_github_sent() -> None:
    assert answered(DATA) == DATA
    assert answered([DATA]) == [DATA]
    assert answered(None) is None


def test_the_two_errors_are_distinct() -> None:
    assert not issubclass(AnswerError, PayloadError)
    assert not issubclass(PayloadError, AnswerError)


KINDS = {
    "text": "a",
    "true or false": True,
    "a number": 7,
    "a list": [],
    "an object": {},
    "missing": None,
}
EXPECTED: dict[str, tuple[Callable[[Payload], object], set[str]]] = {
    "an object": (lambda payload: payload.at("head", "repo"), {"an object"}),
    "text": (lambda payload: payload.string("head", "repo"), {"text"}),
    "a whole number": (lambda payload: payload.integer("head", "repo"), {"a number"}),
    "true or false": (lambda payload: payload.flag("head", "repo"), {"true or false", "missing"}),
    "a list": (lambda payload: list(payload.items("head", "repo")), {"a list", "missing"}),
}
"""How a value of each kind is read, and the kinds of values that can be read so."""


@pytest.mark.parametrize("expected", EXPECTED)
@pytest.mark.parametrize("kind", KINDS)
def test_the_error_names_the_place_what_stands_there_and_what_was_expected(kind: str, expected: str) -> None:
    read, readable = EXPECTED[expected]
    payload = Payload({"head": {"repo": KINDS[kind]}}, "pull_request")
    if kind in readable:
        read(payload)
        return
    with pytest.raises(PayloadError) as raised:
        read(payload)
    assert str(raised.value) == f"pull_request.head.repo: is {kind} where {expected} was expected"


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"an object", "missing"}))
def test_the_error_names_what_stands_where_an_object_was_expected_on_the_way(kind: str) -> None:
    with pytest.raises(PayloadError) as raised:
        Payload({"head": KINDS[kind]}, "pull_request").integer("head", "repo", "id")
    assert str(raised.value) == f"pull_request.head: is {kind} where an object was expected"


def test_what_is_missing_on_the_way_is_missing() -> None:
    payload = Payload({"head": None})
    assert (payload.flag("head", "repo", "fork"), list(payload.items("head", "labels"))) == (False, [])
    assert (payload.text("head", "ref"), payload.has("head", "ref"), payload.has("head")) == ("", False, False)
    assert repr(payload) == "Payload((root))"
    assert repr(Payload({"user": {}}).at("user")) == "Payload(user)"
