"""The keys below `commands`: how many commands people may write in an hour."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys

MOST = 10_000


class Commands(Keys):
    """How many commands are carried out in an hour; over a limit one answer says so, and the rest is left alone."""

    per_person: int = Field(
        default=30,
        ge=1,
        le=MOST,
        description="Commands of one person in one repository, within an hour.",
        examples=[30],
    )
    per_pull_request: int = Field(
        default=60,
        ge=1,
        le=MOST,
        description=(
            "Commands on one pull request within an hour, of all people together. People with the write role are not "
            "held back by it, so that nobody can shut them out."
        ),
        examples=[60],
    )
