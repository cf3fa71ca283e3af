"""The keys below `docker_update`: which file names CI's images, where newer ones are looked for, and when."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, StringConstraints, model_validator

from bot.config.ci_tests import RepositoryPath
from bot.config.keys import Keys
from bot.config.nightly import TimeOfDay, TimeZone
from bot.config.texts import UPDATE_OF_ITS_BASE
from bot.config.types import BranchName, EncryptedAddress, Says
from bot.core.schedule import Daily

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
        description="Whose images are looked after; what is written names this one.",
        examples=["tlcpack"],
    )
    staging: Namespace = Field(
        default="tlcpackstaging",
        description=(
            "Where images are before they are released, with `_` for `-` in their names: their tags count as well, "
            "and CI falls back to it (`nightjar ci docker-images`)."
        ),
        examples=["tlcpackstaging"],
    )
    registry: EncryptedAddress = Field(
        default=HUB,
        description="Where Docker Hub's API is, or one like it. No other address is ever asked, and no password sent.",
        examples=["https://hub.docker.com"],
    )
    at: TimeOfDay = Field(
        default="00:00", description="When it is looked for newer tags, every day.", examples=["00:00"]
    )
    timezone: TimeZone = Field(default="UTC", description="The time zone that `at` is a time of.", examples=["UTC"])
    base: BranchName = Field(default="main", description="The branch that the pull request is for.", examples=["main"])
    branch: BranchName = Field(
        default="nightly-docker-update",
        description=(
            "The bot's own branch that it comes from: moved by force as long as nobody else has pushed there, and "
            "deleted when it is not needed."
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
