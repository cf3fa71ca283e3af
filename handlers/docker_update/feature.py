"""The feature `docker_update`: the pull request that updates Docker images."""

from __future__ import annotations

from bot.feature import Feature
from handlers.docker_update import handler

FEATURE = Feature(
    name="docker_update",
    config=("docker_update",),
    router=handler.router,
)
