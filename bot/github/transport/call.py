"""Describe a request before it is sent: its route, whether it writes, and whether it may be sent twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from gidgethub import sansio
from uritemplate.variable import VariableValue

from bot.core.patterns import Pattern
from bot.github.transport.graphql import is_mutation

# An absolute URL is not a template: as the label of a metric, each would be a series of its own.
ABSOLUTE = "(address from a payload)"

# Requests that must not be sent twice although their method is idempotent: a repeat adds the annotations of a check run
# again, or is refused because the first one worked. So the effect gets the error, and checks before it retries.
_NOT_REPEATABLE = Pattern(r"/check-runs/\d+$|/pulls/\d+/(merge|update-branch)$|/contents/")

# These POSTs may be sent twice: GitHub stores one reaction of a kind and one label of a name, and nobody sees a tree or
# a commit that no branch has.
_REPEATABLE_POST = Pattern(r"/reactions$|/issues/\d+/labels$|/git/(trees|commits)$")
_REPEATABLE_MUTATION = Pattern(r"\b(addReaction|removeReaction)\b")

UrlVars = Mapping[str, VariableValue] | None


@dataclass(frozen=True, slots=True)
class ApiCall:
    """Facts about a request that the client's `_request` needs and cannot read from its method and URL."""

    route: str
    write: bool
    repeatable: bool
    write_key: str = ""
    """The key of a write that must not be sent twice; empty for every other request."""
    follow: bool = True
    """Whether a GET follows GitHub's redirects."""
    is_page: bool = False
    """Whether a GET reads a page of a list whose other pages are read as well."""
    page_size: int = 0
    """The most items of a page, for a list that is read to its end; 0 for every other request."""

    @classmethod
    def rest(cls, method: str, url: str, url_vars: UrlVars = None) -> ApiCall:
        """Describe a REST request."""
        route = ABSOLUTE if "://" in url else url.split("?")[0].split("{?")[0].split("{&")[0]
        path = urlsplit(sansio.format_url(url, url_vars)).path
        pattern = _REPEATABLE_POST if method == "POST" else _NOT_REPEATABLE
        # For a POST, the pattern lists the repeatable paths; for any other method, those that are not repeatable.
        repeatable = method == "GET" or (pattern.search(path) is not None) == (method == "POST")
        return cls(
            route, write=method != "GET", repeatable=repeatable, write_key="" if repeatable else f"{method} {path}"
        )

    @classmethod
    def of_graphql(cls, query: str, variables: Mapping[str, Any]) -> ApiCall:
        """Describe a GraphQL document: a mutation counts as a POST, a query as a GET."""
        write = is_mutation(query)
        repeatable = not write or _REPEATABLE_MUTATION.search(query) is not None
        document = json.dumps([query, variables], sort_keys=True).encode()
        # 64 bits of the digest are enough for the few mutations of one job.
        write_key = "" if repeatable else f"POST /graphql {hashlib.sha256(document).hexdigest()[:16]}"
        return cls("/graphql", write=write, repeatable=repeatable, write_key=write_key)


CALL: ContextVar[ApiCall] = ContextVar("call")
"""The request that the running code is making."""


@contextmanager
def calling(call: ApiCall) -> Iterator[None]:
    """Describe the requests made inside the block."""
    token = CALL.set(call)
    try:
        yield
    finally:
        CALL.reset(token)
