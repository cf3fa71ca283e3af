"""The rules of Discord's and Slack's webhooks, from their documentation, and the text that people see of a message.

We are stricter in two ways: a message that could notify anybody is refused, and so is a key that no test needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

BREAK = "\N{ZERO WIDTH SPACE}"
NOT_AN_OBJECT = "not a JSON object"

CONTENT, DESCRIPTION, EMBEDS, MOST_EMBEDS = 2000, 4096, 6000, 10
"""Limits of characters and of items: https://docs.discord.com/developers/resources/message#embed-object-embed-limits"""
DISCORD_KEYS = frozenset({"content", "embeds", "allowed_mentions"})
EMBED_KEYS = frozenset({"description", "color"})

TEXT, BLOCK, MOST_BLOCKS = 4000, 3000, 50
"""Limits of characters and of items: https://docs.slack.dev/reference/block-kit/blocks"""
SLACK_KEYS = frozenset({"text", "blocks", "unfurl_links", "unfurl_media"})
MARKUP = re.compile(r"<[^>]*>")


def discord_faults(body: Any) -> list[str]:
    """Return what is wrong with the body of a request to a Discord webhook."""
    return list(_discord(body)) if isinstance(body, dict) else [NOT_AN_OBJECT]


def _discord(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown(body, DISCORD_KEYS)
    content, embeds = body.get("content") or "", body.get("embeds") or []
    if not content and not embeds:
        yield "an empty message"
    yield from _too_long("content", content, CONTENT)
    if len(embeds) > MOST_EMBEDS:
        yield f"{len(embeds)} embeds"
    for embed in embeds:
        yield from _unknown(embed, EMBED_KEYS)
        yield from _too_long("description", embed.get("description"), DESCRIPTION)
        if not 0 <= embed.get("color", 0) <= 0xFFFFFF:
            yield f"the color {embed['color']}"
    yield from _too_long("embeds", " ".join(embed.get("description", "") for embed in embeds), EMBEDS)
    if body.get("allowed_mentions") != {"parse": []}:
        yield "mentions would notify people"


def slack_faults(body: Any) -> list[str]:
    """Return what is wrong with the body of a request to a Slack incoming webhook."""
    return list(_slack(body)) if isinstance(body, dict) else [NOT_AN_OBJECT]


def _slack(body: Mapping[str, Any]) -> Iterator[str]:
    yield from _unknown(body, SLACK_KEYS)
    yield from _too_long("text", body.get("text"), TEXT)
    if markup := MARKUP.search(body.get("text") or ""):
        yield f"{markup[0]} in text would notify people or be a link"
    for key in ("unfurl_links", "unfurl_media"):
        if body.get(key) is not False:
            yield f"{key} is on"
    blocks = body.get("blocks") or []
    if len(blocks) > MOST_BLOCKS:
        yield f"{len(blocks)} blocks"
    for block in blocks:
        if block.get("type") != "rich_text":
            yield f"a block of type {block.get('type')}"
            continue
        yield from _elements(block)
        yield from _too_long("block", "".join(_lines(block)), BLOCK)


def _elements(block: Mapping[str, Any]) -> Iterator[str]:
    # https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
    elements = block.get("elements") or []
    if not elements:
        yield f"a {block.get('type')} without elements"
    for element in elements:
        match element:
            case {"type": "rich_text_section"} | {"type": "rich_text_list", "style": "bullet"}:
                yield from _elements(element)
            case {"type": "text", "text": str(text)} if text:
                pass
            case {"type": "link", "url": str(url), "text": str(text)} if text:
                if urlsplit(url).scheme not in ("http", "https"):
                    yield f"a link to {url}"
            case _:
                yield f"the element {element}"


def _unknown(sent: Mapping[str, Any], known_keys: frozenset[str]) -> Iterator[str]:
    yield from (f"an unknown key {key}" for key in sorted(sent.keys() - known_keys))


def _too_long(name: str, text: str | None, limit: int) -> Iterator[str]:
    # Counted as in JavaScript, where an emoji has a length of two.
    length = len((text or "").encode("utf-16-le")) // 2
    if length > limit:
        yield f"{name} of {length} characters"


def discord_text(body: Mapping[str, Any]) -> str:
    """Return the lines of a Discord message as people read them."""
    parts = [body.get("content") or "", *(embed["description"] for embed in body.get("embeds") or [])]
    text = re.sub(r"\[([^\]\\]*)\]\(<?[^)\s]*>?\)", r"\1", "\n".join(parts))
    text = re.sub(r"(?<!\\)\*\*", "", text)
    return _read(re.sub(r"\\([^0-9A-Za-z\s])", r"\1", text))


def slack_text(body: Mapping[str, Any]) -> str:
    """Return the lines of a Slack message as people read them."""
    return _read("\n".join(line for block in body["blocks"] for line in _lines(block)))


def _lines(block: Mapping[str, Any], start: str = "") -> Sequence[str]:
    lines: list[str] = []
    for element in block.get("elements") or []:
        if element.get("type") == "rich_text_section":
            lines.append(start + "".join(part.get("text", "") for part in element.get("elements") or []))
        else:
            lines += _lines(element, "- ")
    return lines


def _read(text: str) -> str:
    return "\n".join(line for line in text.replace(BREAK, "").splitlines() if line.strip())
