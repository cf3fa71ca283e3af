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


@pytest.mark.parametrize(("value", "kind"), [("a", "text"), (7, "a number"), ([], "a list"), (None, "missing")])
def test_the_error_names_what_stands_in_the_place_of_an_object(value: object, kind: str) -> None:
    with pytest.raises(PayloadError) as raised:
        Payload({"head": value}, "pull_request").at("head")
    assert kind in str(raised.value)
