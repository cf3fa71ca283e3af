"""Read the device tests that people requested for a pull request, and the deliveries about them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nightjar_formats.runs.benchmark import BenchmarkReport
from nightjar_formats.runs.few_tests import BASE, HEAD

from bot.core.urls import linkable
from bot.github.text.markdown import code
from handlers.dashboard.pull.model import BenchmarkOnTarget, BenchmarkRow, DeviceTest
from handlers.device_tests.benchmarks.model import report_of
from handlers.device_tests.benchmarks.texts import answer_text, difference_text, status_words, verdict_of
from handlers.device_tests.commands import APPROVE_TESTS
from handlers.device_tests.effects import step_guids
from handlers.device_tests.model import DeviceJob
from handlers.device_tests.texts import status_text
from handlers.device_tests.waiting import queue_place
from handlers.labs.webhooks import webhook_guids

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from handlers.dashboard.shared.wiring import DashboardParts

MOST_TESTS = 30
MOST_BENCHMARKS = 5
MOST_JOBS = 10
"""The most jobs whose deliveries the page shows."""


def listed_jobs(jobs: Sequence[DeviceJob], head: str) -> list[DeviceJob]:
    """Choose from a pull request's jobs, oldest first, those that the page lists: open ones, those of the head, others.

    The newest of each come first.
    """
    newest_first = list(reversed(jobs))
    return sorted(newest_first, key=lambda job: (not job.is_open, job.sha != head))[:MOST_TESTS]


async def device_tests_of(
    parts: DashboardParts, settings: RepositoryConfig, jobs: Sequence[DeviceJob]
) -> list[DeviceTest]:
    """Describe jobs, with the places of those that are queued."""
    return [await _device_test(parts, settings, job) for job in jobs]


async def _device_test(parts: DashboardParts, settings: RepositoryConfig, job: DeviceJob) -> DeviceTest:
    place = await queue_place(parts.jobs, settings, job)
    approve = code(approve_command(parts, job.sha))
    return DeviceTest(
        target=job.about.full_name,
        sha=job.sha,
        state=job.state.value,
        words=status_words(job) or status_text(job, place, parts.clock(), approve),
        requested_by=job.requested_by.login,
        requested_at=datetime.fromtimestamp(job.requested_at, UTC),
        approved_by=job.approved_by.login,
        jobs_before=place.jobs_before if place else None,
        starts_in=place.seconds if place else None,
        log=linkable(job.log_url),
    )


def benchmarks_of(jobs: Sequence[DeviceJob]) -> list[BenchmarkOnTarget]:
    """Return the benchmarks among jobs that have a report."""
    reports = [(job, report_of(job)) for job in jobs]
    return [_benchmark(job, report) for job, report in reports if report is not None][:MOST_BENCHMARKS]


def _benchmark(job: DeviceJob, report: BenchmarkReport) -> BenchmarkOnTarget:
    return BenchmarkOnTarget(
        target=job.about.full_name,
        sha=job.sha,
        base_sha=job.few_tests.base_sha,
        tests=list(job.few_tests.tests),
        answer=answer_text(report),
        precision=report.precision,
        blocks=report.blocks,
        seconds=report.seconds,
        end=report.end.value,
        measurements=[
            BenchmarkRow(
                test=row.test,
                name=row.name,
                unit=row.unit,
                better=row.better.value,
                base=row.base,
                head=row.head,
                ratio=row.ratio,
                low=row.low,
                high=row.high,
                verdict=verdict_of(row),
                words=difference_text(row, report.precision),
            )
            for row in report.measurements
        ],
        unlisted=report.unlisted,
        failed_at_base=list(report.failures.get(BASE, ())),
        failed_at_head=list(report.failures.get(HEAD, ())),
        without_ratio=list(report.without_ratio),
    )


def approve_command(parts: DashboardParts, sha: str) -> str:
    """Return the command that approves the tests of a commit."""
    return f"{parts.config.mentions[0]} {APPROVE_TESTS.name} {sha}"


def guids_of_jobs(jobs: Sequence[DeviceJob]) -> list[str]:
    """Return the GUIDs of deliveries about jobs: they have the locks of the check run and of the lab."""
    return [guid for job in jobs[:MOST_JOBS] for guid in (*step_guids(job), *webhook_guids(job))]
