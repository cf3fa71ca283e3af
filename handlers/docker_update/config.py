"""The key `docker_update`: the file that names CI's images, where to search for newer tags, and when."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import BranchName, EncryptedAddress, RepositoryPath, Says, TimeOfDay, TimeZone
from bot.core.schedule import Daily
from handlers.docker_update.texts import UPDATE_OF_ITS_BASE

HUB = "https://hub.docker.com"

Namespace = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,127}$"),
    Says("the name of an organization at the registry, as in tlcpack"),
]


class DockerUpdate(Keys):
    """One pull request that gives each Docker image of CI its newest tag, kept up to date every day."""

    file: RepositoryPath = Field(
        default="ci/jenkins/docker-images.ini",
        description="The file that names the images, as `ci_cpu: NAMESPACE/NAME:TAG` below `[jenkins]`.",
        examples=["ci/jenkins/docker-images.ini"],
    )
    namespace: Namespace = Field(
        default="tlcpack",
        description="The namespace of the released images. The file always names this one.",
        examples=["tlcpack"],
    )
    staging: Namespace = Field(
        default="tlcpackstaging",
        description=(
            "The namespace of images before release, with `_` for `-` in their names. Their tags count "
            "too, and CI falls back to it (`nightjar ci docker-images`)."
        ),
        examples=["tlcpackstaging"],
    )
    registry: EncryptedAddress = Field(
        default=HUB,
        description=(
            "Address of Docker Hub's API, or of a compatible one. The bot sends requests to no other "
            "address, and no password."
        ),
        examples=["https://hub.docker.com"],
    )
    at: TimeOfDay = Field(default="00:00", description="Time of the daily check for newer tags.", examples=["00:00"])
    timezone: TimeZone = Field(default="UTC", description="Time zone of `at`.", examples=["UTC"])
    base: BranchName = Field(default="main", description="The base branch of the pull request.", examples=["main"])
    branch: BranchName = Field(
        default="nightly-docker-update",
        description=(
            "The bot's branch for the pull request. The bot force-pushes it while nobody else has pushed "
            "there, and deletes it when it is not needed."
        ),
        examples=["nightly-docker-update"],
    )

    @model_validator(mode="after")
    def _two_branches(self) -> Self:
        """Raise ValueError if the branch is the base."""
        if self.branch == self.base:
            raise ValueError(UPDATE_OF_ITS_BASE)
        return self

    @property
    def schedule(self) -> Daily:
        """Return when newer tags are looked up."""
        return Daily(self.at, self.timezone)


DOCKER_UPDATE = ConfigKey(
    "docker_update",
    DockerUpdate,
    description="Proposes the newest tags of CI's Docker images every day, in one pull request.",
    example={"file": "ci/jenkins/docker-images.ini"},
    position=180,
    timer="docker-update",
    branches=lambda docker_update: (docker_update.branch,),
)
KEYS = (DOCKER_UPDATE,)
