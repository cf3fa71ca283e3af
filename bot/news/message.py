"""What people are told when something has happened: the same news for a chat channel and for an issue."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Item:
    """One line of news. All of it is plain text, which may come from outside: each place escapes it in its own way.

    `name` is what it is about (a context, a test), `text` what happened, `url` where to look, empty for nowhere.
    """

    name: str
    text: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class News:
    """What is told at once: a title in one line, a line for each item, and how many `more` items are left out.

    All of it is plain text. `good`: something is well again, and nothing is wrong. `notes` are sentences below the
    items, such as whom to ask.
    """

    title: str
    items: tuple[Item, ...] = ()
    more: int = 0
    url: str = ""
    notes: tuple[str, ...] = ()
    good: bool = False
