"""What GitHub's own description accepts and refuses."""

from __future__ import annotations

import pytest

from sandbox import openapi
from sandbox.errors import ApiError

PULLS = "/repos/{owner}/{repo}/pulls"
CHECK_RUNS = "/repos/{owner}/{repo}/check-runs"


def test_query_values_have_their_declared_types() -> None:
    assert openapi.check_query("GET", PULLS, {"per_page": "100", "state": "all"}) == {"per_page": 100, "state": "all"}


@pytest.mark.parametrize("query", [{"per_page": "101"}, {"per_page": "many"}, {"state": "shut"}, {"pages": "2"}])
def test_an_unknown_query_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(ApiError) as refusal:
        openapi.check_query("GET", PULLS, query)
    assert refusal.value.status == 422
    assert refusal.value.mistake


@pytest.mark.parametrize(
    "body",
    [
        {"name": "lint"},
        {"name": "lint", "head_sha": 7},
        {"name": "lint", "head_sha": "a" * 40, "status": "done"},
        {"name": "lint", "head_sha": "a" * 40, "sumary": "misspelt"},
        {"name": "lint", "head_sha": "a" * 40, "output": {"title": "no summary"}},
        None,
    ],
)
def test_a_body_that_violates_the_schema_is_refused(body: dict[str, object] | None) -> None:
    with pytest.raises(ApiError) as refusal:
        openapi.check_body("POST", CHECK_RUNS, body)
    assert refusal.value.body()["message"] == "Validation Failed"


def test_null_is_allowed_where_the_description_says_nullable() -> None:
    status = {"state": "success", "context": "ci", "target_url": None, "description": None}
    openapi.check_body("POST", "/repos/{owner}/{repo}/statuses/{sha}", status)
    with pytest.raises(ApiError):
        openapi.check_body("POST", "/repos/{owner}/{repo}/statuses/{sha}", status | {"state": None})


def test_a_number_in_a_path_must_be_one() -> None:
    assert openapi.check_path("GET", PULLS + "/{pull_number}", {"pull_number": "7"}) == {"pull_number": 7}
    with pytest.raises(ApiError) as refusal:
        openapi.check_path("GET", PULLS + "/{pull_number}", {"pull_number": "seven"})
    assert refusal.value.status == 404


def test_our_own_answers_and_webhooks_must_match_the_schema() -> None:
    assert "required" in str(openapi.response_problem("GET", "/app", 200, {"id": 7}))
    assert openapi.response_problem("GET", PULLS, 200, []) is None
    assert openapi.response_problem("GET", PULLS, 418, []) == "GitHub never answers 418 here"
    assert "required" in str(openapi.webhook_problem("issue_comment", "created", {"action": "created"}))
    assert openapi.webhook_problem("issue_comment", "invented", {}) == "GitHub has no webhook issue-comment/invented"
