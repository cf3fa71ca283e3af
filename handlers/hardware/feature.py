"""The feature `hardware`: results of hardware labs, regressions, and tests on request."""

from __future__ import annotations

from bot.feature import Feature
from bot.plan.handler import joined
from bot.results.deliveries import CHECK_EVENT, RUN_ARRIVED
from handlers.hardware import check_runs, ingest_runs, job_steps, nightly_news, regressions, watch, wiring
from handlers.hardware.check_runs import IGNORED
from handlers.hardware.degraded import reporting
from handlers.hardware.degraded.reporting import TARGET_CHANGED
from handlers.hardware.degraded.sweep import JUDGED
from handlers.hardware.degraded.targets import DEGRADED
from handlers.hardware.effects import IngestRun, RequestCheckRun, StoreReports
from handlers.hardware.jobs import commands, pushes
from handlers.hardware.jobs.effects import (
    DEVICE_CHECK,
    ApproveDeviceJobs,
    CancelDeviceJobs,
    NoteShownStep,
    SubmitDeviceJob,
)
from handlers.hardware.labs import webhooks
from handlers.hardware.labs.dispatches import StartLabWorkflow
from handlers.hardware.labs.webhooks import JOB_WAITS, SendLabWebhook
from handlers.hardware.metrics import ResultsGauges
from handlers.hardware.news_groups import REGRESSION_GROUP, WAITING_NEWS
from handlers.hardware.nightly_news import NIGHTLY_NEWS
from handlers.hardware.regression_state import REGRESSIONS

FEATURE = Feature(
    name="hardware",
    config=("results", "regressions"),
    events=(CHECK_EVENT, RUN_ARRIVED, NIGHTLY_NEWS, DEVICE_CHECK, JOB_WAITS, TARGET_CHANGED),
    records=(IGNORED, REGRESSIONS, WAITING_NEWS, REGRESSION_GROUP, watch.LISTED, watch.FAILED_CHECKS, DEGRADED, JUDGED),
    router=joined(
        [
            ingest_runs.router,
            check_runs.router,
            regressions.router,
            nightly_news.router,
            pushes.router,
            job_steps.router,
            webhooks.router,
            reporting.router,
        ]
    ),
    commands=commands.COMMANDS,
    effects=(
        IngestRun,
        RequestCheckRun,
        StoreReports,
        SubmitDeviceJob,
        CancelDeviceJobs,
        ApproveDeviceJobs,
        NoteShownStep,
        SendLabWebhook,
        StartLabWorkflow,
    ),
    provide=wiring.provide,
    routes=wiring.routes,
    timers=wiring.timers,
    listeners=wiring.listeners,
    metrics=ResultsGauges,
)
