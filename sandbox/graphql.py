"""The few GraphQL mutations and fields that REST lacks. Everything else gets a GraphQL error.

https://docs.github.com/graphql/reference/mutations#addreaction
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sandbox.errors import LOCKED, NOT_ACCESSIBLE, ApiError
from sandbox.graphql_pulls import page_of_pulls
from sandbox.model.apps import InstallationToken
from sandbox.model.issues import Comment, Issue, add_reaction, reactions_of
from sandbox.model.merge_checks import ALREADY_QUEUED, NOT_QUEUEABLE, check_head
from sandbox.model.pulls import PullRequest, Review, ReviewComment
from sandbox.routing import ApiResponse
from sandbox.views.issues import association_of_author

if TYPE_CHECKING:
    from sandbox.state import GitHubState

Json = dict[str, Any]
# GraphQL's names of reactions, and REST's.
CONTENTS = {
    "THUMBS_UP": "+1",
    "THUMBS_DOWN": "-1",
    "LAUGH": "laugh",
    "CONFUSED": "confused",
    "HEART": "heart",
    "HOORAY": "hooray",
    "ROCKET": "rocket",
    "EYES": "eyes",
}
REACTIONS = ("addReaction", "removeReaction")
QUEUEING = ("enqueuePullRequest", "dequeuePullRequest")
REVERT = "revertPullRequest"
MUTATIONS = (*REACTIONS, *QUEUEING, REVERT)
_CALL = re.compile(rf"\b({'|'.join(MUTATIONS)})\s*\(\s*input\s*:\s*(\$\w+|\{{[^}}]*\}})\s*\)")
NOT_MERGED = "Pull request is not merged"
NOT_REVERTED = (
    "Sorry, this pull request couldn't be reverted automatically. It may have already been reverted, or the content "
    "may have changed since it was merged."
)
_FIELD = re.compile(r"(\w+)\s*:\s*(\$\w+|\"[^\"]*\"|\w+)")
_OBJECT = re.compile(r"\b(repository|pullRequest)\s*\(([^)]*)\)")
_TEMPLATE = re.compile(r"(?:(?:\.github|docs)/)?pull_request_template(?:\.(?:md|txt)|/[^/]+\.md)", re.IGNORECASE)
Subject = Issue | Comment | Review | ReviewComment


def answer(github: GitHubState, token: InstallationToken, request: Json) -> ApiResponse:
    """Execute a GraphQL request."""
    query, variables = str(request.get("query", "")), request.get("variables") or {}
    call = _CALL.search(query)
    if call is None and "mutation" not in query and (objects := dict(_OBJECT.findall(query))):
        named = {name: _input(text, variables) for name, text in objects.items()}
        return _read(github, token, query, variables, named)
    if call is None or "mutation" not in query:
        return _error(f"The sandbox knows {', '.join(MUTATIONS)} only", "UNSUPPORTED")
    values = _input(call[2], variables)
    if call[1] == REVERT:
        return _revert(github, token, values)
    if call[1] in QUEUEING:
        return _queue(github, token, call[1], values)
    return _react(github, token, call[1], values)


def _react(github: GitHubState, token: InstallationToken, mutation: str, values: Json) -> ApiResponse:
    subject = next(_subjects(github, token, str(values.get("subjectId"))), None)
    if subject is None:
        return _no_node(values.get("subjectId"))
    content = str(values.get("content"))
    if content not in CONTENTS:
        return _error(f"{content!r} is not one of {sorted(CONTENTS)}", "BAD_USER_INPUT")
    if not (token.may("pull_requests", "write") or token.may("issues", "write")):
        return _error(NOT_ACCESSIBLE, "FORBIDDEN")
    issue, target = subject
    if issue.locked:
        return _error(LOCKED.format(what="reaction"), "FORBIDDEN")
    user = token.installation.app.bot
    if mutation == "addReaction":
        add_reaction(user, CONTENTS[content], target, issue)
    else:
        remaining = [r for r in reactions_of(target) if not (r.user is user and r.content == CONTENTS[content])]
        reactions_of(target)[:] = remaining
        github.changed()
    body = {"reaction": {"content": content, "user": {"login": user.login}}, "subject": {"id": target.node_id}}
    return ApiResponse({"data": {mutation: body}})


def _queue(github: GitHubState, token: InstallationToken, mutation: str, values: Json) -> ApiResponse:
    """Add a pull request to the merge queue, or remove it.

    https://docs.github.com/graphql/reference/mutations#enqueuepullrequest
    """
    wanted_id = values.get("pullRequestId" if mutation == "enqueuePullRequest" else "id")
    pull = _pull(github, token, wanted_id)
    if pull is None:
        return _no_node(wanted_id)
    if not (token.may("pull_requests", "write") and token.may("contents", "write")):
        return _error(NOT_ACCESSIBLE, "FORBIDDEN")
    actor, entry = token.installation.app.bot, pull.queued
    if mutation == "dequeuePullRequest":
        if entry is None:
            return _error("Pull request is not in the merge queue", "UNPROCESSABLE")
        pull.dequeue(actor)
    else:
        if values.get("expectedHeadOid") not in {None, pull.head_sha}:
            return _error("Expected head oid does not match the current head oid", "UNPROCESSABLE")
        if entry is not None:
            return _error(ALREADY_QUEUED, "UNPROCESSABLE")
        if pull.queue is None or pull.state != "open" or pull.draft or not pull.mergeable:
            return _error(NOT_QUEUEABLE, "UNPROCESSABLE")
        try:
            check_head(pull)
        except ApiError as error:
            return _error(error.message, "UNPROCESSABLE")
        entry = pull.enqueue(actor)
    position = (pull.queue or []).index(entry) + 1 if pull.queued else 0
    return ApiResponse({"data": {mutation: {"mergeQueueEntry": {"position": position}}}})


def _revert(github: GitHubState, token: InstallationToken, values: Json) -> ApiResponse:
    """Open a pull request that reverts a merged one.

    https://docs.github.com/graphql/reference/mutations#revertpullrequest
    """
    pull = _pull(github, token, values.get("pullRequestId"))
    if pull is None:
        return _no_node(values.get("pullRequestId"))
    if not (token.may("pull_requests", "write") and token.may("contents", "write")):
        return _error(NOT_ACCESSIBLE, "FORBIDDEN")
    if pull.merged_at is None:
        return _error(NOT_MERGED, "UNPROCESSABLE")
    title = str(values.get("title") or f'Revert "{pull.title}"')
    body = str(values.get("body") or f"Reverts {pull.repository.full_name}#{pull.number}")
    repository = github.repositories[pull.repository.full_name.lower()]
    draft = str(values.get("draft")).lower() == "true"
    try:
        made = repository.revert(pull, token.installation.app.bot, title, body, draft=draft)
    except ValueError:
        return _error(NOT_REVERTED, "UNPROCESSABLE")
    return ApiResponse({"data": {REVERT: {"revertPullRequest": {"number": made.number}}}})


def _pull(github: GitHubState, token: InstallationToken, wanted_id: object) -> PullRequest | None:
    subjects = (subject for subject, _ in _subjects(github, token, str(wanted_id)))
    return next((subject for subject in subjects if isinstance(subject, PullRequest)), None)


def _read(github: GitHubState, token: InstallationToken, query: str, variables: Json, named: Json) -> ApiResponse:
    """Answer a query about a repository, its open pull requests, or one of them."""
    full_name = f"{named['repository'].get('owner')}/{named['repository'].get('name')}"
    repository = github.repositories.get(full_name.lower())
    if repository is None or repository not in token.repositories:
        return _error(f"Could not resolve to a Repository with the name '{full_name}'.", "NOT_FOUND")
    needed = "contents" if "pullRequestTemplates" in query else "pull_requests"
    if not token.may(needed, "read"):
        return _error(NOT_ACCESSIBLE, "FORBIDDEN")
    if "pullRequests" in query:
        return page_of_pulls(repository, token, query, variables)
    body: Json = {}
    if "pullRequestTemplates" in query:
        files = repository.git.commits[repository.branch(repository.default_branch)].files
        body["pullRequestTemplates"] = [{"body": text} for path, text in files.items() if _TEMPLATE.fullmatch(path)]
    if "MergeQueue" in query and not github.knows_merge_queues:
        return _unknown_fields("PullRequest", re.findall(r"is\w*MergeQueue\w*", query))
    if "pullRequest" in named:
        number = named["pullRequest"].get("number")
        pull = repository.issues.get(number) if isinstance(number, int) else None
        if not isinstance(pull, PullRequest):
            return _error(f"Could not resolve to a PullRequest with the number of {number}.", "NOT_FOUND")
        fields = {
            "id": pull.node_id,
            "baseRefName": pull.base_ref,
            "headRefOid": pull.head_sha,
            "isInMergeQueue": pull.queued is not None,
            "isMergeQueueEnabled": pull.queue is not None,
            "authorAssociation": association_of_author(pull),
        }
        requested_names = set(re.findall(r"\w+", query))
        body["pullRequest"] = {name: value for name, value in fields.items() if name in requested_names}
    return ApiResponse({"data": {"repository": body}})


def _input(text: str, variables: Json) -> Json:
    if text.startswith("$"):
        return dict(variables.get(text[1:]) or {})
    fields = dict(_FIELD.findall(text))
    return {n: variables.get(v[1:]) if v.startswith("$") else v.strip('"') for n, v in fields.items()}


def _subjects(github: GitHubState, token: InstallationToken, wanted_id: str) -> Iterator[tuple[Issue, Subject]]:
    """Yield the object with a node ID, together with its issue or pull request."""
    for repository in token.repositories:
        for issue in repository.issues.values():
            subjects: list[Subject] = [issue, *issue.comments]
            if isinstance(issue, PullRequest):
                subjects += [*issue.reviews, *issue.review_comments]
            yield from ((issue, subject) for subject in subjects if subject.node_id == wanted_id)


def _unknown_fields(kind: str, names: list[str]) -> ApiResponse:
    """Answer a query for fields that this server does not have, as in https://github.com/cli/cli/issues/5778."""
    errors = [
        {
            "path": ["query", "repository", "pullRequest", name],
            "extensions": {"code": "undefinedField", "typeName": kind, "fieldName": name},
            "locations": [{"line": 5, "column": 48}],
            "message": f"Field '{name}' doesn't exist on type '{kind}'",
        }
        for name in names
    ]
    return ApiResponse({"errors": errors})


def _no_node(wanted_id: object) -> ApiResponse:
    return _error(f"Could not resolve to a node with the global id of '{wanted_id}'", "NOT_FOUND")


def _error(message: str, kind: str) -> ApiResponse:
    return ApiResponse({"data": None, "errors": [{"type": kind, "message": message, "path": []}]})
