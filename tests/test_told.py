"""Failures in words for people."""

from __future__ import annotations

from http import HTTPStatus

import pytest
from gidgethub import BadRequest, InvalidField, QueryError

from bot.errors import PayloadError, TryAgain, UserError
from bot.github.errors import NotInstalled
from bot.told import refusal, told
from tests.gfm import rendered

GUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
FORBIDDEN = BadRequest(
    HTTPStatus.FORBIDDEN,
    "Resource not accessible by integration",
    headers={"X-Accepted-GitHub-Permissions": "actions=write"},
)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UserError("`build` is gone."), "`build` is gone."),
        (TryAgain("GitHub answered 502"), f"have a maintainer run `nightjar replay {GUID}`"),
        (PayloadError("comment.id", "is missing"), f"in the log under delivery `{GUID}`"),
        (ZeroDivisionError("@octocat"), f"in the log under delivery `{GUID}`"),
        (FORBIDDEN, "the App lacks the permission `actions=write` for this repository."),
        (BadRequest(HTTPStatus.FORBIDDEN, "No"), "the App lacks a permission for this repository."),
        (QueryError({"errors": [{"type": "FORBIDDEN", "message": "No"}]}), "the App lacks a permission"),
        (QueryError({"errors": [{"type": "UNPROCESSABLE", "message": "Locked"}]}), "GitHub refused, saying `Locked`."),
        (NotInstalled("gone"), "the App is not installed here any more."),
        (InvalidField([], "Head moved"), "GitHub refused, saying `Head moved`."),
    ],
)
def test_an_error_in_words(error: Exception, words: str) -> None:
    assert words in told(error, GUID)


@pytest.mark.parametrize("text", ["@octocat", "` @octocat", "<b>@octocat</b>", "a|b @octocat"])
def test_githubs_words_call_nobody_and_ours_show_nothing_of_a_fault(text: str) -> None:
    refused = told(InvalidField([], text), GUID)
    outside = "".join(part.split("</code>")[-1] for part in rendered(refused, raw_html=True).split("<code>"))
    assert "@" not in outside
    assert "octocat" not in told(RuntimeError(text), GUID)


def test_what_is_no_refusal_of_githubs_is_none() -> None:
    assert refusal(TryAgain("later")) is None
    assert refusal(QueryError({"errors": [{"message": "Something"}]})) is None
