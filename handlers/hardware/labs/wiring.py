"""Create the parts for the routes of labs in one process."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any

from bot.aws.bucket import Bucket
from bot.aws.client import AWS
from bot.config.environment import SETTINGS
from bot.core.web_json import READER
from bot.engine.tokens import LAB, TokenStore
from bot.feature import RecurringWork, Services
from bot.web.oidc import ISSUER_KEYS, IssuerKeys
from bot.web.openapi import Operation
from handlers.hardware.jobs.store import JOBS
from handlers.hardware.jobs.sweep import SWEEP
from handlers.hardware.labs.calls import LAB_CALLS, LabCalls
from handlers.hardware.labs.claims import JobClaims
from handlers.hardware.labs.handing_out import JobWords
from handlers.hardware.labs.routes import LabRoutes
from handlers.hardware.labs.speakers import LabAccess
from handlers.hardware.labs.webhooks import LAB_WEBHOOKS, TICK, LabWebhooks


def provide(services: Services) -> None:
    """Provide what counts the calls of labs, their webhooks and issuers' keys.

    Raises `SettingsError` for a missing secret.
    """
    config = services.config
    labs = {lab for one in config.repositories.values() if one.results for lab in one.results.labs}
    services.parts[LAB_CALLS] = LabCalls(labs, config.http.proxies)
    services.parts[ISSUER_KEYS] = IssuerKeys(services.part(READER))
    services.parts[LAB_WEBHOOKS] = LabWebhooks(config, services.part(JOBS), services.announce)


def routes(services: Services) -> Sequence[Operation]:
    """Return the routes of labs."""
    config, store, aws = services.config, services.part(JOBS), services.part(AWS)
    tokens = TokenStore(services.connector, LAB, services.now)
    return LabRoutes(
        LabAccess(config, tokens, services.part(ISSUER_KEYS)),
        services.part(LAB_CALLS),
        JobClaims(store, store.bell, services.part(SWEEP).limits_of),
        store,
        JobWords(config, services.part(SETTINGS).github_url, lambda bucket: Bucket(aws, bucket), services.now),
        services.announce,
        # Each waiting claim holds a connection; the other half stays free for webhooks, pages and everything else.
        most_waiting=config.http.connections // 2,
    ).operations()


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the sender of webhooks, if any lab must be notified."""
    webhooks = services.part(LAB_WEBHOOKS)
    return [RecurringWork("lab-webhooks", TICK, webhooks.tick)] if webhooks.notified else []


def listeners(services: Services) -> Sequence[Coroutine[Any, Any, None]]:
    """Return the task that wakes claims when other replicas queue jobs."""
    store = services.part(JOBS)
    return [store.bell.watch(store.versions)]
