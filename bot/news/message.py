"""News about the state of a repository, the same for a chat channel and for an issue."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NewsItem:
    """One line of news: plain text that may come from outside, and that each place escapes in its own way.

    `name` is its subject (a context, a test), `text` what happened, `url` a link with details, or empty.
    """

    name: str
    text: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class News:
    """One message: a title in one line, a line for each item, and how many `more` items are left out.

    All of it is plain text. `good`: all failures have recovered. `notes` are sentences below the
    items, such as contacts.
    """

    title: str
    items: tuple[NewsItem, ...] = ()
    more: int = 0
    url: str = ""
    notes: tuple[str, ...] = ()
    good: bool = False
