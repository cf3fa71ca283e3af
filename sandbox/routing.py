"""The table of API routes, and the request object that each route's function gets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from yarl import URL

from sandbox.errors import ARCHIVED, ApiError, invalid, not_accessible, not_found, refused
from sandbox.git import Commit
from sandbox.model.apps import App, InstallationToken
from sandbox.model.issues import Issue
from sandbox.model.pulls import PullRequest
from sandbox.model.sign_in import UserToken
from sandbox.openapi import document
from sandbox.users import User

if TYPE_CHECKING:
    from sandbox.model.repository import Repository
    from sandbox.state import GitHubState

Json = dict[str, Any]
Auth = Literal["app", "installation", "either", "person", "client"]
"""Who calls: the App, an installation, a person who signed in, or the App by its client ID and secret."""
T = TypeVar("T")
DEFAULT_PER_PAGE = 30
FULL_SHA = re.compile(r"[0-9a-f]{40}\Z")


@dataclass(frozen=True)
class ApiResponse:
    """The answer of a route: JSON, or plain text."""

    body: object = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True)
class Route:
    """One operation: who may call it, and the function that executes it.

    `needs` lists permissions. One of them is enough, at the level that the method implies.
    """

    method: str
    template: str
    handle: Callable[[Call], ApiResponse]
    needs: tuple[str, ...]
    auth: Auth

    @property
    def level(self) -> str:
        """Return the permission level that the method implies."""
        return "read" if self.method == "GET" else "write"

    @property
    def aiohttp_path(self) -> str:
        """Return the template in aiohttp's syntax, with names that may contain slashes marked."""
        several = multi_segment(self.template)
        return re.sub(r"\{(\w+)\}", lambda m: f"{{{m[1]}:.+}}" if m[1] in several else m[0], self.template)

    @property
    def sort_key(self) -> tuple[bool, int, int]:
        """Return a key that sorts more specific routes first."""
        several = multi_segment(self.template)
        return bool(several), -self.template.count("/"), self.template.count("{")


ROUTES: list[Route] = []


def route(
    method: str,
    template: str,
    *needs: str,
    auth: Auth = "installation",
) -> Callable[[Callable[[Call], ApiResponse]], Callable[[Call], ApiResponse]]:
    """Register a function for an operation of GitHub's OpenAPI description."""

    def register(handle: Callable[[Call], ApiResponse]) -> Callable[[Call], ApiResponse]:
        ROUTES.append(Route(method, template, handle, needs, auth))
        return handle

    return register


@cache
def multi_segment(template: str) -> frozenset[str]:
    """Return the names of path parts that may contain slashes, such as branch names."""
    item = document()["paths"].get(template, {})
    declared = [p for operation in item.values() for p in operation.get("parameters", [])]
    ref_names = {"ref", "path", "branch"} & set(re.findall(r"\{(\w+)\}", template))
    return frozenset(ref_names | {p["name"] for p in declared if p.get("in") == "path" and p.get("x-multi-segment")})


@dataclass
class Call:
    """One API request: its checked parts, its caller, and the objects it names."""

    github: GitHubState
    route: Route
    url: URL
    path: Json
    query: Json
    body: Json
    accept: str
    app: App
    token: InstallationToken | None
    person: UserToken | None = None

    @property
    def actor(self) -> User:
        """Return the account that acts: the App's bot."""
        return self.app.bot

    @property
    def repository(self) -> Repository:
        """Return the repository of the path, if the token has a permission there that the route needs.

        https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api#resource-not-accessible
        """
        name = f"{self.path['owner']}/{self.path['repo']}"
        repository = self.github.repositories.get(name.lower())
        if repository is None:
            if (moved := self.github.moved.get(name.lower())) is not None:
                raise self._redirect(name, moved)
            raise not_found()
        if self.token is None:
            return repository
        covered = repository in self.token.repositories
        if not covered and (repository.private or not self.route.needs):
            raise not_found()
        if not covered and self.route.level == "write":
            raise not_accessible()
        if repository.archived and self.route.level == "write":
            raise ApiError(403, ARCHIVED)
        if covered and self.route.needs and not self._allowed:
            raise not_accessible(self.route.needs, self.route.level)
        return repository

    def _redirect(self, name: str, moved: Repository) -> ApiError:
        """Return the redirect for a renamed repository; GitHub redirects to an address with the repository's ID.

        https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#follow-redirects
        """
        new_address = str(self.url).replace(f"/repos/{name}", f"/repos/{moved.full_name}", 1)
        status = 301 if self.route.method == "GET" else 307
        return ApiError(status, "Moved Permanently", headers={"Location": new_address})

    @property
    def _allowed(self) -> bool:
        assert self.token is not None
        return any(self.token.may(permission, self.route.level) for permission in self.route.needs)

    @property
    def issue(self) -> Issue:
        """Return the issue or pull request of the path."""
        issue = self.repository.issues.get(self.path["issue_number"])
        if issue is None:
            raise not_found()
        return issue

    @property
    def pull(self) -> PullRequest:
        """Return the pull request of the path."""
        pull = self.repository.issues.get(self.path["pull_number"])
        if not isinstance(pull, PullRequest):
            raise not_found()
        return pull

    def commit(self, ref: str) -> Commit:
        """Return the commit that a SHA, branch or tag names; raises GitHub's 422 `ApiError` if there is none."""
        commit = self.repository.resolve(ref)
        if commit is None:
            raise refused(f"No commit found for SHA: {ref}")
        return commit

    def full_sha(self, name: str, value: str) -> str:
        """Return a SHA that must be written out and must exist; raises a 422 `ApiError` otherwise."""
        if not FULL_SHA.match(value):
            raise invalid(name, f"{value!r} is not a SHA of 40 hexadecimal digits")
        if value not in self.repository.git.commits:
            raise refused(f"No commit found for SHA: {value}")
        return value

    def page(self, items: Sequence[T], view: Callable[[T], Json], wrap: str | None = None) -> ApiResponse:
        """Answer one page of a list, with the addresses of the others in the Link header.

        `wrap` names the key under which GitHub puts the list beside `total_count`.
        https://docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api
        """
        size, number = self.query.get("per_page", DEFAULT_PER_PAGE), self.query.get("page", 1)
        if size < 1 or number < 1:
            raise invalid("page", "page and per_page begin at 1")
        items = self.github.listed(items)
        page_items = [view(item) for item in items[(number - 1) * size : number * size]]
        body: object = page_items if wrap is None else {"total_count": len(items), wrap: page_items}
        return ApiResponse(body, headers=self._links(number, -(-len(items) // size)))

    def _links(self, number: int, last: int) -> dict[str, str]:
        targets: dict[str, int] = {}
        if number > 1:
            targets |= {"prev": number - 1, "first": 1}
        if number < last:
            targets |= {"next": number + 1, "last": last}
        links = [f'<{self.url.update_query(page=page)}>; rel="{rel}"' for rel, page in targets.items()]
        return {"Link": ", ".join(links)} if links else {}


def without_four_bytes(field: str, text: str, *, resource: str) -> None:
    """Answer 422 for a character above U+FFFF in a field that does not take it."""
    if any(character > "\uffff" for character in text):
        raise invalid(field, f"{field} doesn't accept 4-byte Unicode", resource=resource)


def too_long(field_name: str, text: str, limit: int) -> None:
    """Raise a 422 `ApiError` if a text is longer than GitHub accepts."""
    if len(text) > limit:
        raise ApiError(
            422,
            "Validation Failed",
            errors=[{"resource": "Request", "field": field_name, "code": "custom",
                     "message": f"{field_name} is too long (maximum is {limit} characters)"}],
            mistake=True,
        )  # fmt: skip
