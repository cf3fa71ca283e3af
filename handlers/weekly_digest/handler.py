"""Write the digest of each lab once a week: each message has the key of its week."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.news.effects import IssueState, message_effects
from bot.news.render import as_markdown
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.results.compare.target_health import STALE_SECONDS
from bot.results.service import RESULTS
from bot.results.store.failures.failures import newest_messages
from bot.results.store.lists.flaky_tests import flaky_tests
from bot.results.store.lists.lab_reports import TargetActivity, activity_of_labs
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.lists.slow_tests import durations_of
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES
from handlers.weekly_digest import texts
from handlers.weekly_digest.config import DIGEST
from handlers.weekly_digest.decide import WEEK, LabWeek, SlowTestOnTarget, digest_of

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bot.config import RepositoryConfig

NAME = "weekly-digest"
LONGEST_FAILURE = 90 * 86400.0
"""Seconds: the recovery of an older failure is not in the digest."""
MOST_MESSAGES = 500
MOST_TESTS = 3
"""The most flaky and slow tests of a lab."""

router = Router()


@router.on(TIMER_EVENT.name, NAME, name=NAME, feature=DIGEST.name)
async def write_digests(context: Context) -> Plan:
    """Plan a message for each lab that has news of the week."""
    digest, labs = context.config.of(DIGEST), context.config.of(LAB_RESULTS)
    if digest is None or labs is None:
        return NOTHING
    moment, results = moment_of(context.delivery.payload), context.part(RESULTS)
    repository = results.canonical_name(context.repository.full_name)
    weeks = await results.read(read_weeks, repository, context.config, moment)
    # The timer announces each week once; this key holds if its day is changed in between, or an operator runs it again.
    week_number, effects, count = f"{datetime.fromtimestamp(moment, UTC):%G-W%V}", list[Effect](), 0
    for week in weeks:
        news = digest_of(week, (context.app_config.public_url or "").rstrip("/"))
        if news is None:
            continue
        count += 1
        issue = IssueState(
            f"digest:{week.lab}", texts.ISSUE_TITLE.format(lab=week.lab), as_markdown(news), as_of=moment
        )
        effects += message_effects(digest.to, f"digest:{week.lab}:{week_number}", news, issue)
    reason = texts.WHY.format(count=count, all=len(weeks)) if count else texts.NOTHING_HAPPENED
    return Plan(tuple(effects), why=reason)


def read_weeks(connection: sa.Connection, repository: str, settings: RepositoryConfig, moment: float) -> list[LabWeek]:
    """Read the week of each lab in app.yaml that ends at a moment, in seconds since 1970; it blocks."""
    results = settings.of(LAB_RESULTS)
    labs = results.labs if results else {}
    messages = newest_messages(connection, repository, moment - LONGEST_FAILURE, MOST_MESSAGES)
    tested_commits, activity = activity_of_labs(connection, [repository], moment - WEEK)
    tested = tested_commits[repository]
    late_shas = [sha for sha, committed_at in tested.items() if committed_at < moment - STALE_SECONDS]
    aliases, today = settings.of(RENAMES).aliases, f"{datetime.fromtimestamp(moment, UTC).date()}"
    weeks = []
    for name, lab in labs.items():
        names = [f"{name}/{target}" for target in lab.targets]
        flaky = [
            test
            for target in lab.targets
            for test in flaky_tests(
                connection,
                ListedTests(repository, (name, target), limit=MOST_TESTS, aliases=aliases),
                moment - WEEK,
            ).tests
        ]
        weeks.append(
            LabWeek(
                repository,
                name,
                moment,
                [
                    message
                    for message in messages
                    if message.target.lab == name and message.target.target in lab.targets
                ],
                {
                    f"{name}/{target}": _missing(activity.get(TargetKey(repository, name, target)), late_shas, tested)
                    for target in lab.targets
                },
                [
                    item
                    for item in settings.of(QUARANTINE)
                    if item.until >= today and (not item.targets or {*item.targets} & {*names})
                ],
                sorted(flaky, key=lambda test: (-test.proved, -test.failed))[:MOST_TESTS],
                _slowest(connection, [TargetKey(repository, name, target) for target in lab.targets], settings),
            )
        )
    return weeks


def _missing(activity: TargetActivity | None, late: Collection[str], tested: Mapping[str, float]) -> int:
    """Return how many nightly commits since the first one of a target have no result of it."""
    if activity is None or activity.first_commit_at is None:
        return 0
    first = activity.first_commit_at
    return sum(tested[sha] >= first and sha not in activity.commits for sha in late)


def _slowest(
    connection: sa.Connection, targets: Sequence[TargetKey], settings: RepositoryConfig
) -> list[SlowTestOnTarget]:
    slowest = [
        SlowTestOnTarget(target.full_name, test.test, test.seconds)
        for target in targets
        for test in durations_of(
            connection,
            ListedTests(target.repository, (target.lab, target.target), limit=1, aliases=settings.of(RENAMES).aliases),
        ).slowest
    ]
    return sorted(slowest, key=lambda slow: -slow.seconds)[:MOST_TESTS]
