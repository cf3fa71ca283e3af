"""Pagination: the page size, wrapped lists, and a limit that raises an error."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from gidgethub import sansio

from bot.core.errors import AnswerError

if TYPE_CHECKING:
    from bot.github.errors import Answer

PER_PAGE = 100  # GitHub's maximum; its default is 30
MOST_LINKS = 16  # GitHub sends four: first, prev, next, last
MAX_PAGES = 100  # 10,000 items; a caller with a longer list must narrow its request


def with_page_size(url: str) -> str:
    """Return the URL with the largest page size, unless it names a size itself."""
    if "per_page=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}per_page={PER_PAGE}"


def may_have_grown(url: str, page: Answer) -> bool:
    """Return whether a cached page of a list may have a next page by now: it is full, and was the last one.

    A 304 without `Link` doesn't say whether the list has grown behind it.
    """
    if 'rel="next"' in page.headers.get("link", ""):
        return False
    size = dict(parse_qsl(urlsplit(url).query)).get("per_page", "")
    body = page.json()
    lists = body.values() if isinstance(body, Mapping) else (body,)
    # An address of GitHub's own may name no size: then any page may be full.
    return any(isinstance(items, list) and len(items) >= (int(size) if size.isdecimal() else 1) for items in lists)


def next_page(headers: Mapping[str, str], route: str) -> str | None:
    """Return the address of the next page, None after the last one; raise `AnswerError` if `Link` has too many links.

    gidgethub searches for the next page from every `<`: thousands of them would block the event loop.
    """
    link = headers.get("link", "")
    if link.count("<") > MOST_LINKS:
        raise AnswerError(f"GET {route}", "it has more links than GitHub sends")
    return sansio.decipher_response(HTTPStatus.OK, {"link": link}, b"")[2]


def items_of(data: Any, iterable_key: str | None, route: str) -> list[Any]:
    """Return the items of one page: a list, or the one list of `{"total_count": 2, "check_runs": [...]}`.

    Raises `AnswerError` if it is not clear which list is meant.
    """
    if data is None:  # 204: GitHub's answer for some empty lists
        return []
    if isinstance(data, Mapping):
        if iterable_key in data:
            data = data[iterable_key]
        else:
            lists = [value for value in data.values() if isinstance(value, list)]
            data = lists[0] if len(lists) == 1 else data
    if not isinstance(data, list):
        reason = f"the page is no list: pass iterable_key, the name under which it has one, not {iterable_key!r}"
        raise AnswerError(f"GET {route}", reason)
    return data
