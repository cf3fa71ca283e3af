"""Read how long tests took before, from a report in any format of Nightjar or from the bot's API."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from nightjar_formats.strict_json import read_json
from nightjar_lab.pytest import run_texts as texts

MOST_BYTES = 256 << 20
MOST_PAGES = 20
"""The most pages that are read from the API, which lists the 1,000 slowest tests, 100 on a page."""
TIMEOUT = 10.0
PAUSES = (0.2, 0.8)
"""Seconds before the second and the third try."""
AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
TOKEN = "NIGHTJAR_TOKEN"  # noqa: S105  # the variable's name


class KnownDuration(NamedTuple):
    """The duration of a test in seconds, and how many of its last `runs` runs failed, if that is known."""

    seconds: float
    failed: int | None = None
    runs: int | None = None


class DurationsUnavailable(Exception):
    """The durations could not be read; the text is the reason."""


def durations_from(source: str, environment: Mapping[str, str] = os.environ) -> dict[str, KnownDuration]:
    """Return durations by test ID, from a file or an http(s) address.

    Tests of JUnit XML have no ID; they stand under `classname.name`. Raises `DurationsUnavailable`.
    """
    try:
        if source.startswith(("http://", "https://")):
            durations = _of_address(source, environment)
        else:
            with Path(source).open("rb") as file:
                durations = _of_bytes(file.read(MOST_BYTES + 1), Path(source).name)[0]
    except OSError as error:
        raise DurationsUnavailable(error.strerror or type(error).__name__) from None
    if not durations:
        raise DurationsUnavailable(texts.DURATIONS_EMPTY)
    return durations


def _of_address(address: str, environment: Mapping[str, str]) -> dict[str, KnownDuration]:
    try:
        parts = urlsplit(address)
        token = environment.get(TOKEN, "") if _is_bot(parts.netloc, environment.get("NIGHTJAR_URL", "")) else ""
    except ValueError:
        raise DurationsUnavailable(texts.DURATIONS_BAD_ADDRESS) from None
    durations, pages = _of_bytes(_fetched(address, token), parts.path.rpartition("/")[2])
    for page in range(2, min(pages, MOST_PAGES) + 1):
        query = [(name, value) for name, value in parse_qsl(parts.query) if name != "page"]
        page_address = urlunsplit(parts._replace(query=urlencode([*query, ("page", str(page))])))
        page_durations, _ = _of_bytes(_fetched(page_address, token), "")
        durations.update(page_durations)
    return durations


def _is_bot(host: str, url: str) -> bool:
    """Say whether an address is the bot's own and encrypted: the token is sent to no other."""
    bot = urlsplit(url)
    return bool(host) and bot.netloc == host and bot.scheme == "https"


def _fetched(address: str, token: str) -> bytes:
    # Imported here, so that a run without an address imports no network modules.
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    from nightjar_lab.api import OPENER

    headers = {"Accept": "application/json, */*", **({"Authorization": f"Bearer {token}"} if token else {})}
    reason = ""
    for pause in (0.0, *PAUSES):
        time.sleep(pause)
        try:
            request = urllib.request.Request(address, headers=headers)  # noqa: S310  # http or https
            with OPENER.open(request, timeout=TIMEOUT) as answer:
                content: bytes = answer.read(MOST_BYTES + 1)
                return content
        except urllib.error.HTTPError as error:
            with error:
                if 300 <= error.code < 400:
                    raise DurationsUnavailable(texts.DURATIONS_REDIRECTED) from None
                reason = texts.DURATIONS_STATUS.format(status=error.code)
            if error.code not in AGAIN:
                break
        except ValueError:
            raise DurationsUnavailable(texts.DURATIONS_BAD_ADDRESS) from None
        except (OSError, HTTPException) as error:
            reason = str(getattr(error, "reason", "") or error) or type(error).__name__
    raise DurationsUnavailable(reason)


def _of_bytes(content: bytes, name: str) -> tuple[dict[str, KnownDuration], int]:
    """Return the durations of a file or an answer, and how many pages there are."""
    if len(content) > MOST_BYTES:
        raise DurationsUnavailable(texts.DURATIONS_TOO_LARGE.format(most=MOST_BYTES))
    answer = _json_object(content)
    if answer is not None and isinstance(answer.get("tests"), list) and "cut_offs" in answer:
        pages = answer.get("pages")
        return dict(_of_slow_page(answer["tests"])), pages if isinstance(pages, int) else 1
    return _of_report(content, name), 1


def _json_object(content: bytes) -> dict[str, Any] | None:
    try:
        value = read_json(content)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _of_slow_page(tests: list[Any]) -> Iterator[tuple[str, KnownDuration]]:
    for test in tests:
        if isinstance(test, dict) and isinstance(test.get("test"), str):
            seconds = _number(test.get("seconds"))
            if seconds is not None:
                failed, runs = _number(test.get("failed")), _number(test.get("runs"))
                has_rate = failed is not None and runs is not None
                yield (
                    test["test"],
                    KnownDuration(
                        seconds, int(failed or 0) if has_rate else None, int(runs or 0) if has_rate else None
                    ),
                )


def _number(value: object) -> float | None:
    """Return a finite number that is not negative."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf"):
        return float(value)
    return None


def _of_report(content: bytes, name: str) -> dict[str, KnownDuration]:
    from nightjar_formats.readers import read
    from nightjar_formats.refused import Refused

    durations: dict[str, KnownDuration] = {}
    try:
        for case in read(io.BytesIO(content), name or "report"):
            seconds = _number(case.seconds)
            if seconds is not None and str(case.status) != "skipped":
                test = case.nodeid or f"{case.classname}.{case.name}".lstrip(".")
                durations[test] = KnownDuration(seconds)
    except Refused as refused:
        raise DurationsUnavailable(str(refused)) from None
    return durations
