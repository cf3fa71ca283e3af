"""Lists to their end: page size, wrapped lists, and a limit that is loud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PER_PAGE = 100  # GitHub's largest; its default is 30
MAX_PAGES = 100  # 10,000 items: a list that is longer is asked for in a narrower way


def with_page_size(url: str) -> str:
    """Return the URL asking for the largest pages, unless it names a size itself."""
    if "per_page=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}per_page={PER_PAGE}"


def items_of(data: Any, iterable_key: str | None) -> list[Any]:
    """Return the items of one page: a list, or the one list of `{"total_count": 2, "check_runs": [...]}`.

    Raises `TypeError` where it is not clear which list is meant.
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
        raise TypeError(
            f"the page is no list: pass iterable_key, the name under which it holds one, not {iterable_key!r}"
        )
    return data
