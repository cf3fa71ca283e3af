"""Stale reviews: remind the reviewers of pull requests without activity by a person, once per period.

Actions of bots, including this one, are no activity. Requested reviewers and people who have reviewed are reminded by a
new comment, because GitHub notifies nobody of an edit. Teams are reminded only if there are no people. Pull requests
without reviewers, drafts and locked conversations are skipped.

This differs from TVM's script on purpose. It reads every page, starts with the pull requests that have waited longest,
and stops at a limit. It compares people by id and ignores deleted accounts. A run that fails is reported (`nightjar
timer list`) instead of ending in `|| echo failed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.config.types import seconds
from bot.core.patterns import Pattern
from bot.github.limits.ranks import Rank, ranked
from bot.github.pull_heads import head_of
from bot.plan.handler import Context, Plan, Router
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.stale_reviews.config import STALE_REVIEWS
from handlers.stale_reviews.effects import Remind
from handlers.stale_reviews.open_pulls import OpenPull, moment, open_pulls
from handlers.stale_reviews.records import REMINDED_AT
from handlers.stale_reviews.texts import NONE_STALE, REMINDER, STALE, TO_AUTHOR

if TYPE_CHECKING:
    from handlers.stale_reviews.config import StaleReviews

NAME = "stale-reviews"
MOST_NAMES = 15
"""The most people that one reminder mentions: as many as GitHub accepts as reviewers."""

DRAFTS = (
    "https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/proposing-changes-to-your-work-with-"
    "pull-requests/changing-the-stage-of-a-pull-request#converting-a-pull-request-to-a-draft"
)

_LOGIN = Pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_TEAM = Pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}/[A-Za-z0-9_.-]{1,100}")
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60))

router = Router()


@dataclass(frozen=True, slots=True)
class StalePull:
    """A pull request without activity by a person: since when, and the time of the last reminder.

    Moments are in seconds since 1970; `reminded_at` 0: never.
    """

    pull: OpenPull
    since: float
    reminded_at: float = 0.0


@router.on(TIMER_EVENT.name, NAME, name=NAME, feature="stale_reviews")
async def remind(context: Context) -> Plan:
    """Read the open pull requests, and plan reminders for those that have waited longest."""
    config = context.config.of(STALE_REVIEWS)
    assert config is not None, "the handler runs only where the feature is on"
    current_time = moment_of(context.delivery.payload)
    with ranked(Rank.SWEEP):
        pulls = await open_pulls(context.github, context.repository.full_name)
    quiet = [
        await _stale_pull(context, pull) for pull in pulls if current_time - pull.active_at >= seconds(config.after)
    ]
    return plan_reminders(quiet, config, current_time, len(pulls))


async def _stale_pull(context: Context, pull: OpenPull) -> StalePull:
    """Add the times of pushes from our own records: GitHub reports only when a pushed commit was created."""
    head = await head_of(context.records, context.repository.id, pull.number)
    pushed = moment(head.moved_at) if head and head.moved_at and not pull.pushed_by_bot else 0.0
    record = await context.records.get(REMINDED_AT.of(context.repository.id, pull.number))
    return StalePull(pull, max(pull.active_at, pushed), moment(record.at) if record else 0.0)


def plan_reminders(quiet: Sequence[StalePull], config: StaleReviews, current_time: float, count: int) -> Plan:
    """Plan reminders for the pull requests in `quiet`, those that have waited longest first.

    `current_time` is in seconds since 1970; `count` pull requests are open.
    """
    period = seconds(config.after)
    stale = [
        stale_pull
        for stale_pull in quiet
        if not (stale_pull.pull.is_draft or stale_pull.pull.is_locked)
        and current_time - max(stale_pull.since, stale_pull.reminded_at) >= period
        and reviewers(stale_pull.pull)
    ]
    stale.sort(key=lambda stale_pull: (stale_pull.since, stale_pull.pull.number))
    since = datetime.fromtimestamp(current_time - period, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    effects = tuple(
        Remind(stale_pull.pull.number, reminder_text(stale_pull, current_time), since)
        for stale_pull in stale[: config.limit]
    )
    reason = (
        STALE.format(stale=len(stale), count=count, reminded=len(effects)) if stale else NONE_STALE.format(count=count)
    )
    return Plan(effects, why=reason)


def reviewers(pull: OpenPull) -> tuple[str, ...]:
    """Return the people to remind, as `@` mentions: never the author, a bot or anybody twice; `MOST_NAMES` at most."""
    author = pull.author.id if pull.author and not pull.author.is_bot else 0
    # By ID: TVM's script compared logins case-sensitively, and reminded authors of their own pull requests.
    people = {
        person.id: person.login
        for person in (*pull.requested, *pull.reviewed)
        if not person.is_bot and person.id != author
    }
    named = [login for login in people.values() if _LOGIN.fullmatch(login)]
    teams = [team for team in dict.fromkeys(pull.teams) if _TEAM.fullmatch(team)]
    return tuple(f"@{name}" for name in (named or teams)[:MOST_NAMES])


def reminder_text(stale_pull: StalePull, current_time: float) -> str:
    """Return the text of a reminder."""
    reminder = REMINDER.format(
        waited=_duration_in_words(current_time - stale_pull.since), names=_joined_names(reviewers(stale_pull.pull))
    )
    author = stale_pull.pull.author
    if author is None or author.is_bot or not _LOGIN.fullmatch(author.login):
        return reminder
    return reminder + TO_AUTHOR.format(author=f"@{author.login}", drafts=DRAFTS)


def _duration_in_words(passed: float) -> str:
    """Return a duration in words, as in `8 days`: in the largest unit of which it has at least two."""
    name, unit = next(((name, unit) for name, unit in _UNITS if passed >= 2 * unit), _UNITS[-1])
    return f"{int(passed // unit)} {name}"


def _joined_names(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
