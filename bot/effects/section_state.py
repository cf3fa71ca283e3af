"""Sections of the sticky comment that tell of one commit: announced, remembered, and marked when a push outdates them.

What tells of a commit (a status, a workflow run, a lab's results) is in order with that commit and not with its pull
request, and two sections that are written at once lose what the other has to say. So each text is handed over to a
delivery of our own, in order with everything else of the pull request. What takes long to compute has a delivery of its
own before that, in order with itself alone: meanwhile nobody's command waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bot.engine.internal import InternalEvent
from bot.engine.records import Record
from bot.github.markdown import code

OUT_OF_DATE = "> **Out of date:** "
"""How a section begins that tells of another commit than the head; none begins so by itself."""
OF_ANOTHER = "this is of {sha}; the head is {head} now."

SHOWN_SHA = 7
"""Digits of a commit that people see."""


@dataclass(frozen=True, slots=True)
class SectionEvent:
    """A section that is to be computed: of which pull request and commit, and what its handler wants to know then.

    `asked` names who asked, the same for one request.
    """

    section: str
    number: int
    sha: str
    about: Mapping[str, Any]
    asked: str = ""


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section's text, in Markdown, of a commit; empty where there is nothing to be told.

    `as_of` is of when it tells, in seconds since 1970. `asked` names who asked, the same for one request.
    """

    section: str
    number: int
    sha: str
    text: str
    as_of: float
    asked: str = ""


SECTION_EVENT = InternalEvent(
    "nightjar.section",
    SectionEvent,
    guid=lambda repository, event: f"section:{repository}:{event.number}:{event.section}:{event.asked}",
    lock=lambda repository, event: f"section:{repository}#{event.number}:{event.section}",
    action=lambda event: event.section,
    number=lambda event: event.number,
)
"""A section is to be computed, in order with itself alone."""
SECTION_TEXT = InternalEvent(
    "nightjar.section-text",
    SectionText,
    guid=lambda repository, shown: f"section-text:{repository}:{shown.number}:{shown.section}:{shown.asked}",
    lock=lambda repository, shown: f"pr:{repository}#{shown.number}",
    action=lambda shown: shown.section,
    number=lambda shown: shown.number,
)
"""The text of a section is to be written, in order with everything else of its pull request."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What a section says, as we know it: of which commit, and of which moment (seconds since 1970).

    `digest` stands for its text, and is empty where it says nothing. `head` is the one that its mark names, empty where
    it has no mark.
    """

    sha: str
    as_of: float
    digest: str
    head: str = ""

    def mark(self, head: str) -> str:
        """Return the head that the section's mark has to name; empty where it needs none."""
        return head if self.digest and self.sha != head else ""


SECTION = Record("section", 1, Shown, "what a section of a pull request's sticky comment says", days=365)


def marked(text: str, sha: str, head: str) -> str:
    """Return a section's text, of the commit `sha`, with one mark that names the head, or with none if `head` is empty.

    An empty text, of a section that is gone, stays empty.
    """
    if text.startswith(OUT_OF_DATE):
        text = text.partition("\n")[2].lstrip("\n")
    if not text or not head:
        return text
    return f"{OUT_OF_DATE}{OF_ANOTHER.format(sha=short(sha), head=short(head))}\n\n{text}"


def short(sha: str) -> str:
    """Return the digits of a commit that people see, as code: GitHub makes no link of it, and a link to it is ours."""
    return code(sha[:SHOWN_SHA])


def moment(at: str | float) -> str:
    """Return a moment, in ISO 8601 or in seconds since 1970, as people read it."""
    seconds = seconds_since_1970(at) if isinstance(at, str) else at
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def seconds_since_1970(at: str) -> float:
    """Return a moment that GitHub tells in ISO 8601 as seconds; what is no moment is told as one long ago."""
    try:
        return datetime.fromisoformat(at).timestamp()
    except ValueError:
        return 0.0
