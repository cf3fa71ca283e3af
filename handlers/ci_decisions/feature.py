"""The feature `ci_decisions`: CI asks what to run and what to skip."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, Services
from bot.web.openapi import Operation
from handlers.ci_decisions import route, skip_ci
from handlers.ci_decisions.commit_service import CommitDecisions
from handlers.ci_decisions.service import Decisions
from handlers.ci_decisions.skip_ci import SKIP_CI


def routes(services: Services) -> Sequence[Operation]:
    """Return the API routes that CI calls."""
    decide = Decisions(services.config, services.records, services.github_for)
    return route.operations(decide, CommitDecisions(services.config, services.records, services.github_for))


FEATURE = Feature(
    name="ci_decisions",
    config=("skip_ci", "rebuild_docker"),
    records=(SKIP_CI,),
    router=skip_ci.router,
    routes=routes,
)
