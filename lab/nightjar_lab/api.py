"""Call the bot as a lab: claims, heartbeats, failures, and questions about a repository.

No redirect is followed, because the token would be sent along.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, urlsplit

from nightjar_formats.model import MANIFEST
from nightjar_formats.strict_json import read_json
from nightjar_formats.terminal import escape_controls
from nightjar_lab import texts

TIMEOUT = 30.0
FILE_TIMEOUT = 120.0
"""Seconds for which the bot may be silent while it stores a file."""
LARGEST = 1 << 20
"""The most bytes of an answer that are read."""
TOKEN_SECONDS = 120.0
"""Seconds that a token from a command is used; those of GitHub Actions and Buildkite are valid for five minutes."""
LONGEST_RETRY = 3600.0
"""The most seconds of a Retry-After that the kit follows."""
MOST_ADDRESS = 200
ABILITIES = ("tests", "repeat", "sides")
"""What a lab's command may be able to do: run named tests alone, run each several times, run in two checkouts."""
NOT_MODIFIED = 304
FINAL = frozenset({400, 401, 403, 404, 413, 422, 507})
"""Statuses that a retry of the same call would get again."""


class BotUnavailable(Exception):
    """The bot cannot be reached, or is busy; `retry_in` is in seconds, None if the bot did not name a time."""

    def __init__(self, reason: str, retry_in: float | None = None) -> None:
        super().__init__(reason)
        self.retry_in = retry_in


class Redirected(BotUnavailable):
    """The address redirects: the address is wrong, or a proxy shows a maintenance page for a while."""


class BotRefused(Exception):
    """The bot refuses the call; the text says why and what to do."""


class NotFound(BotRefused):
    """The object does not exist, or only a token shows it."""


class LostLease(Exception):
    """The job is no longer ours."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow no redirect, so that it becomes an error."""


OPENER = urllib.request.build_opener(_NoRedirect)


@dataclass(frozen=True)
class BotAnswer:
    """A status, a body, and the bot's time in seconds since 1970, because clocks of labs may be wrong.

    `tag` is the answer's ETag. Send it with the next call, and status 304 means that nothing has changed.
    """

    status: int
    body: Mapping[str, Any]
    bot_time: float
    tag: str = ""


def check_address(url: str) -> str:
    """Return the bot's address without a slash at its end; raise ValueError unless it is HTTPS or this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")):
        raise ValueError(texts.NOT_ENCRYPTED)
    return url.rstrip("/")


def token_of_command(command: Sequence[str], timeout: float = TIMEOUT) -> Callable[[], str]:
    """Return a function that gets a token from a command, and uses it for `TOKEN_SECONDS`."""
    cached_token: tuple[str, float] = ("", 0.0)

    def token() -> str:
        nonlocal cached_token
        if not cached_token[0] or time.monotonic() - cached_token[1] > TOKEN_SECONDS:
            try:
                completed = subprocess.run(  # noqa: S603  # the lab's own command
                    list(command), stdout=subprocess.PIPE, check=True, timeout=timeout, text=True
                )
            except subprocess.CalledProcessError as error:
                raise BotUnavailable(texts.TOKEN_COMMAND_FAILED.format(status=error.returncode)) from None
            except (OSError, subprocess.TimeoutExpired) as error:
                is_slow = isinstance(error, subprocess.TimeoutExpired)
                reason = texts.NO_ANSWER_WITHIN.format(seconds=timeout) if is_slow else reason_of(error)
                # Without its arguments, which may hold a secret.
                words = {"command": command[0], "reason": reason}
                raise BotUnavailable(texts.TOKEN_COMMAND_NOT_STARTED.format(**words)) from None
            if not completed.stdout.strip():
                raise BotUnavailable(texts.TOKEN_COMMAND_EMPTY)
            cached_token = (completed.stdout.strip(), time.monotonic())
        return cached_token[0]

    return token


class BotClient:
    """Calls the bot as one lab; `token` returns the token for each call."""

    def __init__(self, url: str, lab: str, token: Callable[[], str]) -> None:
        self.url = check_address(url)
        self._base = f"{self.url}/api/v1/labs/{quote(lab, safe='')}"
        self._token = token

    def claim(self, targets: Sequence[str], wait: int, can: Sequence[str] = ()) -> BotAnswer | None:
        """Return the answer with a claimed job, None if there is no job. Raises `BotUnavailable` and `BotRefused`.

        `can` is what the lab's command can do, of `ABILITIES`.
        """
        body = {"targets": list(targets), "wait": wait, "can": list(can)}
        answer = self._call("claims", body, TIMEOUT + wait)
        return answer if answer.status == 200 else None

    def heartbeat(self, job: str, lease: str, note: str, log_url: str | None) -> float:
        """Extend a lease; return for how many seconds. Raises `LostLease` as well."""
        body = {"lease": lease, "note": note, **({"log_url": log_url} if log_url else {})}
        answer = self._call(f"jobs/{quote(job, safe='')}/heartbeat", body, TIMEOUT)
        return seconds_until(answer.body.get("lease_expires_at"), answer.bot_time)

    def failed(self, job: str, lease: str, reason: str) -> None:
        """Give a job back. Raises `LostLease` as well."""
        self._call(f"jobs/{quote(job, safe='')}/failed", {"lease": lease, "reason": reason[:10_000]}, TIMEOUT)

    def admission(self, body: Mapping[str, Any]) -> BotAnswer:
        """Ask whether the bot would accept runs. Raises `BotUnavailable`, `BotRefused` and `NotFound`."""
        return self._call("admission", body, TIMEOUT)

    def begin_upload(self, body: Mapping[str, Any]) -> BotAnswer:
        """Begin or continue an upload. Raises `BotUnavailable` and `BotRefused`."""
        return self._call("runs", body, TIMEOUT)

    def send_file(self, upload: str, name: str, size: int, chunks: Iterable[bytes]) -> None:
        """Send a file of an upload, or its manifest. Raises `NotFound` for an upload that has expired as well.

        `LostLease` means that files are missing, or that the name is taken.
        """
        folder = f"{self._base}/runs/{quote(upload, safe='')}"
        is_manifest = name == MANIFEST
        request = urllib.request.Request(  # noqa: S310  # `check_address` has looked at the scheme
            f"{folder}/manifest" if is_manifest else f"{folder}/files/{quote(name, safe='')}",
            data=chunks,
            headers={
                "Authorization": f"Bearer {self._token()}",
                "Content-Type": "application/json" if is_manifest else "application/octet-stream",
                "Content-Length": str(size),
            },
            method="POST" if is_manifest else "PUT",
        )
        _answer(request, FILE_TIMEOUT)

    def _call(self, path: str, body: Mapping[str, Any], timeout: float) -> BotAnswer:
        request = urllib.request.Request(  # noqa: S310  # `check_address` has looked at the scheme
            f"{self._base}/{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self._token()}", "Content-Type": "application/json"},
            method="POST",
        )
        return _answer(request, timeout)


def get_from_bot_api(url: str, path: str, token: str = "", tag: str = "") -> BotAnswer:
    """GET a path of the bot; with the `tag` of an earlier answer, one with status 304 if nothing has changed.

    Raises `BotUnavailable`, `BotRefused`, and ValueError for an address that is not encrypted.
    """
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if tag:
        headers["If-None-Match"] = tag
    return _answer(urllib.request.Request(f"{check_address(url)}{path}", headers=headers), TIMEOUT)  # noqa: S310


def _answer(request: urllib.request.Request, timeout: float) -> BotAnswer:
    try:
        with OPENER.open(request, timeout=timeout) as response:
            return _read(response.status, response.headers, response.read(LARGEST))
    except urllib.error.HTTPError as error:
        with error:
            if error.code == NOT_MODIFIED:
                return _read(error.code, error.headers, b"")
            problem = _problem(error)
    except urllib.error.URLError as error:
        problem = BotUnavailable(reason_of(error.reason))
    except (OSError, HTTPException, ValueError) as error:
        problem = BotUnavailable(reason_of(error))
    raise problem


def reason_of(error: object) -> str:
    """Return the text of an error, without the number of a system error."""
    text = getattr(error, "strerror", None) or str(error)
    return text or type(error).__name__


def _read(status: int, headers: Message, raw: bytes) -> BotAnswer:
    return BotAnswer(status, _json(raw), _date(headers.get("Date")), headers.get("ETag", ""))


def seconds_until(moment: object, bot_time: float) -> float:
    """Return the seconds from now until a time that the bot wrote; 0 if it cannot be read."""
    try:
        # Python 3.9 and 3.10 do not know Z.
        return max(0.0, datetime.fromisoformat(str(moment).replace("Z", "+00:00")).timestamp() - bot_time)
    except ValueError:
        return 0.0


def _problem(error: urllib.error.HTTPError) -> Exception:
    try:
        detail = str(_json(error.read(LARGEST)).get("detail") or error.reason)
    except (OSError, HTTPException, ValueError):
        detail = str(error.reason)
    if 300 <= error.code < 400:
        target_address = error.headers.get("Location", "")[:MOST_ADDRESS]
        reason = texts.REDIRECTED.format(to=escape_controls(target_address), status=error.code)
        return Redirected(reason, _pause(error.headers))
    if error.code == 409:
        return LostLease(detail)
    if error.code == 404:
        return NotFound(detail)
    if error.code in FINAL:
        return BotRefused(detail)
    return BotUnavailable(f"{error.code}: {detail}", _pause(error.headers))


def _pause(headers: Message) -> float | None:
    """Return the seconds of Retry-After, which is a number or a date; None if it is missing or unreadable.

    https://www.rfc-editor.org/rfc/rfc9110#name-retry-after
    """
    header = headers.get("Retry-After", "").strip()
    if header.isascii() and header.isdecimal():
        return min(float(header), LONGEST_RETRY)
    try:
        moment = parsedate_to_datetime(header).timestamp()
    except (TypeError, ValueError):
        return None
    return min(max(0.0, moment - _date(headers.get("Date"))), LONGEST_RETRY)


def _json(raw: bytes) -> Mapping[str, Any]:
    try:
        document = read_json(raw) if raw else {}
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise ValueError(texts.NOT_THE_BOT)  # noqa: TRY004  # of the bot's answer, not of our code
    return document


def _date(header: str | None) -> float:
    try:
        return parsedate_to_datetime(header or "").timestamp()
    except (TypeError, ValueError):  # Python 3.9 raises the first
        return time.time()
