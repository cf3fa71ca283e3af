"""What GitHub refuses although its schema allows it, and its answers in invalid states."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sandbox import GitHubSandbox, PullRequest, Repository

from .conftest import Client

OUTPUT = {"title": "t", "summary": "s"}
PLACE = {"path": "a.py", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}
RUN = {"name": "lint", "head_sha": "{sha}"}
MISTAKES: list[tuple[str, str, dict[str, Any] | str]] = [
    ("POST", "check-runs", RUN | {"status": "completed"}),
    ("POST", "check-runs", RUN | {"head_sha": "main"}),
    ("POST", "check-runs", RUN | {"output": OUTPUT | {"annotations": [PLACE] * 51}}),
    ("POST", "check-runs", RUN | {"output": OUTPUT | {"annotations": [PLACE | {"start_line": 0}]}}),
    ("POST", "check-runs", RUN | {"output": OUTPUT | {"summary": "s" * 65536}}),
    ("POST", "statuses/{sha}", {"state": "success", "description": "d" * 141}),
    ("POST", "statuses/{sha}", {"state": "success", "contxt": "misspelt"}),
    ("POST", "statuses/main", {"state": "success"}),
    ("POST", "issues/1/comments", {"body": "b" * 65537}),
    ("POST", "issues/1/comments", {"body": "  "}),
    ("POST", "issues/1/comments", "{not json"),
    ("POST", "issues/1/reactions", {"content": "thumbs"}),
    ("POST", "pulls/1/requested_reviewers", {"reviewers": []}),
    ("GET", "issues/1/comments?per_page=101", {}),
    ("GET", "issues/1/comments?sort=updated", {}),
    ("POST", "git/refs", {"ref": "nightly", "sha": "{sha}"}),
]


def filled(value: Any, sha: str) -> Any:
    if isinstance(value, dict):
        return {name: filled(inner, sha) for name, inner in value.items()}
    return value.replace("{sha}", sha) if isinstance(value, str) else value


@pytest.mark.parametrize(("method", "path", "body"), MISTAKES)
async def test_a_mistake_is_refused_and_recorded(
    client: Client, github: GitHubSandbox, pull: PullRequest, method: str, path: str, body: dict[str, Any] | str
) -> None:
    answer = await client.ask(method, filled(path, pull.head_sha), filled(body, pull.head_sha) or None)
    assert answer.status == (400 if isinstance(body, str) else 422)
    assert [violation.kind for violation in github.violations] == ["request"]


async def test_an_unknown_address_is_recorded_and_an_unsupported_one_says_so(
    client: Client, github: GitHubSandbox
) -> None:
    assert (await client.get("/repos/octocat/compiler/pull/1/reviewz")).status == 404
    assert (await client.get("deployments")).status == 501
    assert len(github.violations) == 2


REFUSED: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("POST", "pulls/1/requested_reviewers", {"reviewers": ["octocat", "stranger"]}, 422, "only be requested from coll"),
    ("POST", "pulls/1/requested_reviewers", {"reviewers": ["octocat", "hubot"]}, 422, "from pull request author"),
    ("POST", "pulls/1/requested_reviewers", {"team_reviewers": ["ghosts"]}, 422, "only be requested from coll"),
    ("PUT", "pulls/1/merge", {"sha": "0" * 40}, 409, "Head branch was modified"),
    ("POST", "git/refs", {"ref": "refs/heads/main", "sha": "{sha}"}, 422, "Reference already exists"),
    ("POST", "git/refs", {"ref": "refs/heads/new", "sha": "0" * 40}, 422, "Object does not exist"),
    ("PATCH", "git/refs/heads/none", {"sha": "{sha}"}, 422, "Reference does not exist"),
    ("PATCH", "git/refs/heads/nightly", {"sha": "{main}"}, 422, "Update is not a fast forward"),
    ("POST", "statuses/" + "0" * 40, {"state": "success"}, 422, "No commit found"),
    ("GET", "commits/nowhere/status", {}, 422, "No commit found"),
    ("GET", "issues/99", {}, 404, "Not Found"),
    ("GET", "contents/nothing.txt", {}, 404, "Not Found"),
    ("DELETE", "issues/1/labels/absent", {}, 404, "Label does not exist"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "message"), REFUSED)
async def test_an_invalid_state_is_answered_as_on_github_and_is_no_mistake(
    client: Client,
    github: GitHubSandbox,
    pull: PullRequest,
    method: str,
    path: str,
    body: Any,
    status: int,
    message: str,
) -> None:
    github.user("stranger")
    pull.repository.move("refs/heads/nightly", pull.head_sha, "octocat")
    for name, sha in (("{sha}", pull.head_sha), ("{main}", pull.base_sha)):
        body = {k: v.replace(name, sha) if isinstance(v, str) else v for k, v in body.items()}
    answer = await client.ask(method, path, body or None)
    assert answer.status == status
    assert message in answer.json["message"]
    assert not github.violations
    assert pull.requested_reviewers == []


@pytest.mark.parametrize("field", ["description", "path", "title", "message", "raw_details"])
async def test_a_character_above_ffff_is_refused_where_github_refuses_it(
    client: Client, github: GitHubSandbox, pull: PullRequest, field: str
) -> None:
    note = {"path": "a", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "a", field: "\N{BUG}"}
    output = {"title": "\N{BUG}", "summary": "\N{BUG}", "annotations": [note]}
    run = {"name": "a", "head_sha": pull.head_sha, "output": output}
    is_status = field == "description"
    path, body = (
        (f"statuses/{pull.head_sha}", {"state": "success", field: "\N{BUG}"}) if is_status else ("check-runs", run)
    )
    answer = await client.post(path, body)
    assert answer.status == 422
    assert "doesn't accept 4-byte Unicode" in answer.text
    assert len(github.violations) == 1
    if not is_status:
        note[field] = "\uffff"
        assert (await client.post(path, body)).status == 201


async def test_the_number_of_statuses_per_context_is_limited_to_a_thousand(client: Client, pull: PullRequest) -> None:
    for _ in range(1000):
        pull.repository.set_status("hubot", pull.head_sha, "ci", "pending")
    assert (await client.post(f"statuses/{pull.head_sha}", {"state": "success", "context": "ci"})).status == 422
    assert (await client.post(f"statuses/{pull.head_sha}", {"state": "success", "context": "other"})).status == 201


@pytest.mark.parametrize(
    ("role", "permission"),
    [("admin", "admin"), ("maintain", "write"), ("write", "write"), ("triage", "read"), ("read", "read")],
)
async def test_permission_has_the_older_words_and_role_name_the_newer(
    client: Client, repo: Repository, role: Any, permission: str
) -> None:
    repo.set_role("mona", role)
    answer = (await client.get("collaborators/mona/permission")).json
    assert (answer["permission"], answer["role_name"]) == (permission, role)


async def test_strangers_may_read_public_repositories_and_no_private_ones(
    client: Client, github: GitHubSandbox, repo: Repository
) -> None:
    github.user("stranger")
    assert (await client.get("collaborators/stranger/permission")).json["permission"] == "read"
    repo.private = True
    assert (await client.get("collaborators/stranger/permission")).json["permission"] == "none"
    assert (await client.get("collaborators/nobody/permission")).status == 404


async def test_the_primary_limit_is_enforced_and_shown(
    client: Client, github: GitHubSandbox, pull: PullRequest
) -> None:
    first = await client.get("pulls/1")
    second = await client.get("pulls/1", If_None_Match=first.headers["ETag"])
    assert second.status == 304
    assert second.headers["X-RateLimit-Remaining"] == first.headers["X-RateLimit-Remaining"]
    github.rate_limits.limit = int(first.headers["X-RateLimit-Used"])
    answer = await client.get("pulls/1")
    assert (answer.status, answer.headers["X-RateLimit-Remaining"]) == (403, "0")
    github.clock.advance(seconds=3000)  # not the end of the token yet, even on a slow machine
    github.rate_limits.limit = 5000
    assert (await client.get("pulls/1")).status == 200


async def test_lists_come_in_pages_with_links_to_the_others(client: Client, pull: PullRequest) -> None:
    for number in range(5):
        pull.comment("hubot", f"comment {number}")
    seen: list[str] = []
    url: str | None = "issues/1/comments?per_page=2"
    while url:
        answer = await client.get(url)
        seen += [comment["body"] for comment in answer.json]
        next_page = re.search('<([^>]*)>; rel="next"', answer.headers.get("Link", ""))
        url = next_page[1] if next_page else None
    assert seen == [f"comment {number}" for number in range(5)]
