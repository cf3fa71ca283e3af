"""The state of the sticky comment's sections: which commit each section shows, and the events that update it.

Deliveries about a commit (a status, a workflow run, a lab's results) are ordered by commit, not by pull request, and
two sections that are written at the same time would overwrite each other. So an internal event brings each text to the
queue of the pull request. A section that takes long to compute has another event before it, with a separate lock, so
that no command waits for the computation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.effects import texts
from bot.effects.section_words import short
from bot.engine.internal import InternalEvent
from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class SectionEvent:
    """A section that must be computed: its pull request, its commit, and the data for its handler.

    `asked` identifies the request. `about` has what the handler needs to compute the section.
    """

    section: str
    number: int
    sha: str
    about: Mapping[str, Any]
    asked: str = ""


@dataclass(frozen=True, slots=True)
class SectionText:
    """A section's text for a commit, in Markdown; empty to remove the section.

    `as_of` is the time of its content, in seconds since 1970. `asked` identifies the request, for all its tries.
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
"""A section must be computed, under a lock of its own."""
SECTION_TEXT = InternalEvent(
    "nightjar.section-text",
    SectionText,
    guid=lambda repository, section_text: (
        f"section-text:{repository}:{section_text.number}:{section_text.section}:{section_text.asked}"
    ),
    lock=lambda repository, section_text: f"pr:{repository}#{section_text.number}",
    action=lambda section_text: section_text.section,
    number=lambda section_text: section_text.number,
)
"""The text of a section must be written, under the lock of its pull request."""


@dataclass(frozen=True, slots=True)
class SectionState:
    """The stored state of a section: its commit, and the time of its content (seconds since 1970).

    `digest` is the digest of its text, empty without a text. `head` is the head in its mark, empty without a mark.
    """

    sha: str
    as_of: float
    digest: str
    head: str = ""

    def mark(self, head: str) -> str:
        """Return the head that the section's mark must name; empty if it needs no mark."""
        return head if self.digest and self.sha != head else ""


SECTION = Record("section", 1, SectionState, "what a section of a pull request's sticky comment says", days=365)


def with_mark(text: str, sha: str, head: str) -> str:
    """Return the text of a section of commit `sha` with one mark that names the head; without a mark for no `head`.

    An empty text, of a section that was removed, stays empty.
    """
    if text.startswith(texts.OUT_OF_DATE):
        text = text.partition("\n")[2].lstrip("\n")
    if not text or not head:
        return text
    return f"{texts.OUT_OF_DATE}{texts.OF_ANOTHER_COMMIT.format(sha=short(sha), head=short(head))}\n\n{text}"
