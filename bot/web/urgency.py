"""Decide whether a person waits for the effect of a delivery: such deliveries are processed first. No I/O.

A text that does not mention the bot has no command (`bot.commands.grammar`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bot.core.events import JSON_OBJECT

BUTTON_ACTIONS = frozenset({"rerequested", "requested_action"})
"""Actions of `check_run` and `check_suite` that buttons on GitHub cause."""

TEXTS = {
    "issue_comment": "comment",
    "pull_request_review": "review",
    "pull_request_review_comment": "comment",
    "pull_request": "pull_request",
}
"""Events whose text may contain a command, and the payload's key of the text."""


def is_urgent(event: str, payload: Mapping[str, Any], mentions: Sequence[str]) -> bool:
    """Say whether a delivery is a request of a person: a button of a check, or a text that mentions us.

    A text with a mention may have no command: the handler finds that out.
    """
    if event in ("check_run", "check_suite"):
        return payload.get("action") in BUTTON_ACTIONS
    text = _text_of(event, payload)
    return text is not None and _is_mentioned(text, mentions)


def may_mention(event: str, payload: Mapping[str, Any], mentions: Sequence[str]) -> bool:
    """Say whether a delivery's text mentions us, or cannot be found where it should be."""
    text = _text_of(event, payload)
    return text is None or _is_mentioned(text, mentions)


def _text_of(event: str, payload: Mapping[str, Any]) -> str | None:
    text_holder = payload.get(TEXTS[event]) if event in TEXTS else None
    if not isinstance(text_holder, JSON_OBJECT) or "body" not in text_holder:
        return None
    # A review without text has null.
    text = text_holder["body"] or ""
    return text if isinstance(text, str) else None


def _is_mentioned(text: str, mentions: Sequence[str]) -> bool:
    lowered = text.lower()
    return any(_begins_a_word(mention.lower(), lowered) for mention in mentions)


def _begins_a_word(mention: str, text: str) -> bool:
    """Return whether a mention is in a text, and not only in the middle of an address, such as /ci in x.org/ci."""
    place = text.find(mention)
    while place > 0 and (text[place - 1].isalnum() or text[place - 1] in "/._-"):
        place = text.find(mention, place + 1)
    return place >= 0
