"""Whether somebody waits for what comes of a delivery: such a one goes before those that are only noted. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

ASKED_OF_A_CHECK = frozenset({"rerequested", "requested_action"})
"""Actions of `check_run` and `check_suite` that somebody causes by a button."""

TEXTS = {
    "issue_comment": "comment",
    "pull_request_review": "review",
    "pull_request_review_comment": "comment",
    "pull_request": "pull_request",
}
"""Events whose text may hold a command, and where in the payload it stands."""


def is_urgent(event: str, payload: Mapping[str, Any], mentions: Sequence[str]) -> bool:
    """Say whether a delivery is a request of a person: a button of a check, or a text that mentions us.

    A text with a mention may still hold no command: whether it does is decided when it is handled.
    """
    if event in ("check_run", "check_suite"):
        return payload.get("action") in ASKED_OF_A_CHECK
    where = payload.get(TEXTS[event]) if event in TEXTS else None
    text = where.get("body") if isinstance(where, Mapping) else None
    if not isinstance(text, str):
        return False
    lowered = text.lower()
    return any(mention.lower() in lowered for mention in mentions)
