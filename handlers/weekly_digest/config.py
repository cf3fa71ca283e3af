"""The key `weekly_digest`: which channels get a weekly summary of each lab, and when."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_core import PydanticCustomError

from bot.config.keys import Keys
from bot.config.places import TO, Place
from bot.config.repository_keys import ConfigKey, ValidatedKeys
from bot.config.texts import NEEDS_RESULTS
from bot.config.types import LACKING, TimeOfDay, TimeZone
from bot.core.schedule import Weekly
from handlers.results.config import LAB_RESULTS

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class Digest(Keys):
    """A weekly message about each lab: what broke, recovered, is late, or leaves quarantine."""

    to: tuple[Place, ...] = Field(default=("issue",), min_length=1, description=TO, examples=[["slack"]])
    day: Weekday = Field(default="monday", description="The day of the week.", examples=["monday"])
    at: TimeOfDay = Field(default="08:00", description="Time of day.", examples=["08:00"])
    timezone: TimeZone = Field(default="UTC", description="Time zone of `at`.", examples=["UTC"])

    @property
    def schedule(self) -> Weekly:
        """Return when the digests are written."""
        return Weekly(DAYS.index(self.day), self.at, self.timezone)


def _check_results(_: Digest, keys: ValidatedKeys) -> None:
    """Raise an error of type LACKING if there are no results; if they are invalid, that is the only error."""
    if keys.has(LAB_RESULTS) and keys.of(LAB_RESULTS) is None:
        raise PydanticCustomError(LACKING, NEEDS_RESULTS)


DIGEST = ConfigKey(
    "weekly_digest",
    Digest,
    description="Sends a weekly digest of each lab, unless nothing happened. Needs `results`.",
    example={"to": ["slack"], "day": "monday"},
    position=95,
    timer="weekly-digest",
    places=lambda digest: digest.to,
    check=_check_results,
)
KEYS = (DIGEST,)
