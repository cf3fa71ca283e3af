"""News as text for GitHub, Discord and Slack: escaped, cut and counted by the rules of each place.

Titles, names, texts and addresses may come from outside. None of them can mention anybody, make a link other than to
its own http or https address, or break a limit; what does not fit is counted, as in "and 3 more".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

from bot.core.patterns import Pattern
from bot.core.urls import linkable
from bot.github.text.markdown import BREAK, TEXT_LIMIT, code, escape, plain, truncate
from bot.news.message import News, NewsItem
from bot.news.texts import DETAILS, MORE_ITEMS

GOOD, BAD = "✅", "❌"

LONGEST_TITLE, LONGEST_NAME, LONGEST_TEXT, LONGEST_NOTE = 200, 150, 250, 400
"""Characters before anything is escaped."""
MOST_ITEMS = 20
"""Items of one message; nobody reads a longer list in a channel."""

MARKDOWN_LIMIT, MARKDOWN_NOTES = TEXT_LIMIT - 8000, 16_000
"""Characters of items and notes together, and of notes; the rest is for the title and a comment's marker."""
DISCORD_LIMIT, DISCORD_NOTES = 4096, 1300
"""Characters of an embed's description, and of the notes in it.

https://docs.discord.com/developers/resources/message#embed-object-embed-limits
"""
SLACK_LIMIT, SLACK_NOTES = 3000, 900
"""Characters of one text in a block, and of the notes; Slack names no limit for rich text itself.

https://docs.slack.dev/reference/block-kit/composition-objects/text-object
"""
GREEN, RED = 0x1A7F37, 0xD1242F


def as_markdown(news: News) -> str:
    """Return news as GitHub's Markdown, short enough for a comment that has a marker as well."""

    def link(url: str) -> str:
        # Entities are read in addresses, too: https://spec.commonmark.org/0.31.2/#link-destination
        return f" ([{DETAILS}](<{url.replace('&', '&amp;')}>))" if url else ""

    news = _readable(news)
    notes = _fitting(map(escape, news.notes), MARKDOWN_NOTES)
    items = [f"- {_joined(item.name and code(item.name), escape(item.text))}{link(item.url)}" for item in news.items]
    fitting = _fitting(items, MARKDOWN_LIMIT - _size(notes))
    lines = "\n".join([*fitting, *(f"- {line}" for line in _more(news, len(fitting)))])
    return "\n\n".join(filter(None, [f"{_mark(news)} **{escape(news.title)}**{link(news.url)}", lines, *notes]))


def as_discord(news: News) -> dict[str, Any]:
    """Return news as what is posted to a Discord webhook: a line that notifies, and the details in a box below it.

    https://docs.discord.com/developers/resources/webhook#execute-webhook
    """

    def link(url: str) -> str:
        return f" ([{DETAILS}](<{url}>))" if url else ""  # Discord shows no preview of a link within < and >

    news = _readable(news)
    notes = _fitting(map(_discord, news.notes), DISCORD_NOTES)
    items = [
        f"- {_joined(item.name and f'**{_discord(item.name)}**', _discord(item.text))}{link(item.url)}"
        for item in news.items
    ]
    fitting = _fitting(items, DISCORD_LIMIT - _size(notes))
    lines = "\n".join([*fitting, *(f"- {line}" for line in _more(news, len(fitting)))])
    box = "\n\n".join(filter(None, [lines, *notes]))
    return {
        "content": f"{_mark(news)} **{_discord(news.title)}**{link(news.url)}",
        "embeds": [{"description": box, "color": GREEN if news.good else RED}] if box else [],
        "allowed_mentions": {"parse": []},  # Discord notifies nobody, whatever the text holds
    }


def as_slack(news: News) -> dict[str, Any]:
    """Return news as what is posted to a Slack incoming webhook: rich text, and its first line for notifications.

    In rich text Slack reads no markup: links and mentions are elements of their own.
    https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks,
    https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
    """
    news = _readable(news)
    title = f"{_mark(news)} {_inert(news.title)}"
    notes = _fitting(map(_inert, news.notes), SLACK_NOTES)
    items = [f"{_joined(_inert(item.name), _inert(item.text))} ({DETAILS}) {item.url}" for item in news.items]
    fitting = _fitting(items, SLACK_LIMIT - _size(notes))
    listed = [_section(_inert(item.name), _inert(item.text), item.url) for item in news.items[: len(fitting)]]
    listed += [_section("", line) for line in _more(news, len(fitting))]
    details = [{"type": "rich_text_list", "style": "bullet", "elements": listed}] if listed else []
    details += [_section("", "\n".join(notes))] if notes else []
    blocks = [[_section(title, "", news.url)], details]
    return {
        "text": title.translate(_SLACK_ENTITIES),
        "blocks": [{"type": "rich_text", "elements": elements} for elements in blocks if elements],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _readable(news: News) -> News:
    """Return news cut to a readable length, without addresses that cannot be linked and without empty items."""
    items = [
        NewsItem(_cut(item.name, LONGEST_NAME), _cut(item.text, LONGEST_TEXT), linkable(item.url))
        for item in news.items
    ]
    items_with_text = [item for item in items if item.name or item.text]
    return News(
        title=_cut(news.title, LONGEST_TITLE),
        items=tuple(items_with_text[:MOST_ITEMS]),
        more=news.more + len(items_with_text[MOST_ITEMS:]),
        url=linkable(news.url),
        notes=tuple(note for note in (_cut(note, LONGEST_NOTE) for note in news.notes) if note),
        good=news.good,
    )


def _cut(text: str, limit: int) -> str:
    return truncate(text, limit) if plain(text) else ""


def _mark(news: News) -> str:
    return GOOD if news.good else BAD


def _joined(name: str, text: str) -> str:
    return ": ".join(filter(None, (name, text)))


def _more(news: News, fitting: int) -> list[str]:
    left_out = news.more + len(news.items) - fitting
    return [MORE_ITEMS.format(count=left_out)] if left_out else []


def _fitting(texts: Iterable[str], room: int) -> list[str]:
    """Return the first texts that fit, with their line ends and a line about the rest."""
    all_texts = list(texts)
    # Reserve 20 characters for the number and the list mark.
    used = accumulate(map(_length, all_texts), initial=_length(MORE_ITEMS) + 20)
    return [text for text, used_before in zip(all_texts, used, strict=False) if used_before + _length(text) <= room]


def _size(texts: Sequence[str]) -> int:
    return sum(map(_length, texts))


def _length(text: str) -> int:
    """Count a line with its end as the clients do, in which an emoji is two characters."""
    return len(text.encode("utf-16-le", "replace")) // 2 + len("\n\n")


def _inert(text: str) -> str:
    """Return plain text without any markup: in one line, with control sequences broken."""
    return plain(text).replace("<", f"<{BREAK}")


_DISCORD_MARKUP = Pattern(r"[\\`*_~|<>\[\]#]|^[-+]|^\p{Nd}+\.")
_DISCORD_INVITE = Pattern(r"(discord)(\.gg|\.com|app\.com)", ignore_case=True)
"""Discord shows an invitation as such even without a scheme."""


def _discord(text: str) -> str:
    """Escape text for Discord's Markdown: a backslash escapes any character except letters, digits and spaces."""
    broken = _DISCORD_INVITE.sub(lambda match: f"{match[1]}{BREAK}{match[2]}", plain(text))
    return _DISCORD_MARKUP.sub(
        lambda match: f"{match[0][:-1]}{BREAK}." if match[0][0].isdigit() else f"\\{match[0]}", broken
    )


_SLACK_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""https://docs.slack.dev/messaging/formatting-message-text#escaping"""


def _section(name: str, text: str, url: str = "") -> dict[str, Any]:
    elements: list[dict[str, Any]] = []
    if name:
        elements.append({"type": "text", "text": name, "style": {"bold": True}})
    if text:
        elements.append({"type": "text", "text": f": {text}" if name else text})
    if url:
        elements += [{"type": "text", "text": " ("}, {"type": "link", "url": url, "text": DETAILS}]
        elements.append({"type": "text", "text": ")"})
    return {"type": "rich_text_section", "elements": elements}
