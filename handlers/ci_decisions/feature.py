"""Everything of what CI asks: what to run, and what to skip."""

from __future__ import annotations

from bot.feature import Feature
from handlers.ci_decisions import skip_ci

FEATURE = Feature(
    name="ci_decisions",
    config=("skip_ci", "rebuild_docker"),
    router=skip_ci.router,
)
