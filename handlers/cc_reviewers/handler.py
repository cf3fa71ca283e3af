"""`cc @octocat` in a pull request's text asks octocat for a review.

The predecessor looked at the first page of reviews only, failed on the author's own name, asked again whoever a human
had removed, and read `cc` out of code and comments; see `bot.github.mentions` for what counts as a `cc` here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.core.events import PullRequestEvent
from bot.core.payload import Payload
from bot.core.run_in_thread import run_in_thread
from bot.github.mentions import Ccs, parse_ccs
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, ConcludeStage, Context, Plan, Router
from bot.plan.outcome import Outcomes
from handlers.cc_reviewers.effects import (
    REVIEWERS,
    TROUBLE,
    ReportReviewers,
    RequestReviewers,
    ReviewRequests,
    refusal_text,
)

if TYPE_CHECKING:
    from bot.github.client import GitHub

NAME = "cc-reviewers"
MOST = 15
"""GitHub takes this many reviewers for a pull request."""

router = Router()


@dataclass(frozen=True, slots=True)
class KnownReviewers:
    """What is known of a pull request's reviewers; all names in small letters, teams as `org/team`."""

    author: str
    asked_before: Collection[str]
    reviewed: Collection[str]
    mentions: Collection[str] = ()
    """By which names the bot is called, without their `@`: somebody may have the same, and is not meant."""


def decide_reviewers(ccs: Ccs, known: KnownReviewers) -> Ccs:
    """Return whom to ask: never the author or the bot, nobody asked before or who has reviewed, at most `MOST`."""
    taken = {known.author, *known.asked_before, *known.reviewed, *known.mentions}
    users = tuple(name for name in ccs.users if name.lower() not in taken)[:MOST]
    teams = tuple(name for name in ccs.teams if name.lower() not in taken)[: MOST - len(users)]
    return Ccs(users=users, teams=teams)


async def report_failure(context: Context, message: str) -> Plan:
    """Show in the section of the sticky comment that nobody could be asked, and why."""
    number = PullRequestEvent.of(context.delivery.payload).pull.number
    report = ReportReviewers(number, NAME, TROUBLE.format(why=message))
    return Plan((report,), why="whom to ask could not be found out")


async def report_refusals(context: Context, number: int, outcomes: Outcomes) -> Plan:
    """Say in the sticky comment who could not be asked, or why asking failed; nothing where all went well."""
    asked = await context.records.get(REVIEWERS.of(context.repository.id, number)) or ReviewRequests()
    text = decide_reviewers_report(asked, [one.text for one in outcomes.failures])
    if text == asked.message:
        return Plan(why="the sticky comment says so already")
    return Plan((ReportReviewers(number, NAME, text),), why="the sticky comment says who could not be asked")


def decide_reviewers_report(asked: ReviewRequests, failures: Sequence[str]) -> str:
    """Return what the sticky comment says once all asking has ended, by why some of it failed."""
    if failures:
        return TROUBLE.format(why=" ".join(failures))
    return refusal_text(asked.refused, asked.hidden)


@router.on(
    "pull_request",
    *("opened", "reopened", "edited", "synchronize", "ready_for_review"),
    name=NAME,
    feature="cc_reviewers",
    on_failure=report_failure,
    conclude=ConcludeStage(int, report_refusals),
)
async def request_reviewers(context: Context) -> Plan:
    """Ask those whom the pull request's text names and who were not asked yet.

    Who was refused is asked again when the text is edited: by then they may have been given access.
    """
    event = PullRequestEvent.of(context.delivery.payload)
    if not event.pull.is_open:
        return NOTHING
    ccs = await run_in_thread(partial(parse_ccs, event.pull.body), event.pull.body)
    before = await context.records.get(REVIEWERS.of(context.repository.id, event.pull.number)) or ReviewRequests()
    refused = {name.lower() for name in before.refused}
    # An edit of the title alone tells nothing new about the names.
    again = refused if event.old_body is not None else frozenset()
    mentions = [mention.removeprefix("@").lower() for mention in context.app_config.mentions]
    asked = decide_reviewers(ccs, KnownReviewers(event.pull.author.login.lower(), before.asked - again, (), mentions))
    # Whether anybody is left is known without asking GitHub; who has reviewed costs a request.
    if asked.users:
        reviewed = await _reviewers(context.github, context.repository.full_name, event.pull.number)
        asked = decide_reviewers(asked, KnownReviewers("", (), reviewed))
    named = tuple(name.lower() for name in (*ccs.users, *ccs.teams))
    removed = not refused <= set(named)
    if asked.users or asked.teams or removed:
        effect: Effect = RequestReviewers(event.pull.number, asked.users, asked.teams, named)
        return Plan((effect,), why=f"cc in the text of #{event.pull.number}", conclusion_basis=event.pull.number)
    if before.message != refusal_text(before.refused):
        return Plan(why="what was in the way is over", conclusion_basis=event.pull.number)
    return Plan(why="nobody is left to be asked")


async def _reviewers(github: GitHub, repository: str, number: int) -> set[str]:
    """Return who has reviewed, in small letters; deleted accounts ("ghosts") are nobody."""
    url_vars = {"repo": repository, "number": str(number)}
    found = set()
    async for item in github.getiter("/repos/{+repo}/pulls/{number}/reviews", url_vars=url_vars):
        review = Payload(item)
        if review.has("user", "login"):
            found.add(review.string("user", "login").lower())
    return found
