"""Ask a running bot what CI should do, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import quote

import aiohttp
from nightjar_formats.strict_json import read_json
from yarl import URL

from bot.core.http import open_session
from bot.core.urls import encrypted_url
from bot.github.text.markdown import truncate
from handlers.ci_decisions import texts
from handlers.ci_decisions.decide import CiDecision
from handlers.ci_decisions.forms import read_answer

TIMEOUT = aiohttp.ClientTimeout(total=11, sock_connect=4)
"""Seconds for one try: a little more than the bot itself waits for GitHub."""
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


async def ask_bot(url: str, path: str, token: str = "", *, pauses: Sequence[float] = PAUSES) -> CiDecision:
    """Return the decision of the bot at `url`; raise `CannotAsk`.

    `path` is from `pull_request_path` or `commit_path`.
    """
    return _read_decision(await get_from_bot(url, path, token, pauses=pauses))


async def get_from_bot(url: str, path: str, token: str = "", *, pauses: Sequence[float] = PAUSES) -> bytes:
    """Return what the bot at `url` answers to a GET of `path`; raises `CannotAsk`.

    `token` is what a private repository needs. It is sent only over HTTPS or to this machine, and never to the
    address of a redirect. Transient errors are retried after each of `pauses`, in seconds.
    """
    # The path is quoted already; without `encoded` yarl would quote it again.
    address = URL(url + path, encoded=True)
    headers = {"User-Agent": "nightjar"}
    if token:
        _check_encrypted(url)
        headers["Authorization"] = f"Bearer {token}"
    async with open_session(timeout=TIMEOUT, headers=headers) as session:
        for pause in (*pauses, None):
            try:
                status, body = await _get(session, address)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                trouble = texts.NO_ANSWER.format(problem=_connection_problem(error))
            else:
                if status == 200:
                    return body
                trouble = texts.REFUSED.format(status=status, detail=_problem_detail(body))
                if status not in SERVER_TROUBLE:
                    break
            if pause is not None:
                await asyncio.sleep(pause)
    raise CannotAsk(trouble)


def _check_encrypted(url: str) -> None:
    try:
        encrypted_url(url)
    except ValueError:
        raise CannotAsk(texts.NOT_ENCRYPTED.format(url=url)) from None


async def _get(session: aiohttp.ClientSession, address: URL) -> tuple[int, bytes]:
    async with session.get(address) as response:
        return response.status, await response.read()


def _connection_problem(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection to {error.host}:{error.port}"
    return "too late" if isinstance(error, TimeoutError) else type(error).__name__


def _read_decision(body: bytes) -> CiDecision:
    decision = read_answer(body)
    if decision is None:
        raise CannotAsk(texts.UNREADABLE)
    return decision


def _problem_detail(body: bytes) -> str:
    """Return the detail of a problem document (RFC 9457), or say that the answer is not one."""
    try:
        detail = str(read_json(body)["detail"])
    except (ValueError, KeyError, TypeError):
        return "no reason given"
    return truncate(detail.rstrip("."), LONGEST_DETAIL)
