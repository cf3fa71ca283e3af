"""The keys of `commands`: how many commands people may write in an hour."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys

MOST = 10_000


class Commands(Keys):
    """Limits on commands per hour. Over a limit, one answer says so and the bot ignores the rest."""

    per_person: int = Field(
        default=30,
        ge=1,
        le=MOST,
        description="Commands of one person in one repository per hour.",
        examples=[30],
    )
    per_pull_request: int = Field(
        default=60,
        ge=1,
        le=MOST,
        description=(
            "Commands on one pull request per hour, by all people together. It doesn't apply to people "
            "with the write role, so nobody can lock them out."
        ),
        examples=[60],
    )
