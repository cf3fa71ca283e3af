"""How GraphQL differs from REST: one URL, POST for everything, errors in a 200."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gidgethub import GraphQLException, QueryError

from bot.core.patterns import Pattern
from bot.github.forbidden import Cause, LockedForGraphQL, cause_of

_MUTATION = Pattern(r"\bmutation\b")


def graphql_url(api_url: str) -> str:
    """Return the GraphQL URL for a REST base URL: on Enterprise Server it is `/api/graphql`."""
    # https://docs.github.com/en/enterprise-server@latest/graphql/guides/forming-calls-with-graphql
    if api_url.endswith("/api/v3"):
        return f"{api_url.removesuffix('/v3')}/graphql"
    return f"{api_url}/graphql"


def is_mutation(query: str) -> bool:
    """Return whether a document may write; one that only mentions the word `mutation` counts too."""
    return _MUTATION.search(query) is not None


def refuses_data(response: Any) -> bool:
    """Return whether a GraphQL answer, whose status is 200, corresponds to a 403 in REST."""
    errors = response.get("errors") if isinstance(response, Mapping) else None
    listed = errors if isinstance(errors, list) else ()
    return any(isinstance(error, Mapping) and error.get("type") == "FORBIDDEN" for error in listed)


def is_unknown_field(error: QueryError) -> bool:
    """Return whether the server refused a query because it does not know a field, as old servers do."""
    answer = error.response if isinstance(error.response, Mapping) else {}
    listed = answer.get("errors")
    extensions = [error.get("extensions") for error in listed if isinstance(error, Mapping)] if listed else []
    # Compare the code of GitHub's validation: the message contains the name of the field.
    return any(isinstance(extension, Mapping) and extension.get("code") == "undefinedField" for extension in extensions)


def data_of(response: Any) -> Any:
    """Return the `data` of a GraphQL answer.

    Raises `QueryError` for errors, with the whole answer as `response`, and `GraphQLException` if there is neither data
    nor an error.
    """
    if isinstance(response, Mapping):
        errors = response.get("errors")
        if errors:
            first, *other_errors = errors if isinstance(errors, list) else [errors]
            # QueryError reads the first error's message, so make sure that there is one.
            first = {"message": "GraphQL error", **(first if isinstance(first, Mapping) else {})}
            answer = {**response, "errors": [first, *other_errors]}
            locked = cause_of(str(first["message"])) is Cause.LOCKED
            raise LockedForGraphQL(answer) if locked else QueryError(answer)
        if "data" in response:
            return response["data"]
    raise GraphQLException("GitHub's GraphQL answer has neither data nor errors", response)
