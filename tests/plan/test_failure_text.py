"""Failures in words for people."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest
from gidgethub import BadRequest, InvalidField, QueryError

from bot.core.errors import PayloadError, TryAgain, UserError
from bot.github.errors import Answer, NotInstalled, error_of
from bot.plan.failure_text import failure_text, refusal_text
from tests.gfm import rendered

GUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
FORBIDDEN = BadRequest(
    HTTPStatus.FORBIDDEN,
    "Resource not accessible by integration",
    headers={"X-Accepted-GitHub-Permissions": "actions=write"},
)


def forbidden(sentence: str, *, graphql: bool = False) -> Exception:
    """Return the error of a 403 with this sentence, by REST or in GraphQL's manner."""
    if graphql:
        return QueryError({"errors": [{"type": "FORBIDDEN", "message": sentence}]})
    body = json.dumps({"message": sentence, "documentation_url": "https://docs.github.com/rest"}).encode()
    return error_of(Answer(403, {"content-type": "application/json; charset=utf-8"}, body), "PUT /")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UserError("`build` is gone."), "`build` is gone."),
        (TryAgain("GitHub answered 502"), f"have a maintainer run `nightjar replay {GUID}`"),
        (PayloadError("comment.id", "is missing"), f"in the log under delivery `{GUID}`"),
        (ZeroDivisionError("@octocat"), f"in the log under delivery `{GUID}`"),
        (FORBIDDEN, "the App lacks the permission `actions=write` for this repository."),
        (forbidden("Forbidden"), "the App lacks a permission for this repository."),
        (forbidden("Resource not accessible by integration", graphql=True), "the App lacks a permission"),
        (forbidden("Protected branch hook declined"), "GitHub refused, saying `Protected branch hook declined`."),
        (forbidden("Protected branch", graphql=True), "GitHub refused, saying `Protected branch`."),
        (forbidden("x" * 9_000), f"GitHub refused, saying `{'x' * 299}…`."),
        (forbidden("Repository was archived so is read-only."), "the repository is archived, so nobody can write"),
        (forbidden("Unable to create comment because issue is locked."), "this conversation is locked, so only people"),
        (
            forbidden(
                "Repository was archived so is read-only and unable to create comment because issue is locked",
                graphql=True,
            ),
            "the repository is archived",
        ),
        (
            forbidden(
                "refusing to allow a GitHub App to create or update workflow `.github/workflows/main.yml` without "
                "`workflows` permission"
            ),
            "this changes files in `.github/workflows`, for which the App needs the permissions *Contents: write* and "
            "*Workflows: write*.",
        ),
        (
            forbidden(
                "Although you appear to have the correct authorization credentials, the `octo-org` organization has an "
                "IP allow list enabled, and your IP address is not permitted to access this resource."
            ),
            "the organization has an IP allow list, and the address of the server that I run on is not on it.",
        ),
        (
            forbidden(
                "Resource protected by organization SAML enforcement. You must grant your OAuth token access to this "
                "organization."
            ),
            "the organization requires SAML single sign-on, and the App is not authorized for it.",
        ),
        (QueryError({"errors": [{"type": "UNPROCESSABLE", "message": "Locked"}]}), "GitHub refused, saying `Locked`."),
        (NotInstalled("gone"), "the App is not installed here any more."),
        (InvalidField([], "Head moved"), "GitHub refused, saying `Head moved`."),
    ],
)
def test_an_error_in_words(error: Exception, words: str) -> None:
    assert words in failure_text(error, GUID)


@pytest.mark.parametrize("text", ["@octocat", "` @octocat", "<b>@octocat</b>", "a|b @octocat"])
def test_githubs_words_call_nobody_and_ours_show_nothing_of_a_fault(text: str) -> None:
    refused = failure_text(InvalidField([], text), GUID)
    outside = "".join(part.split("</code>")[-1] for part in rendered(refused, raw_html=True).split("<code>"))
    assert "@" not in outside
    assert "octocat" not in failure_text(RuntimeError(text), GUID)


def test_what_is_no_refusal_of_githubs_is_none() -> None:
    assert refusal_text(TryAgain("later")) is None
    assert refusal_text(QueryError({"errors": [{"message": "Something"}]})) is None
