"""The key `rebuild_docker`: for which files CI must rebuild Docker images."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Pattern, Shared


class RebuildDocker(Keys):
    """CI rebuilds Docker images if a pull request changes their files."""

    paths: Shared[tuple[Pattern, ...]] = Field(
        default=("docker/*",),
        min_length=1,
        description="Files that are part of Docker images. `*` also matches slashes.",
        examples=[["docker/*"]],
    )
    ignore: Shared[tuple[Pattern, ...]] = Field(
        default=("*.md",),
        description="Files among `paths` that are not part of an image.",
        examples=[["*.md", "docker/bash.sh"]],
    )


REBUILD_DOCKER = ConfigKey(
    "rebuild_docker",
    RebuildDocker,
    description="Says whether CI must rebuild Docker images. Without this key: always.",
    example={"paths": ["docker/*"], "ignore": ["*.md", "docker/bash.sh"]},
    position=150,
)
KEYS = (REBUILD_DOCKER,)
