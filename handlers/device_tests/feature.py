"""The feature `device_tests`: tests of pull requests that people request from labs, and degraded targets."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, RecurringWork, Services
from bot.plan.handler import joined
from bot.results.service import RESULTS
from handlers.device_tests import check_runs, commands, pushes
from handlers.device_tests.commit_jobs import SubmitCommitJob
from handlers.device_tests.degraded import reporting
from handlers.device_tests.degraded.records import DEGRADED, JUDGED
from handlers.device_tests.degraded.reporting import TARGET_CHANGED
from handlers.device_tests.degraded.sweep import DEGRADED_SWEEP, DegradedSweep
from handlers.device_tests.degraded.sweep import TICK as DEGRADED_TICK
from handlers.device_tests.effects import (
    DEVICE_CHECK,
    FEW_TESTS_ENDED,
    ApproveDeviceJobs,
    CancelDeviceJobs,
    NoteShownStep,
    SubmitDeviceJob,
)
from handlers.device_tests.gauges import JobGauges
from handlers.device_tests.reproduce import handler
from handlers.device_tests.reproduce.command import REPRODUCE, reproduce
from handlers.device_tests.store import JOBS, JobStore
from handlers.device_tests.sweep import SWEEP, JobSweep
from handlers.device_tests.sweep import TICK as JOBS_TICK
from handlers.results.watch import WATCH


async def provide(services: Services) -> None:
    """Provide the store of jobs, and the sweeps of jobs and of degraded targets."""
    store = JobStore(services.connector, services.now)
    services.parts[JOBS] = store
    services.parts[SWEEP] = JobSweep(
        services.config, store, services.journal, accept=services.announce, clock=services.now
    )
    services.part(WATCH).expect(store.tested_repositories)
    services.parts[DEGRADED_SWEEP] = DegradedSweep(
        services.config, services.records, services.part(RESULTS).store, accept=services.announce, clock=services.now
    )


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the timers of both sweeps, also after app.yaml lost its labs: open jobs and issues must end."""
    jobs, degraded = services.part(SWEEP), services.part(DEGRADED_SWEEP)
    return [
        RecurringWork("device-jobs", JOBS_TICK, jobs.tick, jobs.has_work),
        RecurringWork("degraded-targets", DEGRADED_TICK, degraded.tick, degraded.has_work),
    ]


FEATURE = Feature(
    name="device_tests",
    events=(DEVICE_CHECK, FEW_TESTS_ENDED, TARGET_CHANGED),
    records=(DEGRADED, JUDGED),
    router=joined([pushes.router, check_runs.router, reporting.router, handler.router]),
    commands=(*commands.COMMANDS, (REPRODUCE, reproduce)),
    effects=(SubmitDeviceJob, SubmitCommitJob, CancelDeviceJobs, ApproveDeviceJobs, NoteShownStep),
    provide=provide,
    timers=timers,
    metrics=JobGauges,
    titles={
        "device-jobs": "Requested hardware tests",
        "device-job-steps": "Check run of requested hardware tests",
        "degraded-targets": "Degraded targets",
        "reproduced": "Reproduced failures",
    },
)
