"""Read the results of a pull request's head: by target, as its check run sums them up."""

from __future__ import annotations

from collections.abc import Mapping
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
from bot.results.store.lists.run_lists import targets_of_commit
from bot.results.store.tables.revisions import revisions_of
from handlers.dashboard.pull.model import IgnoredOnTarget, NewlyFailingTest, TargetResults
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES
from handlers.results.records import IGNORED

if TYPE_CHECKING:
    from nightjar_formats.model import TargetKey

    from bot.config.model import RepositoryConfig
    from bot.engine.records import Records
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


class HeadResults:
    """The results of heads. A page that waits is requested again and again, so results are cached until they change."""

    def __init__(self, parts: DashboardParts) -> None:
        self._parts = parts
        self._cached: LRUCache[object, tuple[list[TargetResults], int]] = LRUCache(MOST_CACHED)

    async def of(
        self, request: PageRequest, repository: str, number: int, sha: str, ignored: IgnoredByTarget
    ) -> tuple[list[TargetResults], int]:
        """Return the results of a pull request's head by target, and how many targets are not listed.

        Those with new failures come first, then those whose check run is not green.
        """
        settings, results = self._parts.config.repository(repository), self._parts.results.running_in(request.pages.run)
        if settings is None or settings.of(LAB_RESULTS) is None:
            return [], 0
        settings = await self._parts.in_force(repository, settings)
        moment = self._parts.moment()
        revisions = await request.pages.look_up(self._parts.results.store.read, revisions_of, [repository])
        key = (repository, number, sha, *revisions, moment, *((name, ignored[name]) for name in sorted(ignored)))
        if (cached := self._cached.get(key)) is not None:
            return cached
        targets = await results.read(targets_of_commit, repository, sha)
        rows = [
            _row(await _findings(results, settings, target, sha, moment, number, ignored))
            for target in targets[:MOST_TARGETS]
        ]
        rows.sort(key=lambda row: (-row.new_failures, row.conclusion == SUCCESS, row.target))
        self._cached[key] = rows, len(targets[MOST_TARGETS:])
        return self._cached[key]


async def _findings(
    results: ResultsService,
    settings: RepositoryConfig,
    target: TargetKey,
    sha: str,
    moment: float,
    number: int,
    ignored: IgnoredByTarget,
) -> Findings:
    state = await results.read(commit_state, target, sha)
    # Without a client: a page spends no request to GitHub, and relations that are not stored stay unknown.
    compared = await compared_suites(results, None, target.repository, state, settings.of(RENAMES).aliases)
    quarantine, ended = quarantine_at(settings.of(QUARANTINE), target, moment)
    ignored_failures = ignored.get(f"{target.lab}:{target.target}") if state.pull_request == number else None
    return Findings(state, compared, ignored=ignored_failures, quarantine=quarantine, ended=ended)


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
