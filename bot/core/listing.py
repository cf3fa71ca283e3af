"""Parts of sentences: numbers with their nouns, and lists and long names, cut where they are too long to read."""

from __future__ import annotations

from collections.abc import Sequence

MORE = "and {count:,} more"


def listed(items: Sequence[str], most: int, count: int | None = None) -> str:
    """Join at most `most` items by commas, then add how many more there are: `a, b and 3 more`.

    `count` is the number of all items, if `items` are only the first ones.
    """
    first_items = items[:most]
    remaining = (len(items) if count is None else count) - len(first_items)
    return ", ".join(first_items) + (f" {MORE.format(count=remaining)}" if remaining > 0 else "")


def middle_cut(text: str, limit: int) -> str:
    """Return at most `limit` characters. Of a long test ID both ends matter: the file and the parameters."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}…{text[head + 1 - limit :]}"


def counted(number: int, singular: str, plural: str = "") -> str:
    """Return `1 new failure` or `1,267 new failures`; `plural` is the singular with an s, unless it is given."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
