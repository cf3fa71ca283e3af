"""The key `api` of a repository: who may ask the API about it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.config.keys import Keys
from bot.config.repository_keys import RepositoryKey
from bot.config.types import Section


class Api(Keys):
    """Who may ask the API about a repository."""

    private: bool | None = Field(
        default=None,
        description=(
            "Whether `/api/v1` requires a token for this repository (`nightjar token create`). Default: "
            "only if the repository is private on GitHub, or its visibility is unknown."
        ),
        examples=[True],
    )


API: RepositoryKey[Api] = RepositoryKey(
    "api",
    Annotated[Api, Section(switch=False)],
    default=Api(),
    description="Access to `/api/v1` for this repository.",
    example={"private": True},
    position=230,
)
