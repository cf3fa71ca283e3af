"""Errors of requests to GitHub, and the functions that read them.

A refusal (4xx) stays one of gidgethub's `BadRequest` family and is final. An error that another try may fix is a
`TryAgain`: `RateLimited`, `Unavailable` or `AppRefused`. No error carries a token, a JWT or a key: not in its text, its
arguments or its cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp
from gidgethub import (
    BadRequest,
    GitHubException,
    GraphQLException,
    HTTPException,
    InvalidField,
    RedirectionException,
    sansio,
)
from nightjar_formats.strict_json import read_json

from bot.core.errors import OUTAGE_PATIENCE, Away, TryAgain
from bot.core.web_json import seconds_in
from bot.engine.processor import ErrorKind
from bot.engine.writes import UnclearWrite
from bot.github.forbidden import Cause, LockedForRest, cause_of

MOVED = "the repository or branch was renamed or moved; use its new name in app.yaml"
NOT_JSON = "the answer claims to be JSON, but is not"
ODD_ANSWER = "the answer is neither a JSON object nor a list"
SUSPENDED = "the App's installation{number} is suspended on GitHub; the job goes on when it is active again"
TAKEN_OFF = (
    "the App was taken off the repository; the job goes on when the repository is added again on the installation's "
    "page on GitHub"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer; `headers` ignore case, `body` is undecoded."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the decoded body, None if it is not JSON."""
        try:
            return read_json(self.body)
        except ValueError:
            return None


class RateLimited(TryAgain):
    """GitHub's limits, or our stricter ones, forbid the request for `ends_in` seconds. Nothing was written.

    After `retry_in` seconds, those that were refused before it have had their turn.
    """

    retry_in: float

    def __init__(self, reason: str, *, retry_in: float, ends_in: float | None = None) -> None:
        super().__init__(f"{reason}; again in {retry_in:.0f} s", retry_in=retry_in)
        self.ends_in = retry_in if ends_in is None else ends_in


PARTIAL_PATIENCE = 6 * 3600.0
"""Seconds for which one request may fail while GitHub answers others: longer than GitHub's usual incidents last.

After that, GitHub can most likely never answer the request, for example because a diff is too large. Its pull request
must not wait any longer.
"""


class Unavailable(Away):
    """GitHub failed (5xx) or could not be reached in time. A write may still have taken effect: check before a retry.

    `status` is None if no complete answer arrived. `sent` is False if the request was never sent, so nothing was
    written. `answering` is True if GitHub answers other requests.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        retry_in: float | None = None,
        sent: bool = True,
        answering: bool = False,
    ) -> None:
        super().__init__(reason, retry_in=retry_in)
        self.status = status
        self.sent = sent
        self.answering = answering

    @property
    def patience(self) -> float:  # type: ignore[override]  # of an error it is only read
        """How long to retry, in seconds."""
        return PARTIAL_PATIENCE if self.answering else OUTAGE_PATIENCE


class NotAsked(Unavailable):
    """The request was not sent: GitHub is unavailable, and another request is already probing."""

    def __init__(self, request: str) -> None:
        super().__init__(f"{request}: GitHub does not answer at the moment", sent=False)


class Vanished(Unavailable):
    """GitHub answered 404 for something that existed a moment ago. Nothing was written."""

    def __init__(self, request: str) -> None:
        super().__init__(f"{request}: GitHub answered 404 for something that existed before", status=404, sent=False)


class UnclearAnswer(Unavailable, UnclearWrite):
    """GitHub did not say whether a write that must not be sent twice took effect."""

    @classmethod
    def of(cls, error: Unavailable) -> UnclearAnswer:
        """Turn an error into one of this class, for a write that must not be sent twice."""
        return cls(str(error), status=error.status, retry_in=error.retry_in, answering=error.answering)


class AppRefused(Away):
    """GitHub refuses our credentials (401), so nothing was written.

    This is treated as an outage: until an operator, or GitHub, fixes the cause, no request works, and then all do.
    `reason` says what to do.
    """


class NoSuchApp(AppRefused):
    """No App on this GitHub has our ID."""


class AccessPaused(Away):
    """An owner has suspended the installation, or has taken the App off the repository; both can be undone.

    So this is treated as an outage: the jobs wait until the App has access again. `installation` is the number of the
    installation, 0 if it is unknown. Nothing was written.
    """

    def __init__(self, reason: str, installation: int) -> None:
        super().__init__(reason)
        self.installation = installation

    @classmethod
    def suspended(cls, installation: int) -> AccessPaused:
        """Return the error for a suspended installation."""
        return cls(SUSPENDED.format(number=f" {installation}" if installation else ""), installation)

    @classmethod
    def removed(cls, installation: int) -> AccessPaused:
        """Return the error for a repository that the App was taken off."""
        return cls(TAKEN_OFF, installation)


class WriteRefused(GitHubException):
    """A read-only client was asked to write. This is a bug: planning code must never write."""


class NotInstalled(GitHubException):
    """The App is not installed on the repository."""


class NotSelected(NotInstalled):
    """The installation exists and does not include the repository with the ID `repository`."""

    def __init__(self, reason: str, repository: int | None) -> None:
        super().__init__(reason)
        self.repository = repository


class TooManyPages(GitHubException):
    """A list has more pages than the caller allows. Otherwise the list would end early, and nobody would notice."""


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error from GitHub, None if it has none."""
    status = getattr(error, "status_code", None) if isinstance(error, GitHubException) else None
    if isinstance(error, Unavailable):
        status = error.status
    if isinstance(error, AppRefused):
        status = 401
    return None if status is None else int(status)


def message_of(error: BaseException) -> str:
    """Return GitHub's own message, such as `Reference does not exist`. It is untrusted text."""
    return str(error)


def is_not_found(error: BaseException) -> bool:
    """Return whether the object does not exist, was removed (410), or is hidden from us: GitHub's answers are the same.

    False for `Vanished`: a 404 that we do not believe yet is no answer.
    """
    if isinstance(error, Unavailable):
        return False
    return status_of(error) in (404, 410) or "NOT_FOUND" in _graphql_types(error)


def is_forbidden(error: BaseException) -> bool:
    """Return whether the App lacks a permission. Rate limits are `RateLimited`, never this."""
    return status_of(error) == 403 or "FORBIDDEN" in _graphql_types(error)


def is_suspended(error: BaseException) -> bool:
    """Return whether GitHub refuses a request because the installation is suspended."""
    return is_forbidden(error) and cause_of(message_of(error)) is Cause.SUSPENDED


def is_conflict(error: BaseException) -> bool:
    """Return whether the current state forbids the request: 405 and 409 for a merge, 409 for a ref or a file."""
    return status_of(error) in (405, 409)


def is_unprocessable(error: BaseException) -> bool:
    """Return whether GitHub understood the request and refused its values (422)."""
    return status_of(error) == 422 or "UNPROCESSABLE" in _graphql_types(error)


def is_refusal(error: BaseException) -> bool:
    """Return whether GitHub will refuse every retry: a 4xx, its GraphQL equivalent, or a repository without the App."""
    final = isinstance(error, BadRequest | RedirectionException | NotInstalled)
    return final or is_forbidden(error) or is_not_found(error) or is_unprocessable(error)


def kind_of(error: BaseException) -> ErrorKind:
    """Return the kind of an error of GitHub, which decides about the next try."""
    if is_not_found(error) and isinstance(error, BadRequest):
        return ErrorKind.MISSING
    return ErrorKind.REFUSED if is_refusal(error) else ErrorKind.OTHER


def _graphql_types(error: BaseException) -> set[str]:
    response = error.response if isinstance(error, GraphQLException) else None
    errors = response.get("errors") if isinstance(response, Mapping) else None
    types = (e.get("type") for e in errors if isinstance(e, Mapping)) if isinstance(errors, list) else ()
    return {kind for kind in types if isinstance(kind, str)}


def error_of(answer: Answer, request: str) -> Exception:
    """Turn an answer other than 2xx into an error; `request` is the method and the route.

    Closes gaps of gidgethub 6.0.0: `KeyError` for a 422 with empty `errors`, `ValueError` for a status that
    `http.HTTPStatus` does not know (Cloudflare's 520) and for a body that does not match its content type.
    """
    if answer.status >= 500:
        retry_in = seconds_in(answer.headers.get("retry-after"))
        return Unavailable(f"{request}: GitHub answered {answer.status}", status=answer.status, retry_in=retry_in)
    if answer.status < 400:
        return RedirectionException(_standard_status(answer.status), MOVED, headers=answer.headers)
    try:
        sansio.decipher_response(answer.status, answer.headers, answer.body)
    except HTTPException as error:
        # This error is a `Refusal` as well, so that the job ends as refused, not as failed.
        if answer.status == HTTPStatus.FORBIDDEN and cause_of(str(error)) is Cause.LOCKED:
            return LockedForRest(HTTPStatus.FORBIDDEN, str(error), headers=answer.headers)
        return error
    # gidgethub could not parse the answer, so parse it leniently below.
    except (KeyError, TypeError, AttributeError, ValueError):
        pass
    data = answer.json()
    message = data.get("message") if isinstance(data, Mapping) else None
    if answer.status == 422:
        text = ": ".join([message or HTTPStatus(422).phrase, *_details(data)])
        return InvalidField([], text, headers=answer.headers)
    return BadRequest(_standard_status(answer.status), message or f"status {answer.status}", headers=answer.headers)


def _details(data: object) -> list[str]:
    """Return the sentences in the `errors` of an answer: some are strings, although gidgethub expects objects."""
    errors = data.get("errors") if isinstance(data, Mapping) else None
    return [detail for detail in errors if isinstance(detail, str)] if isinstance(errors, list) else []


def _standard_status(status: int) -> HTTPStatus:
    try:
        return HTTPStatus(status)
    except ValueError:
        return HTTPStatus(status // 100 * 100)


def problem_of(error: Exception) -> str:
    """Return why a request got no answer, without its address and headers."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection to {error.host}:{error.port} ({error.strerror or type(error.os_error).__name__})"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return f"no answer ({type(error).__name__})"
