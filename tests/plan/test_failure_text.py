"""Failures in words for people."""

from __future__ import annotations

import json
from http import HTTPStatus

import pytest
from gidgethub import BadRequest, InvalidField, QueryError

from bot.core.errors import PayloadError, TryAgain, UserError
from bot.engine.retry import LostTooOften
from bot.github.errors import AccessPaused, Answer, NotInstalled, error_of
from bot.plan.failure_text import failure_text, refusal_text
from tests.gfm import rendered

GUID = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
FORBIDDEN = BadRequest(
    HTTPStatus.FORBIDDEN,
    "Resource not accessible by integration",
    headers={"X-Accepted-GitHub-Permissions": "actions=write"},
)


def forbidden(sentence: str, *, graphql: bool = False) -> Exception:
    """Return the error of a 403 with this sentence, from REST or GraphQL."""
    if graphql:
        return QueryError({"errors": [{"type": "FORBIDDEN", "message": sentence}]})
    body = json.dumps({"message": sentence, "documentation_url": "https://docs.github.com/rest"}).encode()
    return error_of(Answer(403, {"content-type": "application/json; charset=utf-8"}, body), "PUT /")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (UserError("`build` is removed."), "`build` is removed."),
        (TryAgain("GitHub answered 502"), f"ask a maintainer to run `nightjar replay {GUID}`"),
        (PayloadError("comment.id", "is missing"), f"in the log under delivery `{GUID}`"),
        (ZeroDivisionError("@octocat"), f"in the log under delivery `{GUID}`"),
        (LostTooOften(3, runs_again=True), "I stopped trying. I'll try again in an hour."),
        (LostTooOften(3), f"To try again, ask a maintainer to run `nightjar replay {GUID}`."),
        (FORBIDDEN, "GitHub denied this: the App needs *Actions: write*."),
        (forbidden("Forbidden"), "GitHub denied this: the App needs a permission that it doesn't have."),
        (forbidden("Resource not accessible by integration", graphql=True), "the App needs a permission"),
        (forbidden("Protected branch hook declined"), "GitHub refused this: `Protected branch hook declined`."),
        (forbidden("Protected branch", graphql=True), "GitHub refused this: `Protected branch`."),
        (forbidden("x" * 9_000), f"GitHub refused this: `{'x' * 299}…`."),
        (forbidden("Repository was archived so is read-only."), "the repository is archived. A repository admin"),
        (
            forbidden("Unable to create comment because issue is locked."),
            "this conversation is locked, and only people",
        ),
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
            "it changes files in `.github/workflows`, so the App needs *Contents: write* and *Workflows: write*.",
        ),
        (
            forbidden(
                "Although you appear to have the correct authorization credentials, the `octo-org` organization has an "
                "IP allow list enabled, and your IP address is not permitted to access this resource."
            ),
            "the organization has an IP allow list without the address of this bot's server.",
        ),
        (
            forbidden(
                "Resource protected by organization SAML enforcement. You must grant your OAuth token access to this "
                "organization."
            ),
            "the organization requires SAML single sign-on, and the App isn't authorized for it.",
        ),
        (QueryError({"errors": [{"type": "UNPROCESSABLE", "message": "Locked"}]}), "GitHub refused this: `Locked`."),
        (NotInstalled("removed"), "The App is no longer installed on this repository."),
        (AccessPaused.suspended(1), "The App had no access to this repository for three days"),
        (forbidden("This installation has been suspended"), "the App is suspended for this account"),
        (InvalidField([], "Head moved"), "GitHub refused this: `Head moved`."),
    ],
)
def test_each_error_has_its_text(error: Exception, words: str) -> None:
    assert words in failure_text(error, GUID)


@pytest.mark.parametrize("text", ["@octocat", "` @octocat", "<b>@octocat</b>", "a|b @octocat"])
def test_githubs_words_mention_nobody_and_our_faults_are_not_shown(text: str) -> None:
    refused = failure_text(InvalidField([], text), GUID)
    outside = "".join(part.split("</code>")[-1] for part in rendered(refused, raw_html=True).split("<code>"))
    assert "@" not in outside
    assert "octocat" not in failure_text(RuntimeError(text), GUID)


def test_other_errors_are_not_taken_for_refusals_by_github() -> None:
    assert refusal_text(TryAgain("later")) is None
    assert refusal_text(QueryError({"errors": [{"message": "Something"}]})) is None
