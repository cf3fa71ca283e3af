"""Lists in sentences, cut where they become too long to read."""

from __future__ import annotations

from collections.abc import Sequence

MORE = "and {count:,} more"


def listed(items: Sequence[str], most: int, count: int | None = None) -> str:
    """Join at most `most` items by commas, then say how many more there are.

    `count`: how many there are altogether, where `items` do not have all of them.
    """
    shown = items[:most]
    more = (len(items) if count is None else count) - len(shown)
    return ", ".join(shown) + (f" {MORE.format(count=more)}" if more > 0 else "")
