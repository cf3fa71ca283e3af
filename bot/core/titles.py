"""The tags of a title, as in `[hexagon][tests] Fix it`. Pure."""

from __future__ import annotations

from bot.core.patterns import Pattern

_BRACKETS = Pattern(r"\[([^\[\]]*)\]")


def tags_of(title: str) -> tuple[str, ...]:
    """Return the tags in a title's brackets, split at commas, as written: `[a, b][c] Fix` has `a`, `b` and `c`.

    Empty brackets have no tag. The predecessor read `[]` as a tag, and `[a, b]` as one (TVM #11454, #11455).
    """
    tags = (tag.strip() for match in _BRACKETS.finditer(title) for tag in match[1].split(","))
    return tuple(dict.fromkeys(tag for tag in tags if tag))


def folded(tag: str) -> str:
    """Return a tag in the form in which tags are compared: lower case, with single spaces."""
    return " ".join(tag.split()).casefold()
