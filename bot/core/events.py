"""What GitHub sends: typed reading of its JSON, the shapes that handlers read, and the keys of deliveries.

A handler reads a shape, or a value by its path, when it needs it. So a payload that lacks a field fails the handlers
that need the field, and no others; the error names the path: `pull_request.head.sha`. The keys identify deliveries and
put them in order.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from bot.core.errors import AnswerError, PayloadError

Json = Mapping[str, Any]
JSON_OBJECT = (dict, Mapping)
"""The types of JSON objects. Almost all are of the first, which costs a tenth of the second to check."""


class AnsweredObject(dict[str, Any]):
    """A JSON object in an answer of GitHub's; its type lets `Payload` raise `AnswerError` for it."""


class AnsweredList(list[Any]):
    """A JSON list in an answer of GitHub's."""


def answered(data: Any) -> Any:
    """Mark a JSON value as an answer of GitHub's; return anything but an object or a list unchanged."""
    if isinstance(data, dict):
        return AnsweredObject(data)
    return AnsweredList(map(answered, data)) if isinstance(data, list) else data


class Payload:
    """Read values of a JSON object by path; every error names the whole path from the root.

    A value that is missing in a delivery or a record raises `PayloadError`, which is final. A value that is missing in
    an answer of GitHub's raises `AnswerError`, and the request is tried again. The type of the data says which it is,
    so no caller can confuse the two; the docstrings below say `PayloadError` for both.
    """

    __slots__ = ("_is_answer", "_place", "raw")

    def __init__(self, data: Any, place: str = "", *, is_answer: bool = False) -> None:
        self.raw = data
        """The JSON value itself."""
        self._place = place
        self._is_answer = is_answer or isinstance(data, AnsweredObject | AnsweredList)

    def _wrong(self, path: str, problem: str) -> AnswerError | PayloadError:
        return (AnswerError if self._is_answer else PayloadError)(path, problem)

    def __repr__(self) -> str:
        return f"Payload({self._place or '(root)'})"

    def _path(self, *keys: str) -> str:
        return ".".join(key for key in (self._place, *keys) if key)

    def _find(self, keys: tuple[str, ...]) -> Any:
        value = self.raw
        for depth, key in enumerate(keys):
            if value is None:
                return None
            if not isinstance(value, JSON_OBJECT):
                raise self._wrong(self._path(*keys[:depth]), f"is {_kind(value)} where an object was expected")
            value = value.get(key)
        return value

    def has(self, *keys: str) -> bool:
        """Return whether a value other than null stands at the path."""
        value = self.raw
        for key in keys:
            if not isinstance(value, JSON_OBJECT) or value.get(key) is None:
                return False
            value = value[key]
        return True

    def at(self, *keys: str) -> Payload:
        """Return the object at the path; raise `PayloadError` if there is none."""
        value = self._find(keys)
        if not isinstance(value, JSON_OBJECT):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where an object was expected")
        return Payload(value, self._path(*keys), is_answer=self._is_answer)

    def string(self, *keys: str) -> str:
        """Return the text at the path; raise `PayloadError` if there is none."""
        value = self._find(keys)
        if not isinstance(value, str):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where text was expected")
        return value

    def text(self, *keys: str) -> str:
        """Return the text at the path, empty if it is missing or null (bodies often are)."""
        return self.string(*keys) if self.has(*keys) else ""

    def integer(self, *keys: str) -> int:
        """Return the whole number at the path; raise `PayloadError` if there is none."""
        value = self._find(keys)
        # In Python, True is an int.
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where a whole number was expected")
        return value

    def flag(self, *keys: str) -> bool:
        """Return the truth value at the path, false if it is missing or null."""
        value = self._find(keys)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where true or false was expected")
        return bool(value)

    def items(self, *keys: str) -> Iterator[Payload]:
        """Yield the objects of the list at the path; a missing list is empty."""
        value = self._find(keys)
        if value is None:
            return
        if not isinstance(value, list):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where a list was expected")
        for index, item in enumerate(value):
            yield Payload(item, f"{self._path(*keys)}[{index}]", is_answer=self._is_answer)


def _kind(value: object) -> str:
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "missing" if value is None else names.get(type(value), type(value).__name__)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository in a payload; `installation_id` is None in a payload of a repository's own hook."""

    id: int
    full_name: str
    installation_id: int | None

    @classmethod
    def of(cls, payload: Payload) -> Self:
        """Read the repository of a payload."""
        installed = payload.has("installation", "id")
        return cls(
            id=payload.integer("repository", "id"),
            full_name=payload.string("repository", "full_name"),
            installation_id=payload.integer("installation", "id") if installed else None,
        )


@dataclass(frozen=True)
class Delivery:
    """One webhook as it arrived: `guid` from X-GitHub-Delivery, `event` from X-GitHub-Event, the parsed body.

    What all stages of a delivery ask for is read from the payload once. Each raises `PayloadError` if it is damaged.
    """

    guid: str
    event: str
    payload: Payload
    received_at: float

    @cached_property
    def action(self) -> str:
        """What happened to the event's subject; empty for events that have no actions."""
        return self.payload.text("action")

    @cached_property
    def repository_name(self) -> str:
        """`owner/name`, empty for events of no repository."""
        return self.payload.text("repository", "full_name")

    @cached_property
    def names_repository(self) -> bool:
        """Whether the payload has a repository's ID."""
        return self.payload.has("repository", "id")

    @cached_property
    def repository(self) -> Repository:
        """The repository; raises `PayloadError` for events of no repository."""
        return Repository.of(self.payload)


@dataclass(frozen=True, slots=True)
class Person:
    """A user of GitHub. Compare people by `id`: somebody else may get a login."""

    id: int
    login: str
    is_bot: bool

    @classmethod
    def of(cls, user: Payload) -> Self:
        """Read a user object; a deleted account ("ghost") is null and raises `PayloadError`."""
        return cls(id=user.integer("id"), login=user.string("login"), is_bot=user.text("type") == "Bot")


GHOST = Person(id=10137, login="ghost", is_bot=False)
"""The user that GitHub shows in place of a deleted account (https://github.com/ghost)."""


def person_or_ghost(parent: Payload, key: str = "user") -> Person:
    """Read a user that may have been deleted since."""
    return Person.of(parent.at(key)) if parent.has(key) else GHOST


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request in a payload, or in the answer to `GET /repos/{owner}/{repo}/pulls/{number}`."""

    number: int
    head_sha: str
    base_ref: str
    author: Person
    title: str
    body: str
    draft: bool
    is_open: bool
    updated_at: str
    head_ref: str = ""
    """The head branch if it is in this repository; empty for a fork's."""
    repository_id: int = 0
    head_repository_id: int = 0
    """The repository of the head branch, a fork or the same; 0 if it was deleted."""
    head_branch: str = ""
    """The head branch, in any repository."""
    merged_at: str = ""
    """When it was merged, in ISO 8601; empty if it was not."""
    merged_by: str = ""
    """The login of the person who merged it; lists of pull requests lack it."""
    merge_commit: str = ""
    """The SHA of the commit that merged it into its base; empty if it was not merged."""

    @classmethod
    def of(cls, pull: Payload) -> Self:
        """Read a pull request object."""
        has_both_ids = pull.has("head", "repo", "id") and pull.has("base", "repo", "id")
        is_own_branch = has_both_ids and pull.integer("head", "repo", "id") == pull.integer("base", "repo", "id")
        return cls(
            number=pull.integer("number"),
            head_sha=pull.string("head", "sha"),
            base_ref=pull.string("base", "ref"),
            author=person_or_ghost(pull),
            title=pull.text("title"),
            body=pull.text("body"),
            draft=pull.flag("draft"),
            is_open=pull.string("state") == "open",
            updated_at=pull.text("updated_at"),
            head_ref=pull.text("head", "ref") if is_own_branch else "",
            repository_id=pull.integer("base", "repo", "id") if pull.has("base", "repo", "id") else 0,
            head_repository_id=pull.integer("head", "repo", "id") if pull.has("head", "repo", "id") else 0,
            head_branch=pull.text("head", "ref"),
            merged_at=pull.text("merged_at"),
            merged_by=pull.text("merged_by", "login"),
            # Of an open pull request, this is GitHub's trial merge.
            merge_commit=pull.text("merge_commit_sha") if pull.text("merged_at") else "",
        )


@dataclass(frozen=True, slots=True)
class PullRequestEvent:
    """`pull_request`: https://docs.github.com/en/webhooks/webhook-events-and-payloads#pull_request."""

    EVENT: ClassVar[str] = "pull_request"

    action: str
    pull: PullRequest
    sender: Person
    old_body: str | None
    """The body before an edit; None when this event did not change it."""

    @classmethod
    def of(cls, payload: Payload) -> Self:
        """Read the event out of its payload."""
        changed = payload.has("changes", "body")
        return cls(
            action=payload.string("action"),
            pull=PullRequest.of(payload.at("pull_request")),
            sender=person_or_ghost(payload, "sender"),
            old_body=payload.text("changes", "body", "from") if changed else None,
        )


@dataclass(frozen=True, slots=True)
class UserComment:
    """A text that a person wrote on a pull request, which may contain commands.

    `kind` says under which REST path it is; `created` is false for an edit, and then `old_text` is the text before it
    (None if the edit did not change the text).
    """

    kind: str
    id: int
    node_id: str
    url: str
    number: int
    author: Person
    sender: Person
    text: str
    created: bool
    old_text: str | None
    written_at: str


ISSUE_COMMENT = "issue_comment"
REVIEW = "review"
REVIEW_COMMENT = "review_comment"
PULL_REQUEST_BODY = "pull_request"


def _user_comment(payload: Payload, kind: str, subject: Payload, number: int, created: bool) -> UserComment:
    changed = payload.has("changes", "body")
    return UserComment(
        kind=kind,
        id=subject.integer("id"),
        node_id=subject.text("node_id"),
        url=subject.text("html_url"),
        number=number,
        author=person_or_ghost(subject),
        sender=person_or_ghost(payload, "sender"),
        text=subject.text("body"),
        created=created,
        old_text=payload.text("changes", "body", "from") if changed else None,
        # GitHub gives no time for the edit of a review. The same payload's pull request was updated at that time or
        # later.
        written_at=subject.text("updated_at")
        or (payload.text("pull_request", "updated_at") if not created else "")
        or subject.text("submitted_at"),
    )


def comment_in(delivery: Delivery) -> UserComment | None:
    """Return the text that a person wrote on a pull request; None for any other event."""
    payload, action = delivery.payload, delivery.action
    match delivery.event, action:
        case ["issue_comment", "created" | "edited"]:
            # A pull request is an issue too, so this event comes for both:
            # https://docs.github.com/en/webhooks/webhook-events-and-payloads#issue_comment
            if not payload.has("issue", "pull_request"):
                return None
            number = payload.integer("issue", "number")
            return _user_comment(payload, ISSUE_COMMENT, payload.at("comment"), number, action == "created")
        case ["pull_request_review", "submitted" | "edited"]:
            number = payload.integer("pull_request", "number")
            return _user_comment(payload, REVIEW, payload.at("review"), number, action == "submitted")
        case ["pull_request_review_comment", "created" | "edited"]:
            number = payload.integer("pull_request", "number")
            return _user_comment(payload, REVIEW_COMMENT, payload.at("comment"), number, action == "created")
        case ["pull_request", "opened" | "edited"]:
            pull = payload.at("pull_request")
            return _user_comment(payload, PULL_REQUEST_BODY, pull, pull.integer("number"), action == "opened")
    return None


def issue_comment_in(delivery: Delivery) -> UserComment | None:
    """Return a new comment on an issue that is no pull request; None for any other event."""
    payload = delivery.payload
    if delivery.event != "issue_comment" or delivery.action != "created" or payload.has("issue", "pull_request"):
        return None
    return _user_comment(payload, ISSUE_COMMENT, payload.at("comment"), payload.integer("issue", "number"), True)


CHECK_BUTTON_ACTIONS = ("rerequested", "requested_action")
"""The actions of buttons on a check run; GitHub notifies only the App that created the run."""


def check_lock(repository_id: object, name: object) -> str:
    """Return the lock that orders all events about check runs of one name, on any commit."""
    return f"check:{repository_id}:{name}"


def pull_lock(repository_id: object, number: int) -> str:
    """Return the lock that orders all events about one pull request."""
    return f"pr:{repository_id}#{number}"


def group_lock(repository_id: object, number: int) -> str:
    """Return the lock that orders all events about the merge-queue groups that end with one pull request.

    It is not the pull request's own lock: a queue waits for the checks that it requires, so nothing else may delay
    them.
    """
    return f"group:{repository_id}#{number}"


def locks_of(repository_id: object, number: int) -> tuple[str, str]:
    """Return the locks of one pull request: its own, and that of its groups in the merge queue."""
    return pull_lock(repository_id, number), group_lock(repository_id, number)


MERGE_GROUP, QUEUE_BRANCHES = "merge_group", "refs/heads/gh-readonly-queue/"
LONGEST_NUMBER = 10
"""Digits of the number of a pull request. A longer number in the name of a branch is something else."""


def queued_pull(head_ref: object) -> int | None:
    """Return the number of the last pull request of a group of a merge queue, as the group's branch names it.

    https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue
    """
    if not isinstance(head_ref, str) or not head_ref.startswith(QUEUE_BRANCHES):
        return None
    number = head_ref.rpartition("/pr-")[2].partition("-")[0]
    return int(number) if number.isascii() and number.isdecimal() and len(number) <= LONGEST_NUMBER else None


def subject_of(delivery: Delivery) -> dict[str, Any]:
    """Return action, repository and number of a delivery, as far as its payload has them: the journal shows them."""
    subject: dict[str, Any] = {}
    payload = delivery.payload
    with contextlib.suppress(PayloadError):
        subject["action"] = delivery.action
    with contextlib.suppress(PayloadError):
        subject["repository"] = delivery.repository_name
    for member in ("pull_request", "issue"):
        if payload.has(member, "number"):
            with contextlib.suppress(PayloadError):
                subject.setdefault("number", payload.integer(member, "number"))
    with contextlib.suppress(PayloadError):
        if number := queued_pull(payload.text(MERGE_GROUP, "head_ref")):
            subject.setdefault("number", number)
    return subject


def lock_key(event: str, body: Json) -> str:
    """Return the lock that orders a delivery: of its pull request, branch, commit, or repository, for example.

    The server calls it before it stores the delivery, so it never raises, whatever the body contains.
    """
    repository = _get(body, "repository", "id") or 0
    number = _get(body, "pull_request", "number") or _get(body, "issue", "number")
    if isinstance(number, int):
        return pull_lock(repository, number)
    if event == "push":
        return f"ref:{repository}:{_get(body, 'ref')}"
    if event == "check_run" and _get(body, "action") in CHECK_BUTTON_ACTIONS:
        return check_lock(repository, _get(body, "check_run", "name"))
    if event == MERGE_GROUP and (queued := queued_pull(_get(body, MERGE_GROUP, "head_ref"))):
        return group_lock(repository, queued)
    sha = _get(body, "sha") if event == "status" else _get(body, event, "head_sha")
    if isinstance(sha, str):
        return f"sha:{repository}:{sha}"
    if repository:
        return f"repo:{repository}"
    return f"inst:{_get(body, 'installation', 'id') or 0}"


def _get(body: object, *keys: str) -> object:
    for key in keys:
        if not isinstance(body, dict):
            return None
        body = body.get(key)
    return body


OWN_INTENT = "guid:"
"""The beginning of the key of an event that only one delivery reports."""


def intent_key(delivery: Delivery) -> str:
    """Return a key of the reported event, the same for every delivery that reports it.

    An App's hook and a repository's hook report one comment under two GUIDs, and both get the same key. If GitHub's
    payload has no identity for an event, the GUID is the key.
    """
    describe = _INTENTS.get(delivery.event)
    try:
        parts = describe(delivery.payload) if describe else ("",)
        action = delivery.action
    except PayloadError:
        parts, action = ("",), ""
    if not all(parts):
        return OWN_INTENT + delivery.guid
    return ":".join(str(part) for part in (delivery.event, action, *parts))


def _comment_intent(payload: Payload, key: str) -> tuple[object, ...]:
    """Return the values that identify a comment or an edit of it.

    The text is part of an edit's key: GitHub gives no time for the edit of a review, and whole seconds for others.
    """
    subject = payload.at(key)
    identity = (subject.integer("id"), subject.text("updated_at") or subject.text("submitted_at"))
    if not payload.has("changes"):
        return identity
    edit = json.dumps([payload.raw["changes"], subject.text("body")], sort_keys=True)
    return (*identity, hashlib.sha256(edit.encode()).hexdigest()[:16])


def _pull_request_intent(payload: Payload) -> tuple[object, ...]:
    pull = payload.at("pull_request")
    # GitHub's times are whole seconds, so two changes within one differ by what changed.
    changed = {
        key: payload.raw[key]
        for key in ("changes", "label", "assignee", "requested_reviewer", "requested_team", "milestone")
        if payload.has(key)
    }
    digest = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:16]
    return (pull.integer("id"), pull.text("updated_at"), pull.text("head", "sha"), digest)


_INTENTS: dict[str, Callable[[Payload], tuple[object, ...]]] = {
    "issue_comment": lambda p: _comment_intent(p, "comment"),
    "pull_request_review_comment": lambda p: _comment_intent(p, "comment"),
    "pull_request_review": lambda p: _comment_intent(p, "review"),
    "pull_request": _pull_request_intent,
    "merge_group": lambda p: (p.string("merge_group", "head_sha"),),
}
