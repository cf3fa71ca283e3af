"""The differences of GraphQL: one address, POST for everything, errors inside of a 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gidgethub import GraphQLException, QueryError

from bot.core.patterns import Pattern
from bot.github.forbidden import Cause, LockedForGraphQL, cause_of

_MUTATION = Pattern(r"\bmutation\b")


def graphql_url(api_url: str) -> str:
    """Return the GraphQL address beside a REST address: Enterprise Server has it at `/api/graphql`."""
    # https://docs.github.com/en/enterprise-server@latest/graphql/guides/forming-calls-with-graphql
    if api_url.endswith("/api/v3"):
        return f"{api_url.removesuffix('/v3')}/graphql"
    return f"{api_url}/graphql"


def is_mutation(query: str) -> bool:
    """Return whether a document may write; one that only mentions the word counts as one that does."""
    return _MUTATION.search(query) is not None


def refuses_data(response: Any) -> bool:
    """Return whether a GraphQL answer stands for REST's 403, which comes inside of a 200."""
    errors = response.get("errors") if isinstance(response, Mapping) else None
    found = errors if isinstance(errors, list) else ()
    return any(isinstance(error, Mapping) and error.get("type") == "FORBIDDEN" for error in found)


def is_unknown_field(error: QueryError) -> bool:
    """Return whether the server refused a query for naming a field that it does not know, as an old one does."""
    answer = error.response if isinstance(error.response, Mapping) else {}
    listed = answer.get("errors")
    extensions = [one.get("extensions") for one in listed if isinstance(one, Mapping)] if listed else []
    # The code that GitHub's validation gives; the message names the field and differs from case to case.
    return any(isinstance(one, Mapping) and one.get("code") == "undefinedField" for one in extensions)


def data_of(response: Any) -> Any:
    """Return the `data` of a GraphQL answer.

    Raises `QueryError`, whose `response` is the whole answer, for errors; and `GraphQLException` for what is neither.
    """
    if isinstance(response, Mapping):
        errors = response.get("errors")
        if errors:
            first, *others = errors if isinstance(errors, list) else [errors]
            # QueryError reads the first error's message, so there has to be one.
            first = {"message": "GraphQL error", **(first if isinstance(first, Mapping) else {})}
            answer = {**response, "errors": [first, *others]}
            locked = cause_of(str(first["message"])) is Cause.LOCKED
            raise LockedForGraphQL(answer) if locked else QueryError(answer)
        if "data" in response:
            return response["data"]
    raise GraphQLException("GitHub's GraphQL answer has neither data nor errors", response)
