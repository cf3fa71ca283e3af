"""GitHub's refusals as errors: every body that it may send, and what the predicates say."""

from __future__ import annotations

import json

import pytest
from gidgethub import BadRequest, GraphQLException, HTTPException, InvalidField, ValidationError
from multidict import CIMultiDict

from bot.core.web_json import seconds_in
from bot.github.errors import (
    Answer,
    RateLimited,
    Unavailable,
    UnclearAnswer,
    Vanished,
    error_of,
    is_conflict,
    is_forbidden,
    is_not_found,
    is_refusal,
    is_unprocessable,
    message_of,
    status_of,
)

JSON = CIMultiDict({"Content-Type": "application/json; charset=utf-8"})


def error(status: int, body: object) -> Exception:
    return error_of(Answer(status, JSON, json.dumps(body).encode()), "POST /x")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"message": "Validation Failed", "errors": ["Reference exists"]}, "Reference exists"),
        ({"message": "Validation Failed", "errors": "no"}, "no"),
        ({"message": "Validation Failed", "errors": [{"code": "missing", "field": "sha"}]}, "'sha'"),
        ({"message": "Validation Failed", "errors": []}, "Validation Failed"),
        ({"errors": []}, "Unprocessable"),
        ({}, "Unprocessable"),
        ({"message": "odd", "errors": [5]}, "odd"),
        ({"message": "odd", "errors": 5}, "odd"),
        ([], "Unprocessable"),
        ("text", "Unprocessable"),
        (None, "Unprocessable"),
    ],
)
def test_every_422_is_a_refusal_with_githubs_message(body: object, message: str) -> None:
    refusal = error(422, body)
    assert isinstance(refusal, BadRequest)
    assert is_unprocessable(refusal)
    assert message in message_of(refusal)


def test_a_422_separates_fields_from_other_reasons() -> None:
    assert isinstance(error(422, {"message": "m", "errors": [{"code": "invalid", "field": "f"}]}), InvalidField)
    assert isinstance(error(422, {"message": "m", "errors": ["not a fast forward"]}), ValidationError)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 451, 499])
def test_a_refusal_keeps_status_and_message(status: int) -> None:
    refusal = error(status, {"message": "Because"})
    assert isinstance(refusal, HTTPException)
    assert message_of(refusal) == "Because"
    assert status_of(refusal) == (status if status != 499 else 400)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520, 599])
def test_a_failure_of_github_is_worth_another_try(status: int) -> None:
    failure = error(status, None)
    assert isinstance(failure, Unavailable)
    assert status_of(failure) == status


def test_a_body_of_the_wrong_type_is_still_a_refusal() -> None:
    refusal = error_of(Answer(404, JSON, b"<html>\xff"), "GET /x")
    assert is_not_found(refusal)


def test_predicates_tell_the_refusals_apart() -> None:
    assert is_forbidden(error(403, {"message": "Resource not accessible by integration"}))
    assert is_conflict(error(409, {"message": "Head branch was modified"}))
    assert is_conflict(error(405, {"message": "Pull Request is not mergeable"}))
    assert is_not_found(error(410, {"message": "This was deleted"}))
    assert is_not_found(GraphQLException("x", {"errors": [{"type": "NOT_FOUND"}]}))
    assert is_unprocessable(GraphQLException("x", {"errors": [{"type": "UNPROCESSABLE"}]}))
    limited, vanished = RateLimited("x", retry_in=60), Vanished("GET /x")
    for predicate in (is_forbidden, is_not_found, is_conflict, is_unprocessable, is_refusal):
        assert not predicate(limited)
        assert not predicate(vanished)
        assert not predicate(UnclearAnswer.of(vanished))
        assert not predicate(KeyError("sha"))


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        *[("30", 30), (" 0 ", 0), (None, None), ("", None), ("soon", None), ("-5", None), ("inf", None), ("nan", None)],
        ("9" * 400, 7 * 86_400),
    ],
)
def test_retry_after_is_whole_seconds_or_nothing(header: str | None, seconds: float | None) -> None:
    assert seconds_in(header) == seconds
