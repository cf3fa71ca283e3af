"""Sections of the sticky comment that tell of one commit: announced, remembered, and marked when a push outdates them.

What tells of a commit (a status, a workflow run, a lab's results) is in order with that commit and not with its pull
request, and two sections that are written at once lose what the other has to say. So each text is handed over to a
delivery of our own, in order with everything else of the pull request. What takes long to compute has a delivery of its
own before that, in order with itself alone: meanwhile nobody's command waits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.core.payload import Json, Payload
from bot.engine.records import Record
from bot.github.markdown import code

if TYPE_CHECKING:
    from bot.core.events import Repository

SECTION_DUE, SECTION_TEXT = "nightjar.section", "nightjar.section-text"
"""A section is to be computed, or its text to be written; the action is its name. GitHub's events have no dot: nobody
can send one."""

OUT_OF_DATE = "> **Out of date:** "
"""How a section begins that tells of another commit than the head; none begins so by itself."""
OF_ANOTHER = "this is of {sha}; the head is {head} now."

SHOWN_SHA = 7
"""Digits of a commit that people see."""


@dataclass(frozen=True, slots=True)
class Due:
    """A section that is to be computed: of which pull request and commit, and what its handler wants to know then."""

    section: str
    number: int
    sha: str
    about: Payload

    @classmethod
    def of(cls, payload: Payload) -> Due:
        """Read it out of the payload of a delivery of ours."""
        return cls(*_named(payload), about=payload.at("section", "about"))


@dataclass(frozen=True, slots=True)
class Told:
    """A section's text, in Markdown, of a commit; empty where there is nothing to be told.

    `as_of` is of when it tells, in seconds since 1970.
    """

    section: str
    number: int
    sha: str
    text: str
    as_of: float

    @classmethod
    def of(cls, payload: Payload) -> Told:
        """Read it out of the payload of a delivery of ours."""
        told = payload.at("section")
        return cls(*_named(payload), text=told.string("text"), as_of=float(told.raw["as_of"]))


def _named(payload: Payload) -> tuple[str, int, str]:
    return payload.string("action"), payload.integer("pull_request", "number"), payload.string("section", "sha")


class Announcement(NamedTuple):
    """A delivery of our own, as the engine accepts it."""

    guid: str
    event: str
    body: str
    lock: str


def announce_due(repository: Repository, section: str, number: int, sha: str, about: Json, asked: str) -> Announcement:
    """Have a section computed, in order with itself; `asked` names who asked, the same for one wish."""
    lock = f"section:{repository.id}#{number}:{section}"
    body = _body(repository, section, number, {"sha": sha, "about": dict(about)})
    return Announcement(f"section:{repository.id}:{number}:{section}:{asked}", SECTION_DUE, body, lock)


def announce_text(repository: Repository, told: Told, asked: str) -> Announcement:
    """Have a section written, in order with everything else of its pull request."""
    body = _body(repository, told.section, told.number, {"sha": told.sha, "text": told.text, "as_of": told.as_of})
    guid = f"section-text:{repository.id}:{told.number}:{told.section}:{asked}"
    return Announcement(guid, SECTION_TEXT, body, f"pr:{repository.id}#{told.number}")


def _body(repository: Repository, section: str, number: int, more: Json) -> str:
    body: dict[str, Any] = {
        "action": section,
        "repository": {"id": repository.id, "full_name": repository.full_name},
        "pull_request": {"number": number},
        "section": dict(more),
    }
    if repository.installation_id is not None:
        body["installation"] = {"id": repository.installation_id}
    return json.dumps(body)


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
