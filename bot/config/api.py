"""The keys below `api`: who may ask the API about a repository."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys


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
