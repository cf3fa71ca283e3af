"""Compose the digest of a lab. Pure.

A digest says what changed or needs somebody in this week: failures that were reported, recoveries, nightly commits
without a result, and quarantines that end in the next week. The flakiest and the slowest tests are context: they alone
are no news, so a quiet week has no digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.core.listing import counted
from bot.core.page_paths import history_path, lab_path
from bot.news.message import News, NewsItem
from bot.results.settings.quarantine import QuarantinedTest
from bot.results.store.failures.failures import RegressionMessage
from bot.results.store.lists.flaky_tests import FlakyTest
from bot.web.page_filters import duration
from handlers.weekly_digest import texts

WEEK_DAYS = 7
WEEK = WEEK_DAYS * 86400.0


@dataclass(frozen=True, slots=True)
class SlowTestOnTarget:
    """The slowest test of a target; `seconds` is its mean duration."""

    target: str
    test: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LabWeek:
    """A week of a lab, which ends at `moment` in seconds since 1970; targets are LAB/TARGET.

    `messages` are those about lasting failures that were reported or ended in it. `missing` has the number of nightly
    commits without a result, by target. `quarantined` are the active items for one of the lab's targets.
    """

    repository: str
    lab: str
    moment: float
    messages: Sequence[RegressionMessage]
    missing: Mapping[str, int]
    quarantined: Sequence[QuarantinedTest]
    flaky: Sequence[FlakyTest]
    slow: Sequence[SlowTestOnTarget]


def digest_of(week: LabWeek, public_url: str) -> News | None:
    """Return the digest; None if nothing happened. `public_url` is the address of the pages, empty if unknown."""
    reported = [failure for failure in week.messages if week.moment - WEEK <= failure.message.reported_at < week.moment]
    recovered = [
        failure
        for failure in week.messages
        if failure.message.ended and week.moment - WEEK <= failure.message.ended_at < week.moment
    ]
    today = datetime.fromtimestamp(week.moment, UTC).date()
    expiring = [item for item in week.quarantined if item.until <= f"{today + timedelta(days=WEEK_DAYS)}"]
    failing = [failure for failure in reported if not failure.message.ended]
    counts = (
        (texts.NEWLY_FAILING, len(failing)),
        (texts.RECOVERIES, len(recovered)),
        (texts.LATE_RUNS, sum(week.missing.values())),
        (texts.EXPIRING, len(expiring)),
    )
    summary = ", ".join(text.format(count=count) for text, count in counts if count)
    if not summary:
        return None

    def page_url(test: str, target: str) -> str:
        return f"{public_url}{history_path(week.repository, test, target)}" if public_url else ""

    items = [
        NewsItem(
            failure.test,
            texts.BROKE.format(target=failure.target.full_name, since=failure.message.since[:7]),
            page_url(failure.test, failure.target.full_name),
        )
        for failure in failing
    ]
    items += [
        NewsItem(target, texts.LATE.format(count=counted(count, "nightly commit")))
        for target, count in week.missing.items()
        if count
    ]
    items += [NewsItem(item.test, texts.EXPIRES.format(until=item.until, owner=item.owner)) for item in expiring]
    items += [
        NewsItem(
            failure.test,
            texts.RECOVERED.format(how=failure.message.ended, target=failure.target.full_name),
            page_url(failure.test, failure.target.full_name),
        )
        for failure in recovered
    ]
    items += [
        NewsItem(
            test.test,
            texts.FLAKY.format(target=test.target.full_name, failed=test.failed, runs=test.runs),
            page_url(test.test, test.target.full_name),
        )
        for test in week.flaky
    ]
    items += [
        NewsItem(
            slow.test,
            texts.SLOW.format(target=slow.target, duration=duration(slow.seconds)),
            page_url(slow.test, slow.target),
        )
        for slow in week.slow
    ]
    notes = [texts.QUARANTINED.format(count=counted(len(week.quarantined), "test"))] if week.quarantined else []
    return News(
        texts.TITLE.format(lab=week.lab, day=today, summary=summary),
        tuple(items),
        url=f"{public_url}{lab_path(week.repository, week.lab)}" if public_url else "",
        notes=tuple(notes),
        good=not failing and not sum(week.missing.values()),
    )
