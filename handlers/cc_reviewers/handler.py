"""`cc @octocat` in a pull request's text asks octocat for a review.

The predecessor read only the first page of reviews, failed on the author's own name, asked people again whose request
somebody had removed, and read `cc` in code and HTML comments; see `bot.github.text.mentions` for what counts as a `cc`
here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from bot.core.events import Payload, PullRequestEvent
from bot.core.run_in_thread import run_in_thread
from bot.github.text.mentions import Ccs, parse_ccs
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, ConcludeStage, Context, Plan, Router
from bot.plan.outcome import EffectOutcomes
from handlers.cc_reviewers import texts
from handlers.cc_reviewers.effects import ReportReviewers, RequestReviewers, reviewers_refused_text
from handlers.cc_reviewers.records import REVIEWERS, ReviewRequests

if TYPE_CHECKING:
    from bot.github.client import GitHub

NAME = "cc-reviewers"
MOST = 15
"""GitHub accepts this many reviewers for a pull request."""

router = Router()


@dataclass(frozen=True, slots=True)
class KnownReviewers:
    """What we know about a pull request's reviewers; all names in lower case, teams as `org/team`."""

    author: str
    asked_before: Collection[str]
    reviewed: Collection[str]
    mentions: Collection[str] = ()
    """The names by which people call the bot, without `@`: they never mean an account with that name."""


def decide_reviewers(ccs: Ccs, pull_reviewers: KnownReviewers) -> Ccs:
    """Return the people to ask, at most `MOST`: not the author, the bot, or who was asked or has reviewed."""
    # If a request names the author, GitHub answers 422 and requests no review at all.
    # https://docs.github.com/rest/pulls/review-requests#request-reviewers-for-a-pull-request
    taken = {pull_reviewers.author, *pull_reviewers.asked_before, *pull_reviewers.reviewed, *pull_reviewers.mentions}
    users = tuple(name for name in ccs.users if name.lower() not in taken)[:MOST]
    teams = tuple(name for name in ccs.teams if name.lower() not in taken)[: MOST - len(users)]
    return Ccs(users=users, teams=teams)


async def report_failure(context: Context, message: str) -> Plan:
    """Say in the sticky comment that nobody could be asked, and why; nothing if the text names nobody."""
    pull = PullRequestEvent.of(context.delivery.payload).pull
    if await run_in_thread(partial(parse_ccs, pull.body), pull.body) == Ccs((), ()):
        return NOTHING
    report = ReportReviewers(pull.number, NAME, texts.FAILED.format(why=message))
    return Plan((report,), why=texts.NO_REVIEWER_FOUND)


async def report_refusals(context: Context, number: int, outcomes: EffectOutcomes) -> Plan:
    """Say in the sticky comment who could not be asked, or why asking failed; nothing if all went well."""
    requests = await context.records.get(REVIEWERS.of(context.repository.id, number)) or ReviewRequests()
    text = decide_reviewers_report(requests, [failure.text for failure in outcomes.failures])
    if text == requests.message:
        return Plan(why=texts.SECTION_SAME)
    return Plan((ReportReviewers(number, NAME, text),), why=texts.SHOWS_REFUSALS)


def decide_reviewers_report(requests: ReviewRequests, failures: Sequence[str]) -> str:
    """Return the section's text after all requests have ended; `failures` are the texts of failed effects."""
    if failures:
        return texts.FAILED.format(why=" ".join(failures))
    return reviewers_refused_text(requests.refused, requests.hidden)


@router.on(
    "pull_request",
    *("opened", "reopened", "edited", "synchronize", "ready_for_review"),
    name=NAME,
    feature="cc_reviewers",
    on_failure=report_failure,
    conclude=ConcludeStage(int, report_refusals),
)
async def request_reviewers(context: Context) -> Plan:
    """Request reviews from people and teams that the pull request's text names and that were not asked yet.

    Refused names are asked again when the text is edited: they may have access by then.
    """
    event = PullRequestEvent.of(context.delivery.payload)
    if not event.pull.is_open:
        return NOTHING
    ccs = await run_in_thread(partial(parse_ccs, event.pull.body), event.pull.body)
    stored = await context.records.get(REVIEWERS.of(context.repository.id, event.pull.number)) or ReviewRequests()
    refused = {name.lower() for name in stored.refused}
    # An edit of the title alone does not change the names.
    retried = refused if event.old_body is not None else frozenset()
    mentions = [mention.removeprefix("@").lower() for mention in context.app_config.mentions]
    chosen = decide_reviewers(
        ccs, KnownReviewers(event.pull.author.login.lower(), stored.asked - retried, (), mentions)
    )
    # Read the reviews only if somebody is left to ask: the list costs a request.
    if chosen.users:
        # GitHub removes people who have reviewed from the requested reviewers, so we would ask them again (TVM #10714).
        reviewed = await _people_who_reviewed(context.github, context.repository.full_name, event.pull.number)
        chosen = decide_reviewers(chosen, KnownReviewers("", (), reviewed))
    named = tuple(name.lower() for name in (*ccs.users, *ccs.teams))
    removed = not refused <= set(named)
    if chosen.users or chosen.teams or removed:
        effect: Effect = RequestReviewers(event.pull.number, chosen.users, chosen.teams, named)
        return Plan((effect,), why=texts.NAMED.format(number=event.pull.number), conclusion_basis=event.pull.number)
    if stored.message != reviewers_refused_text(stored.refused, stored.hidden):
        return Plan(why=texts.RECOVERED, conclusion_basis=event.pull.number)
    return Plan(why=texts.ALL_ASKED if named else texts.NOBODY_NAMED)


async def _people_who_reviewed(github: GitHub, repository: str, number: int) -> set[str]:
    """Return the logins that have reviewed, in lower case; ignore deleted accounts ("ghosts")."""
    url_vars = {"repo": repository, "number": str(number)}
    logins = set()
    async for item in github.getiter("/repos/{+repo}/pulls/{number}/reviews", url_vars=url_vars):
        review = Payload(item)
        if review.has("user", "login"):
            logins.add(review.string("user", "login").lower())
    return logins
