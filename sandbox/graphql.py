"""The few GraphQL mutations that REST has no counterpart for. Any other query is answered with a GraphQL error.

https://docs.github.com/graphql/reference/mutations#addreaction
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .apps import Token
from .conversation import Comment, Review, ReviewComment
from .issues import Issue, add_reaction, reactions_of
from .pulls import PullRequest
from .routing import Answer

if TYPE_CHECKING:
    from .github import GitHubSandbox

Json = dict[str, Any]
# REST's word for a reaction by GraphQL's.
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
_CALL = re.compile(r"\b(addReaction|removeReaction)\s*\(\s*input\s*:\s*(\$\w+|\{[^}]*\})\s*\)")
_FIELD = re.compile(r"(\w+)\s*:\s*(\$\w+|\"[^\"]*\"|\w+)")
Subject = Issue | Comment | Review | ReviewComment


def answer(github: GitHubSandbox, token: Token, request: Json) -> Answer:
    """Carry out a GraphQL request."""
    query, variables = str(request.get("query", "")), request.get("variables") or {}
    found = _CALL.search(query)
    if found is None or "mutation" not in query:
        return _error("The sandbox knows addReaction and removeReaction only", "UNSUPPORTED")
    values = _input(found[2], variables)
    subject = next(_subjects(github, token, str(values.get("subjectId"))), None)
    if subject is None:
        return _error(f"Could not resolve to a node with the global id of '{values.get('subjectId')}'", "NOT_FOUND")
    content = str(values.get("content"))
    if content not in CONTENTS:
        return _error(f"{content!r} is not one of {sorted(CONTENTS)}", "BAD_USER_INPUT")
    if not (token.may("pull_requests", "write") or token.may("issues", "write")):
        return _error("Resource not accessible by integration", "FORBIDDEN")
    issue, on = subject
    user = token.installation.app.bot
    if found[1] == "addReaction":
        add_reaction(user, CONTENTS[content], on, issue)
    else:
        kept = [r for r in reactions_of(on) if not (r.user is user and r.content == CONTENTS[content])]
        reactions_of(on)[:] = kept
        github.changed()
    body = {"reaction": {"content": content, "user": {"login": user.login}}, "subject": {"id": on.node_id}}
    return Answer({"data": {found[1]: body}})


def _input(text: str, variables: Json) -> Json:
    if text.startswith("$"):
        return dict(variables.get(text[1:]) or {})
    fields = dict(_FIELD.findall(text))
    return {n: variables.get(v[1:]) if v.startswith("$") else v.strip('"') for n, v in fields.items()}


def _subjects(github: GitHubSandbox, token: Token, wanted: str) -> Iterator[tuple[Issue, Subject]]:
    """Yield the object with a node id, with the issue or pull request that it belongs to."""
    for repository in token.repositories:
        for issue in repository.issues.values():
            subjects: list[Subject] = [issue, *issue.comments]
            if isinstance(issue, PullRequest):
                subjects += [*issue.reviews, *issue.review_comments]
            yield from ((issue, subject) for subject in subjects if subject.node_id == wanted)


def _error(message: str, kind: str) -> Answer:
    return Answer({"data": None, "errors": [{"type": kind, "message": message, "path": []}]})
