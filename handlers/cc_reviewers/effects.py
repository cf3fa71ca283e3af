"""Review requests, and what the sticky comment says of those that came to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from bot.core.payload import Payload
from bot.effects.comments import write_section
from bot.engine.records import SORTED, Record
from bot.github.access import ISSUES, MEMBERS, PULL_REQUESTS, WritePermissions
from bot.github.errors import is_unprocessable, message_of
from bot.github.markdown import code
from bot.plan.effect import Applied, EffectContext

REQUESTED = "/repos/{+repo}/pulls/{number}/requested_reviewers"

REFUSED = (
    "**Reviewers:** I couldn't request a review from {names}: only people and teams with access to this repository "
    "can review. Check the name and edit the description; then I try again."
)
HIDDEN = (
    "**Reviewers:** I couldn't request a review from {names}: the App needs *Members: read* to see teams. The "
    "App's owner grants it in the App's settings; then an owner of the organization accepts it. I try again when "
    "the description is edited."
)
UNRESOLVED = "could not resolve to a node"
"""What GitHub says of a team that the App may not see (https://github.com/github/docs/issues/35057)."""
TROUBLE = "**Reviewers:** I couldn't request reviews. {why}"


@dataclass(frozen=True, slots=True)
class ReviewRequests:
    """What is remembered of a pull request's review requests; names in small letters, but for `refused`.

    `asked` holds everybody whom we dealt with, so that nobody is asked again whom a human removed; `refused` those of
    them whom GitHub did not take, `hidden` the teams among these that it does not show to the App; `message` is what
    the sticky comment says.
    """

    asked: Annotated[frozenset[str], SORTED] = frozenset()
    refused: tuple[str, ...] = ()
    message: str = ""
    hidden: tuple[str, ...] = ()


REVIEWERS = Record(
    "cc-reviewers", 1, ReviewRequests, "who was asked to review a pull request, and who was refused", days=365
)


@dataclass(frozen=True, slots=True)
class RequestReviewers:
    """Ask people and teams (`org/team`) to review, all in one request.

    GitHub refuses a whole request for one name that it does not take (422); then each name is asked for on its own.
    https://docs.github.com/en/rest/pulls/review-requests
    """

    permissions: ClassVar[WritePermissions] = frozenset({MEMBERS, PULL_REQUESTS})

    number: int
    users: tuple[str, ...]
    teams: tuple[str, ...]
    named: tuple[str, ...]
    """Everybody whom the text names, in small letters: who was refused and is no longer named needs no word."""

    @property
    def target(self) -> str:
        """The pull request and who is asked."""
        return f"reviewers:{self.number}:{','.join((*self.users, *self.teams)).lower()}"

    async def apply(self, context: EffectContext) -> Applied:
        """Ask those who are not asked already; remember who was asked and who was refused."""
        asked, answers = await self._ask(context) if self.users or self.teams else ([], _Refused())
        refused = list(answers.names)
        record = REVIEWERS.of(context.repository.id, self.number)
        before = await context.records.get(record) or ReviewRequests()
        now = {name.lower() for name in (*self.users, *self.teams)}
        still = [name for name in before.refused if name.lower() in self.named and name.lower() not in now]
        unasked = tuple(sorted([*still, *refused], key=str.lower))
        hidden = tuple(name for name in unasked if name in answers.hidden or (name in still and name in before.hidden))
        after = ReviewRequests(before.asked | now, unasked, before.message, hidden)
        if after != before:
            await context.records.put(record, after)
        if not asked and not refused:
            return Applied("nobody had to be asked", changed=after != before)
        return Applied(_summary(asked, refused))

    async def _ask(self, context: EffectContext) -> tuple[list[str], _Refused]:
        """Return who was asked now and who was refused."""
        repo = context.repository.full_name
        where = {"repo": repo, "number": str(self.number)}
        present = Payload(await context.github.getitem(REQUESTED, url_vars=where), "requested reviewers")
        there = {user.string("login").lower() for user in present.items("users")}
        slugs = {team.string("slug").lower() for team in present.items("teams")}
        owner = repo.partition("/")[0].lower()
        # GitHub is given the team's name alone, so another organization's team would be taken for one of ours.
        foreign = [name for name in self.teams if name.partition("/")[0].lower() != owner]
        users = [name for name in self.users if name.lower() not in there]
        teams = [name for name in self.teams if name not in foreign and _slug(name).lower() not in slugs]
        answers = await _refused(context, where, users, teams)
        refused = replace(answers, names=(*foreign, *answers.names))
        return [name for name in (*users, *teams) if name not in refused.names], refused


@dataclass(frozen=True, slots=True)
class ReportReviewers:
    """Say in the sticky comment who could not be asked, or why; an empty text takes the section away."""

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    number: int
    section: str
    text: str

    @property
    def target(self) -> str:
        """The section."""
        return f"tell-of-reviewers:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Write, change or take away the section, unless it says so already."""
        record = REVIEWERS.of(context.repository.id, self.number)
        before = await context.records.get(record) or ReviewRequests()
        if self.text == before.message and not context.writes.may_have_twins:
            return Applied("the sticky comment says so already", changed=False)
        applied = await write_section(context, self.number, self.section, self.text)
        await context.records.put(record, replace(before, message=self.text))
        return applied


def refusal_text(names: Sequence[str], hidden: Sequence[str] = ()) -> str:
    """Say who could not be asked, and why, without mentioning them; empty where there is nobody."""
    others = [name for name in names if name not in hidden]
    parts = ((REFUSED, others), (HIDDEN, hidden))
    return "\n\n".join(text.format(names=", ".join(map(code, who))) for text, who in parts if who)


def _summary(asked: Iterable[str], refused: Iterable[str]) -> str:
    parts = [("asked", ", ".join(asked)), ("refused:", ", ".join(refused))]
    return "; ".join(f"{what} {names}" for what, names in parts if names)


def _slug(team: str) -> str:
    return team.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class _Refused:
    """Who was refused, and which teams of them because the App may not see teams."""

    names: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset()


async def _refused(context: EffectContext, where: dict[str, str], users: list[str], teams: list[str]) -> _Refused:
    """Ask for all; where GitHub refuses, for each alone. Return the names that were refused."""
    if not users and not teams:
        return _Refused()
    said = await _asked(context, where, users, teams)
    if said is None:
        return _Refused()
    answers = {(*users, *teams)[0]: said}
    if len(users) + len(teams) > 1:
        answers = {name: await _asked(context, where, [name], []) or "" for name in users}
        answers |= {name: await _asked(context, where, [], [name]) or "" for name in teams}
    refused = {name: said for name, said in answers.items() if said}
    hidden = frozenset(name for name in teams if UNRESOLVED in refused.get(name, "").casefold())
    return _Refused(tuple(refused), hidden)


async def _asked(context: EffectContext, where: dict[str, str], users: list[str], teams: list[str]) -> str | None:
    """Ask for reviews; return what GitHub says where it refuses, None where it does not."""
    body: dict[str, list[str]] = {}
    if users:
        body["reviewers"] = users
    if teams:
        body["team_reviewers"] = [_slug(name) for name in teams]
    try:
        await context.github.post(REQUESTED, url_vars=where, data=body)
    except Exception as error:
        if is_unprocessable(error):
            return message_of(error) or REFUSED
        raise
    return None
