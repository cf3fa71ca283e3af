"""Ask a running bot what CI should do, over HTTP, with nothing but the standard library."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from urllib.parse import quote, urlsplit

from nightjar_formats.strict_json import read_json
from nightjar_lab.api import LARGEST, check_address, reason_of
from nightjar_lab.ci import texts
from nightjar_lab.ci.decision import CiDecision
from nightjar_lab.ci.forms import read_answer

TIMEOUT = 11.0
"""Seconds without an answer in one try: a little more than the bot itself waits for GitHub."""
PAUSES = (1.0, 2.0)
"""Seconds between tries."""

SERVER_TROUBLE = frozenset({429, 500, 502, 503, 504})
LONGEST_DETAIL = 200


class CannotAsk(Exception):
    """There is no answer. The message says why, as a clause that a comma may follow; it may quote text from outside."""


def pull_request_path(repository: str, number: int, sha: str) -> str:
    """Return the path of the decision about a pull request of `owner/name`; `sha` may be empty."""
    return f"/api/v1/repos/{repository}/pulls/{number}/decision" + (f"?sha={sha}" if sha else "")


def commit_path(repository: str, sha: str, branch: str) -> str:
    """Return the path of the decision about a commit of a branch of `owner/name`."""
    return f"/api/v1/repos/{repository}/commits/{sha}/decision?branch={quote(branch, safe='')}"


def ask_bot(url: str, path: str, token: str = "", *, pauses: Sequence[float] = PAUSES) -> CiDecision:
    """Return the decision of the bot at `url`; raise `CannotAsk`. Blocks.

    `path` is from `pull_request_path` or `commit_path`. `token` is what a private repository needs. It is sent only
    over HTTPS or to this machine, and never to the address of a redirect. Transient errors are retried after each of
    `pauses`, in seconds.
    """
    request = urllib.request.Request(f"{url}{path}", headers={"User-Agent": "nightjar"})  # noqa: S310  # of the options
    if token:
        _check_encrypted(url)
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    trouble = ""
    for pause in (*pauses, None):
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310  # of the options
                return _read_decision(response.read(LARGEST))
        except urllib.error.HTTPError as error:
            with error:
                trouble = texts.REFUSED.format(status=error.code, detail=_problem_detail(error))
            if error.code not in SERVER_TROUBLE:
                break
        except (OSError, HTTPException, ValueError) as error:
            trouble = texts.NO_ANSWER.format(problem=_connection_problem(error, url))
        if pause is not None:
            time.sleep(pause)
    raise CannotAsk(trouble)


def _check_encrypted(url: str) -> None:
    try:
        check_address(url)
    except ValueError:
        raise CannotAsk(texts.TOKEN_NOT_SENT.format(url=url)) from None


def _connection_problem(error: Exception, url: str) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return texts.TOO_LATE
    if isinstance(error, urllib.error.URLError):
        parts = urlsplit(url)
        return texts.NO_CONNECTION.format(place=f"{parts.hostname}:{parts.port or 443}")
    return reason_of(error)


def _read_decision(body: bytes) -> CiDecision:
    decision = read_answer(body)
    if decision is None:
        raise CannotAsk(texts.UNREADABLE)
    return decision


def _problem_detail(error: urllib.error.HTTPError) -> str:
    """Return the detail of a problem document (RFC 9457), or say that the answer is not one."""
    try:
        detail = str(read_json(error.read(LARGEST))["detail"]).rstrip(".")
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return texts.NO_REASON
    return detail if len(detail) <= LONGEST_DETAIL else f"{detail[: LONGEST_DETAIL - 1]}…"
