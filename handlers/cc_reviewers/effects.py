"""Review requests, and the section of the sticky comment about those that failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from bot.core.events import Payload
from bot.effects.comments import write_section
from bot.effects.reviews import REQUESTED, RefusedNames, request_reviews, slug_of
from bot.github.access import ISSUES, MEMBERS, PULL_REQUESTS, WritePermissions
from bot.github.addresses import pull_on_github
from bot.github.text.markdown import code
from bot.plan.effect import Applied, EffectContext
from handlers.cc_reviewers import texts
from handlers.cc_reviewers.records import REVIEWERS, ReviewRequests


@dataclass(frozen=True, slots=True)
class RequestReviewers:
    """Ask people and teams (`org/team`) to review, all in one request.

    GitHub refuses a whole request if it does not accept one name (422); then we request each name separately.
    https://docs.github.com/en/rest/pulls/review-requests
    """

    permissions: ClassVar[WritePermissions] = frozenset({MEMBERS, PULL_REQUESTS})

    number: int
    users: tuple[str, ...]
    teams: tuple[str, ...]
    named: tuple[str, ...]
    """Everybody that the text names, in lower case: a refused name that it no longer has is not reported."""

    @property
    def effect_key(self) -> str:
        """The pull request and who is asked."""
        return f"reviewers:{self.number}:{','.join((*self.users, *self.teams)).lower()}"

    async def apply(self, context: EffectContext) -> Applied:
        """Ask those who are not asked already; remember who was asked and who was refused."""
        accepted, answers = await self._request_missing(context) if self.users or self.teams else ([], RefusedNames())
        refused = list(answers.names)
        # The record after the requests: after a crash in between, a retry finds on GitHub who was asked.
        record = REVIEWERS.of(context.repository.id, self.number)
        stored = await context.records.get(record) or ReviewRequests()
        requested = {name.lower() for name in (*self.users, *self.teams)}
        still_refused = [
            name for name in stored.refused if name.lower() in self.named and name.lower() not in requested
        ]
        unasked = tuple(sorted([*still_refused, *refused], key=str.lower))
        hidden = tuple(
            name for name in unasked if name in answers.hidden or (name in still_refused and name in stored.hidden)
        )
        updated = ReviewRequests(stored.asked | requested, unasked, stored.message, hidden)
        if updated != stored:
            await context.records.put(record, updated)
        page = pull_on_github(self.number)
        if not accepted and not refused:
            return Applied(texts.NOBODY_ASKED, changed=updated != stored, page=page)
        return Applied(_summary(accepted, refused), page=page)

    async def _request_missing(self, context: EffectContext) -> tuple[list[str], RefusedNames]:
        """Return who was asked now and who was refused."""
        repo = context.repository.full_name
        url_vars = {"repo": repo, "number": str(self.number)}
        present = Payload(await context.github.getitem(REQUESTED, url_vars=url_vars), "requested reviewers")
        logins = {user.string("login").lower() for user in present.items("users")}
        slugs = {team.string("slug").lower() for team in present.items("teams")}
        owner = repo.partition("/")[0].lower()
        # The request has only the team's name, so GitHub would ask our own team instead of another organization's.
        foreign = [name for name in self.teams if name.partition("/")[0].lower() != owner]
        users = [name for name in self.users if name.lower() not in logins]
        teams = [name for name in self.teams if name not in foreign and slug_of(name).lower() not in slugs]
        answers = await request_reviews(context.github, url_vars, users, teams)
        refused = replace(answers, names=(*foreign, *answers.names))
        return [name for name in (*users, *teams) if name not in refused.names], refused


@dataclass(frozen=True, slots=True)
class ReportReviewers:
    """Say in the sticky comment who could not be asked, or why; an empty text removes the section."""

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    number: int
    section: str
    text: str

    @property
    def effect_key(self) -> str:
        """The section."""
        return f"tell-of-reviewers:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Write, change or remove the section, unless it is up to date."""
        record = REVIEWERS.of(context.repository.id, self.number)
        stored = await context.records.get(record) or ReviewRequests()
        if self.text == stored.message and not context.writes.may_have_twins:
            return Applied(texts.SECTION_SAME, changed=False, page=pull_on_github(self.number))
        applied = await write_section(context, self.number, self.section, self.text)
        await context.records.put(record, replace(stored, message=self.text))
        return applied


def reviewers_refused_text(names: Sequence[str], hidden: Sequence[str] = ()) -> str:
    """Return a text that says who could not be asked and why, without mentions; empty if there is nobody."""
    refused = [name for name in names if name not in hidden]
    parts = ((texts.REFUSED, refused), (texts.HIDDEN, hidden))
    return "\n\n".join(text.format(names=", ".join(map(code, listed))) for text, listed in parts if listed)


def _summary(accepted: Iterable[str], refused: Iterable[str]) -> str:
    parts = [("asked", ", ".join(accepted)), ("refused:", ", ".join(refused))]
    return "; ".join(f"{label} {names}" for label, names in parts if names)
