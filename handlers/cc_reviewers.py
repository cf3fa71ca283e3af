"""`cc @octocat` in a pull request's text asks octocat for a review.

The predecessor asked page one only, failed on the author's own name, asked again whoever a human had removed, and
read `cc` out of code and comments; see `bot.github.mentions` for what counts as a `cc` here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.effects.base import Effect
from bot.effects.reviewers import RequestReviewers
from bot.events import PullRequestEvent
from bot.github.mentions import Ccs, parse_ccs
from bot.payload import Payload
from bot.plan import NOTHING, Context, Plan, Router

if TYPE_CHECKING:
    from bot.github.client import GitHub

NAME = "cc-reviewers"
MOST = 15
"""GitHub takes this many reviewers for a pull request."""

router = Router()


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a pull request's reviewers; all names in small letters, teams as `org/team`."""

    author: str
    asked_before: Collection[str]
    reviewed: Collection[str]


def decide(ccs: Ccs, known: Known) -> Ccs:
    """Return whom to ask: never the author, nobody who was asked before or has reviewed, at most `MOST`."""
    taken = {known.author, *known.asked_before, *known.reviewed}
    users = tuple(name for name in ccs.users if name.lower() not in taken)[:MOST]
    teams = tuple(name for name in ccs.teams if name.lower() not in taken)[: MOST - len(users)]
    return Ccs(users=users, teams=teams)


@router.on(
    "pull_request",
    *("opened", "reopened", "edited", "synchronize", "ready_for_review"),
    name=NAME,
    feature="cc_reviewers",
)
async def request_reviewers(context: Context) -> Plan:
    """Ask those whom the pull request's text names and who were not asked yet."""
    event = PullRequestEvent.of(context.delivery.payload)
    ccs = parse_ccs(event.pull.body)
    if not event.pull.is_open or not (ccs.users or ccs.teams):
        return NOTHING
    record = f"cc-reviewers:{context.repository.id}#{event.pull.number}"
    remembered = await context.records.get(record) or {}
    known = Known(
        author=event.pull.author.login.lower(),
        asked_before={str(name).lower() for name in remembered.get("asked", ())},
        reviewed=(),
    )
    # Whether anybody is left is known without asking GitHub; who has reviewed costs a request.
    if decide(ccs, known) == Ccs(users=(), teams=()):
        return Plan(why="everybody named was asked before")
    reviewed = await _reviewers(context.github, context.repository.full_name, event.pull.number)
    asked = decide(ccs, Known(known.author, known.asked_before, reviewed))
    if not asked.users and not asked.teams:
        return Plan(why="everybody named has reviewed")
    effect: Effect = RequestReviewers(event.pull.number, asked.users, asked.teams, record=record, section=NAME)
    return Plan(effects=(effect,), why=f"cc in the text of #{event.pull.number}")


async def _reviewers(github: GitHub, repository: str, number: int) -> set[str]:
    """Return who has reviewed, in small letters; deleted accounts ("ghosts") are nobody."""
    url_vars = {"repo": repository, "number": str(number)}
    found = set()
    async for item in github.getiter("/repos/{+repo}/pulls/{number}/reviews", url_vars=url_vars):
        review = Payload(item)
        if review.has("user", "login"):
            found.add(review.string("user", "login").lower())
    return found
