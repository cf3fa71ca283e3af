"""The routes on which CI asks what to run and what to skip, and the steps that people run in a checkout."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, Services
from bot.web.openapi import Operation
from handlers.ci_decisions import route
from handlers.ci_decisions.commit_service import CommitDecisions
from handlers.ci_decisions.config import KEYS
from handlers.ci_decisions.service import Decisions


def routes(services: Services) -> Sequence[Operation]:
    """Return the API routes that CI calls."""
    decide = Decisions(services.config, services.records, services.github_for)
    return route.operations(decide, CommitDecisions(services.config, services.records, services.github_for))


FEATURE = Feature(name="ci_decisions", config=KEYS, routes=routes)
