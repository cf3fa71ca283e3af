"""GraphQL: its address, its errors, and that a mutation is a write."""

from __future__ import annotations

import pytest
from gidgethub import BadRequest, GraphQLException, QueryError

from bot.core.errors import Refusal
from bot.github.access import NO_PERMISSIONS
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from bot.github.errors import RateLimited, Unavailable, WriteRefused, is_not_found
from bot.github.forbidden import LockedForGraphQL
from bot.github.transport.graphql import data_of, graphql_url, is_mutation, is_unknown_field
from tests.github.scripted import Say, ScriptedGitHub
from tests.github.support import INSTALLATION, Apps, Seen, client_of, quota

QUERY = "query($number: Int!) { viewer { login } }"
MUTATION = "mutation { enablePullRequestAutoMerge(input: {}) { clientMutationId } }"
DATA = Say(body={"data": {"viewer": {"login": "nightjar[bot]"}}})


@pytest.mark.parametrize(
    ("api_url", "address"),
    [
        ("https://api.github.com", "https://api.github.com/graphql"),
        ("https://github.example.org/api/v3", "https://github.example.org/api/graphql"),
        ("https://api.octocat.ghe.com", "https://api.octocat.ghe.com/graphql"),
    ],
)
def test_the_address_is_derived_from_the_rest_address(api_url: str, address: str) -> None:
    assert graphql_url(api_url) == address


async def test_an_enterprise_server_has_its_own_address(scripted: ScriptedGitHub, make_app: Apps) -> None:
    gh = client_of(make_app(api_url=f"{scripted.url}/api/v3/"), INSTALLATION)
    scripted.will("POST", "/api/graphql", DATA)
    scripted.will("GET", "/api/v3/repos/octocat/compiler", Say(body={"id": 1}))
    assert await gh.graphql(QUERY, number=1) == {"viewer": {"login": "nightjar[bot]"}}
    assert await gh.getitem("/repos/octocat/compiler") == {"id": 1}
    request = scripted.requests_for("POST", "/api/graphql")[0]
    assert request.json == {"query": QUERY, "variables": {"number": 1}}
    assert request.bearer.startswith("ghs_")


def test_a_locked_conversation_is_distinguished_from_a_missing_permission() -> None:
    """Only GraphQL accepts reactions to reviews."""
    with pytest.raises(LockedForGraphQL):
        data_of({"errors": [{"type": "FORBIDDEN", "message": "Unable to create reaction because issue is locked."}]})
    with pytest.raises(QueryError) as raised:
        data_of({"errors": [{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}]})
    assert not isinstance(raised.value, Refusal)


async def test_a_rate_limit_in_a_200_is_a_rate_limit(scripted: ScriptedGitHub, gh: GitHub) -> None:
    limited = Say(
        body={"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]},
        headers=quota(0, resource="graphql"),
    )
    scripted.will("POST", "/graphql", limited)
    scripted.will("GET", "/repos/octocat/compiler", Say(body={}))
    for _ in range(2):
        with pytest.raises(RateLimited) as raised:
            await gh.graphql(QUERY)
    assert raised.value.retry_in > 3600
    assert len(scripted.requests_for("POST", "/graphql")) == 1
    assert await gh.getitem("/repos/octocat/compiler") == {}, "REST has its own quota"


async def test_a_file_that_mentions_rate_limits_is_only_a_file(scripted: ScriptedGitHub, gh: GitHub) -> None:
    spoof = {"errors": [{"type": "RATE_LIMITED"}], "documentation_url": "x#about-secondary-rate-limits"}
    scripted.will("GET", "/repos/octocat/compiler/contents/spoof.json", Say(body=spoof))
    assert await gh.getitem("/repos/octocat/compiler/contents/spoof.json") == spoof


async def test_errors_in_a_200_are_raised_with_the_whole_answer(scripted: ScriptedGitHub, gh: GitHub) -> None:
    answer = {"data": {"repository": None}, "errors": [{"type": "NOT_FOUND", "message": "Could not resolve"}]}
    scripted.will("POST", "/graphql", Say(body=answer))
    with pytest.raises(QueryError, match="Could not resolve") as raised:
        await gh.graphql(QUERY)
    assert is_not_found(raised.value)
    assert raised.value.response["data"] == {"repository": None}


async def test_a_query_is_repeated_and_a_mutation_is_not(scripted: ScriptedGitHub, gh: GitHub, seen: Seen) -> None:
    scripted.will("POST", "/graphql", Say(502), DATA)
    assert await gh.graphql(QUERY)
    scripted.will("POST", "/graphql", Say(502), DATA)
    with pytest.raises(Unavailable):
        await gh.graphql(MUTATION)
    assert [status for _, route, status in seen.requests if route == "/graphql"] == [502, 200, 502]


async def test_a_dry_run_may_query_but_not_mutate(scripted: ScriptedGitHub, scripted_app: GitHubApp) -> None:
    gh = client_of(scripted_app, INSTALLATION, permissions=NO_PERMISSIONS)
    scripted.will("POST", "/graphql", DATA)
    assert await gh.graphql(QUERY)
    with pytest.raises(WriteRefused):
        await gh.graphql(MUTATION)
    assert len(scripted.requests_for("POST", "/graphql")) == 1


async def test_an_http_refusal_is_raised_as_in_rest(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("POST", "/graphql", Say(400, {"message": "Problems parsing JSON"}))
    with pytest.raises(BadRequest, match="Problems parsing JSON"):
        await gh.graphql(QUERY)


async def test_an_answer_that_is_not_json_is_worth_another_try(scripted: ScriptedGitHub, gh: GitHub) -> None:
    scripted.will("POST", "/graphql", Say(raw=b"<html>"))
    with pytest.raises(Unavailable):
        await gh.graphql(QUERY)


@pytest.mark.parametrize("response", [{"errors": [{}]}, {"errors": ["odd"]}, {"errors": {"odd": 1}}])
def test_errors_in_an_unknown_shape_are_errors(response: object) -> None:
    with pytest.raises(QueryError):
        data_of(response)


@pytest.mark.parametrize("response", [{}, [], "text"])
def test_an_answer_with_neither_data_nor_errors_is_an_error(response: object) -> None:
    with pytest.raises(GraphQLException):
        data_of(response)


@pytest.mark.parametrize(
    ("document", "writes"),
    [
        (QUERY, False),
        ("{ viewer { login } }", False),
        ("query { mutations }", False),
        (MUTATION, True),
        ("# a comment\nfragment f on User { login }\nmutation M($a: Int) { x }", True),
    ],
)
def test_a_mutation_is_recognized_anywhere_in_the_document(document: str, writes: bool) -> None:
    assert is_mutation(document) == writes


@pytest.mark.parametrize(
    ("answer", "is_unknown"),
    [
        ({"errors": [{"extensions": {"code": "undefinedField"}}]}, True),
        ({"errors": [{}, "other", {"extensions": {"code": "undefinedField"}}]}, True),
        ({"errors": [{"extensions": {"code": "other"}}]}, False),
        ({"errors": [{"extensions": "undefinedField"}]}, False),
        ({"errors": [{"message": "undefinedField"}]}, False),
        ({"errors": []}, False),
        ({"errors": None}, False),
        ({}, False),
    ],
)
def test_an_old_server_refuses_a_field_with_its_code(answer: dict[str, object], is_unknown: bool) -> None:
    error = QueryError({"errors": [{"message": "no"}]})
    error.response = answer
    assert is_unknown_field(error) is is_unknown
    error.response = None
    assert not is_unknown_field(error)
