"""Review requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gidgethub import HTTPException

from bot.effects.base import Applied, EffectContext
from bot.effects.comments import UpsertSection
from bot.payload import Payload

REQUESTED = "/repos/{+repo}/pulls/{number}/requested_reviewers"


@dataclass(frozen=True, slots=True)
class RequestReviewers:
    """Ask people and teams (`org/team`) to review, all in one request.

    GitHub refuses a whole request for one name that it does not take (422); then each name is asked for on its own,
    and the section of the sticky comment says who could not be asked.
    https://docs.github.com/en/rest/pulls/review-requests
    """

    number: int
    users: tuple[str, ...]
    teams: tuple[str, ...]
    record: str
    """The key under which is remembered who was asked, so that nobody is asked again whom a human removed."""
    section: str

    @property
    def target(self) -> str:
        """The pull request and who is asked."""
        return f"reviewers:{self.number}:{','.join((*self.users, *self.teams)).lower()}"

    async def apply(self, context: EffectContext) -> Applied:
        """Ask those who are not asked already; remember who was asked and who was refused."""
        where = {"repo": context.repository.full_name, "number": str(self.number)}
        present = Payload(await context.github.getitem(REQUESTED, url_vars=where))
        asked = {user.string("login").lower() for user in present.items("users")}
        slugs = {team.string("slug").lower() for team in present.items("teams")}
        users = [name for name in self.users if name.lower() not in asked]
        teams = [name for name in self.teams if _slug(name).lower() not in slugs]
        refused = await _ask(context, where, users, teams)
        before = await context.records.get(self.record) or {}
        known = [*before.get("asked", ()), *(name.lower() for name in (*self.users, *self.teams))]
        unasked = sorted({*before.get("refused", ()), *refused}, key=str.lower)
        await context.records.put(self.record, {"asked": sorted(set(known)), "refused": unasked})
        then = (UpsertSection(self.number, self.section, refusal_text(unasked)),) if refused else ()
        done = [name for name in (*users, *teams) if name not in refused]
        if not done and not refused:
            return Applied("everybody was asked already", changed=False)
        return Applied(_summary(done, refused), then=then)


def refusal_text(names: Sequence[str]) -> str:
    """Say who could not be asked, without mentioning them."""
    if not names:
        return ""
    listed = ", ".join(f"`{name}`" for name in names)
    return (
        f"**Reviewers:** GitHub did not let me ask {listed}. Only people and teams with access to this repository "
        "can be asked for a review; is the name spelled right?"
    )


def _summary(done: Sequence[str], refused: Iterable[str]) -> str:
    parts = []
    if done:
        parts.append(f"asked {', '.join(done)}")
    if names := ", ".join(refused):
        parts.append(f"refused: {names}")
    return "; ".join(parts)


def _slug(team: str) -> str:
    return team.rpartition("/")[2]


async def _ask(context: EffectContext, where: dict[str, str], users: list[str], teams: list[str]) -> list[str]:
    """Ask for all; where GitHub refuses, for each alone. Return the names that were refused."""
    if not users and not teams:
        return []
    if await _accepted(context, where, users, teams):
        return []
    alone = [([name], list[str]()) for name in users] + [(list[str](), [name]) for name in teams]
    if len(alone) == 1:
        return [*users, *teams]
    return [(u or t)[0] for u, t in alone if not await _accepted(context, where, u, t)]


async def _accepted(context: EffectContext, where: dict[str, str], users: list[str], teams: list[str]) -> bool:
    body: dict[str, list[str]] = {}
    if users:
        body["reviewers"] = users
    if teams:
        body["team_reviewers"] = [_slug(name) for name in teams]
    try:
        await context.github.post(REQUESTED, url_vars=where, data=body)
    except HTTPException as error:
        if error.status_code == 422:
            return False
        raise
    return True
