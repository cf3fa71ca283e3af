"""Effects for the sections of the sticky comment that show a commit: request, write, and mark as out of date."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from bot.effects import texts
from bot.effects.comments import change_sections
from bot.effects.section_state import (
    SECTION,
    SECTION_EVENT,
    SECTION_TEXT,
    SectionEvent,
    SectionState,
    SectionText,
    with_mark,
)
from bot.github.access import ISSUES, WritePermissions
from bot.github.addresses import pull_on_github
from bot.github.pull_heads import confirmed_head, head_of
from bot.github.text import sticky
from bot.plan.effect import Applied, EffectContext, StoreContext, StoredEffect


@dataclass(frozen=True, slots=True)
class RequestSection(StoredEffect):
    """Request the computation of a section of a pull request's sticky comment, under a lock of its own.

    `about` has the data that its handler needs, as small JSON values.
    """

    section: str
    number: int
    sha: str
    about: Mapping[str, Any]

    @property
    def effect_key(self) -> str:
        """The pull request's section."""
        return f"ask:{self.number}:{self.section}"

    async def store(self, context: StoreContext) -> Applied:
        """Announce the request, once for each intent."""
        event = SectionEvent(self.section, self.number, self.sha, self.about, _digest(context.intent))
        new = await context.changes.announce(SECTION_EVENT, context.repository, event)
        return Applied(texts.SECTION_REQUESTED.format(section=self.section, sha=self.sha[:7]), changed=new)


@dataclass(frozen=True, slots=True)
class SubmitSection(StoredEffect):
    """Request that a section's text is written under the lock of its pull request; see `ShowSection`."""

    section: str
    number: int
    sha: str
    text: str
    as_of: float

    @property
    def effect_key(self) -> str:
        """The pull request's section."""
        return f"hand-over:{self.number}:{self.section}"

    async def store(self, context: StoreContext) -> Applied:
        """Announce the request, once for each text of an intent."""
        request_id = _digest(f"{context.intent}\0{self.text}")
        event = SectionText(self.section, self.number, self.sha, self.text, self.as_of, request_id)
        new = await context.changes.announce(SECTION_TEXT, context.repository, event)
        return Applied(texts.SECTION_SUBMITTED.format(section=self.section, sha=self.sha[:7]), changed=new)


@dataclass(frozen=True, slots=True)
class ShowSection:
    """Write a section about a commit, if the commit is still the head; an empty text removes the section.

    `as_of` is when its plan began, in seconds since 1970, so that a late retry never replaces newer content.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    section: str
    number: int
    sha: str
    text: str
    as_of: float

    @property
    def effect_key(self) -> str:
        """The pull request's section."""
        return f"section:{self.number}:{self.section}"

    async def apply(self, context: EffectContext) -> Applied:
        """Compare with the stored state, and send a request to GitHub only if it differs."""
        key = SECTION.of(context.repository.id, self.number, self.section)
        stored = await context.records.get(key)
        names = {"section": self.section, "sha": self.sha[:7], "number": self.number}
        pull = pull_on_github(self.number)
        if await confirmed_head(context.records, context.github, context.repository, self.number, self.sha) is None:
            return Applied(texts.SECTION_MOVED.format(**names), changed=False, page=pull)
        if stored is not None and stored.as_of > self.as_of:
            return Applied(texts.SECTION_NEWER.format(**names), changed=False, page=pull)
        updated = SectionState(self.sha, self.as_of, _digest(self.text))
        state = SectionState("", 0.0, "") if stored is None else stored
        is_same = (state.digest, state.head) == (updated.digest, "") and (state.sha == self.sha or not self.text)
        # A twin from an earlier try is not in our records; only GitHub's list shows it.
        if is_same and not context.writes.may_have_twins:
            return Applied(texts.SECTION_SAME.format(**names), changed=False, page=pull)
        _, page = await change_sections(
            context, self.number, lambda present: sticky.with_section(present, self.section, self.text)
        )
        # Store this after writing the comment: after a crash in between, the next try must write the comment again.
        await context.records.put(key, updated)
        text = texts.SECTION_WRITTEN if self.text else texts.SECTION_REMOVED
        return Applied(text.format(**names), page=page)


@dataclass(frozen=True, slots=True)
class MarkOutOfDate:
    """Mark each of these sections that shows a commit other than the head, in one write.

    No request is sent to GitHub if all marks are right already.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    number: int
    sections: tuple[str, ...]

    @property
    def effect_key(self) -> str:
        """The pull request."""
        return f"out-of-date:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Mark sections by our current record of the head, which may be newer than the plan."""
        head = await head_of(context.records, context.repository.id, self.number)
        states = {
            section: await context.records.get(SECTION.of(context.repository.id, self.number, section))
            for section in self.sections
        }
        outdated = {
            section: replace(state, head=state.mark(head.sha))
            for section, state in states.items()
            if state is not None and head is not None and state.head != state.mark(head.sha)
        }
        if not outdated and not context.writes.may_have_twins:
            return Applied(texts.NO_SECTION_TO_MARK, changed=False, page=pull_on_github(self.number))
        changed, page = await change_sections(context, self.number, lambda present: _with_marks(present, outdated))
        for section, state in outdated.items():
            await context.records.put(SECTION.of(context.repository.id, self.number, section), state)
        return Applied(texts.SECTIONS_MARKED.format(sections=", ".join(outdated)), changed=changed, page=page)


def _with_marks(present: Mapping[str, str], outdated: Mapping[str, SectionState]) -> Mapping[str, str]:
    for section, state in outdated.items():
        present = sticky.with_section(present, section, with_mark(present.get(section, ""), state.sha, state.head))
    return present


def _digest(text: str) -> str:
    # A text may contain a lone surrogate, which strict UTF-8 refuses.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24] if text else ""
