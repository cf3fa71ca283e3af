"""The feature `labs`: labs claim requested tests over the API, and are notified of new ones."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from bot.aws.bucket import Bucket
from bot.aws.client import AWS
from bot.config.environment import SETTINGS
from bot.core.web_json import READER
from bot.engine.service import ENGINE
from bot.engine.tokens import LAB, TokenStore
from bot.feature import Feature, RecurringWork, Services
from bot.results.service import RESULTS
from bot.web.connections import connections_allowed
from bot.web.oidc import ISSUER_KEYS, IssuerKeys
from bot.web.openapi import Operation
from handlers.device_tests.results import JobResults
from handlers.device_tests.store import JOBS
from handlers.device_tests.sweep import SWEEP
from handlers.labs import webhooks
from handlers.labs.answering import LabAnswers
from handlers.labs.callers import LabAccess
from handlers.labs.calls import LAB_CALLS, LabCalls
from handlers.labs.claim_reply import ClaimReplies
from handlers.labs.claims import JobClaims
from handlers.labs.dispatches import StartLabWorkflow
from handlers.labs.routes import LabRoutes
from handlers.labs.upload_records import UPLOAD, UPLOADS_OF_DAY
from handlers.labs.uploads import UploadRoutes
from handlers.labs.webhooks import JOB_WAITS, LAB_WEBHOOKS, TICK, LabWebhooks, SendLabWebhook
from handlers.results.config import labs_of
from handlers.results.ingest import INGEST
from handlers.results.requested_tests import REQUESTED_TESTS
from handlers.results.watch import WATCH


async def provide(services: Services) -> None:
    """Provide the counter of labs' calls, their webhooks and issuers' keys, and complete jobs whose results arrive.

    Raises `SettingsError` for a missing secret.
    """
    config, store = services.config, services.part(JOBS)
    labs = {lab for settings in config.configured.entries.values() for lab in labs_of(settings)}
    calls = LabCalls(labs, config.http.proxies)
    services.parts[LAB_CALLS] = calls
    services.parts[ISSUER_KEYS] = IssuerKeys(services.part(READER))
    services.parts[LAB_WEBHOOKS] = LabWebhooks(config, store, services.announce)
    # Here, and not in `device_tests`: results that complete no job are counted with the calls of labs.
    services.parts[REQUESTED_TESTS] = JobResults(
        store, services.part(RESULTS), calls.results_refused, services.announce
    )


def routes(services: Services) -> Sequence[Operation]:
    """Return the routes of labs."""
    config, store, aws = services.config, services.part(JOBS), services.part(AWS)
    tokens = TokenStore(services.connector, LAB, services.now)
    access = LabAccess(config, tokens, services.part(ISSUER_KEYS))
    answers = LabAnswers(access, services.part(LAB_CALLS))
    uploads = UploadRoutes(
        answers,
        config,
        services.records,
        services.part(WATCH),
        services.part(INGEST),
        services.github_for,
        services.now,
    )
    claims = LabRoutes(
        answers,
        access,
        JobClaims(store, store.bell, services.part(SWEEP).limits_of),
        store,
        ClaimReplies(config, services.part(SETTINGS).github_url, lambda bucket: Bucket(aws, bucket), services.now),
        services.announce,
        # Each waiting claim holds a connection; the other half stays free for webhooks, pages and everything else.
        most_waiting=connections_allowed(config.http.connections) // 2,
    )
    return [*claims.operations(), *uploads.operations()]


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the sender of webhooks, if any lab must be notified."""
    lab_webhooks = services.part(LAB_WEBHOOKS)
    return (
        [RecurringWork("lab-webhooks", TICK, lab_webhooks.tick, lab_webhooks.has_work)] if lab_webhooks.notified else []
    )


def listeners(services: Services) -> Sequence[Coroutine[Any, Any, None]]:
    """Return the task that wakes claims when other replicas queue jobs. Nobody shares a SQLite file."""
    store = services.part(JOBS)
    return [] if services.part(ENGINE).database.embedded else [store.bell.watch(store.queued_targets)]


class LabCallMetrics:
    """Publishes the counter of labs' calls, for which nothing is read from the database."""

    def __init__(self, services: Services, registry: CollectorRegistry) -> None:
        services.part(LAB_CALLS).measure(registry)

    async def refresh(self) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing: what this process has counted stays true."""


FEATURE = Feature(
    name="labs",
    events=(JOB_WAITS,),
    records=(UPLOAD, UPLOADS_OF_DAY),
    router=webhooks.router,
    effects=(SendLabWebhook, StartLabWorkflow),
    provide=provide,
    routes=routes,
    timers=timers,
    listeners=listeners,
    metrics=LabCallMetrics,
    titles={"lab-webhook": "Webhooks of labs"},
)
