"""The feature `docker_update`: the pull request that updates Docker images."""

from __future__ import annotations

from bot.feature import Feature
from handlers.docker_update import handler
from handlers.docker_update.config import KEYS

FEATURE = Feature(
    name="docker_update",
    config=KEYS,
    router=handler.router,
    titles={"docker-update": "Docker images"},
)
