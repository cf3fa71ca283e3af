"""Read the results of a pull request's head: by target, as its check run sums them up."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cachetools import LRUCache

from bot.core.utc import moment_or_none
from bot.github.check_runs import SUCCESS
from bot.results.compare.failure_class import FailureClass
from bot.results.compare.quarantine import quarantine_at
from bot.results.report import sentences
from bot.results.report.baseline import compared_suites
from bot.results.report.findings import Findings, IgnoredFailures
from bot.results.store.commit import commit_state
from bot.results.store.lists.run_lists import check_revisions
from handlers.dashboard.pull.model import IgnoredOnTarget, NewlyFailingTest, RefusedOnTarget, TargetResults
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES
from handlers.results.owners import owners_in_force
from handlers.results.records import IGNORED, REFUSED_PRESS

if TYPE_CHECKING:
    from nightjar_formats.model import TargetKey

    from bot.config.model import RepositoryConfig
    from bot.effects.checks import WrittenCheckRun
    from bot.engine.records import Records
    from bot.results.compare.owners import OwnersOf
    from bot.results.service import ResultsService
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

MOST_TARGETS = 8
"""The most targets whose results the page shows: each is compared with its baseline."""
MOST_FAILURES = 5
"""The most new failures of a target that the page names."""
MOST_CACHED = 200

IgnoredByTarget = Mapping[str, IgnoredFailures]
"""What people ignore for a pull request, by `lab:target`."""


async def ignored_failures_of(records: Records, repository_id: int, number: int) -> IgnoredByTarget:
    """Return the failures that people ignore for a pull request."""
    return await records.under(IGNORED, repository_id, number)


def ignored_on_targets(ignored: IgnoredByTarget) -> list[IgnoredOnTarget]:
    """Describe what people ignore for a pull request, by target."""
    return [
        IgnoredOnTarget(
            target=key.replace(":", "/", 1),
            ignored_by=item.by,
            ignored_at=moment_or_none(item.at),
            sha=item.sha,
            tests=len(item.tests),
        )
        for key, item in sorted(ignored.items())
    ]


async def refused_presses_of(records: Records, repository_id: int, number: int) -> list[RefusedOnTarget]:
    """Return the last press of *Ignore* on each target of a pull request, if it was refused."""
    refused = await records.under(REFUSED_PRESS, repository_id, number)
    return [
        RefusedOnTarget(
            target=key.replace(":", "/", 1),
            pressed_by=press.by,
            pressed_at=moment_or_none(press.at),
            sha=press.sha,
            why=press.why,
        )
        for key, press in sorted(refused.items())
    ]


class HeadResults:
    """The results of heads. A page that waits is requested again and again, so the results of each target are cached.

    They change when its check run does: with its revision, and once it is written, since relations between commits are
    stored only then. Results of other commits and targets change nothing.
    """

    def __init__(self, parts: DashboardParts) -> None:
        self._parts = parts
        self._cached: LRUCache[object, TargetResults] = LRUCache(MOST_CACHED)

    async def of(
        self,
        request: PageRequest,
        repository: str,
        number: int,
        sha: str,
        ignored: IgnoredByTarget,
        written: Mapping[str, WrittenCheckRun],
    ) -> tuple[list[TargetResults], int]:
        """Return the results of a pull request's head by target, and how many targets are not listed.

        `written` are the check runs of the head, by name. Targets with new failures come first, then those whose check
        run is not green.
        """
        settings, results = self._parts.config.repository(repository), self._parts.results.running_in(request.pages.run)
        if settings is None or settings.of(LAB_RESULTS) is None:
            return [], 0
        settings = await self._parts.in_force(repository, settings)
        moment, rows = self._parts.moment(), []
        # A quarantine ends with a day.
        shared = settings.of(RENAMES), settings.of(QUARANTINE), datetime.fromtimestamp(moment, UTC).date(), number, sha
        revisions = await results.read(check_revisions, repository, sha)
        for target in list(revisions)[:MOST_TARGETS]:
            check_run, ignored_failures = written.get(target.check_name), ignored.get(f"{target.lab}:{target.target}")
            key = target, revisions[target], check_run, ignored_failures, *shared
            row = self._cached.get(key)
            if row is None:
                findings = await _findings(results, settings, target, sha, moment, number, ignored_failures)
                row = await request.pages.run(_row, findings)
                self._cached[key] = row
            rows.append(row)
        if any(row.failures for row in rows):
            owners = await owners_in_force(self._parts.records, repository, settings)
            rows = [_with_owners(row, owners) if row.failures else row for row in rows]
        rows.sort(key=lambda row: (-row.new_failures, row.conclusion == SUCCESS, row.target))
        return rows, len(revisions) - len(rows)


async def _findings(
    results: ResultsService,
    settings: RepositoryConfig,
    target: TargetKey,
    sha: str,
    moment: float,
    number: int,
    ignored: IgnoredFailures | None,
) -> Findings:
    state = await results.read(commit_state, target, sha)
    # Without a client: a page spends no request to GitHub, and relations that are not stored stay unknown.
    compared = await compared_suites(results, None, target.repository, state, settings.of(RENAMES).aliases)
    quarantine, ended = quarantine_at(settings.of(QUARANTINE), target, moment)
    ignored_here = ignored if state.pull_request == number else None
    return Findings(state, compared, ignored=ignored_here, quarantine=quarantine, ended=ended)


def _with_owners(row: TargetResults, owners: OwnersOf) -> TargetResults:
    """Name the owners of the listed failures; they are not cached, because they change without a run."""
    failures = [failure.model_copy(update={"owners": list(owners(failure.test))}) for failure in row.failures]
    return row.model_copy(update={"failures": failures})


def _row(findings: Findings) -> TargetResults:
    conclusion, _ = sentences.conclusion(findings)
    counts = [compared.comparison.counts for _, compared in findings.reported]
    return TargetResults(
        target=findings.state.target.full_name,
        run_id=findings.external_id,
        title=sentences.title(findings),
        conclusion=conclusion,
        passed=sum(count.passed + count.xfailed + count.xpassed for count in counts),
        failed=sum(count.failed + count.errored for count in counts),
        skipped=sum(count.skipped for count in counts),
        new_failures=len(findings.new_failures),
        still_failing=findings.count(FailureClass.STILL_FAILING),
        unjudged=findings.unjudged,
        known_flaky=findings.count(FailureClass.KNOWN_FLAKY),
        quarantined=findings.count(FailureClass.QUARANTINED),
        ignored=findings.ignored_failures,
        complete=findings.state.complete,
        failures=[
            NewlyFailingTest(suite=failure.suite, test=failure.test)
            for failure in findings.new_failures[:MOST_FAILURES]
        ],
    )
