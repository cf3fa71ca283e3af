"""The feature `rebuild_docker`: its key of app.yaml; `handlers.ci_decisions` answers CI by it."""

from __future__ import annotations

from bot.feature import Feature
from handlers.rebuild_docker.config import KEYS

FEATURE = Feature(name="rebuild_docker", config=KEYS)
