"""Format commits and times for the sections of the sticky comment.

Processes that read untrusted input import this, and nothing of the engine with it.
"""

from __future__ import annotations

from datetime import UTC, datetime

from bot.github.text.markdown import code

SHOWN_SHA = 7
"""Digits of a SHA that people see."""


def short(sha: str) -> str:
    """Return a short SHA as code, so that GitHub does not link it and we can add our own link."""
    return code(sha[:SHOWN_SHA])


def moment(time: str | float) -> str:
    """Format a time, given in ISO 8601 or in seconds since 1970, for people."""
    seconds = seconds_since_1970(time) if isinstance(time, str) else time
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def seconds_since_1970(text: str) -> float:
    """Convert one of GitHub's ISO 8601 times to seconds since 1970; return 0 for a text that is not a time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
