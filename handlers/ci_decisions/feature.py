"""Everything of what CI asks: what to run, and what to skip."""

from __future__ import annotations

from bot.feature import Feature
from handlers.ci_decisions import skip_ci
from handlers.ci_decisions.skip_ci import SKIP_CI

FEATURE = Feature(
    name="ci_decisions",
    config=("skip_ci", "rebuild_docker"),
    records=(SKIP_CI,),
    router=skip_ci.router,
)
