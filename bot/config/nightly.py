"""The keys below `nightly`: which branch labs test, where its commits come from, and when it moves."""

from __future__ import annotations

from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, StringConstraints, create_model, model_validator

from bot.config.keys import Keys
from bot.config.texts import TRACKS_ITSELF, UNKNOWN_TIME_ZONE
from bot.config.types import BranchName, Pattern, Says, Shared
from bot.core.schedule import Daily

STATUS = "nightly"
"""Context of the commit status on the commit that labs test."""

TimeOfDay = Annotated[
    str,
    StringConstraints(pattern=r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$"),
    Says('a time of day in quotes, as in "21:00"'),
]


def _known_zone(name: str) -> str:
    """Return the name of a time zone; raise ValueError if it is unknown."""
    try:
        ZoneInfo(name)
    except (
        KeyError,
        ValueError,
        OSError,
    ):  # zoneinfo raises these for an unknown zone, an invalid name, and a folder of zones
        raise ValueError(UNKNOWN_TIME_ZONE) from None
    return name


TimeZone = Annotated[
    str,
    StringConstraints(max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_+/-]*$"),
    AfterValidator(_known_zone),
    Says("a time zone of IANA's, as in America/Los_Angeles"),
]

# `from` is a keyword of Python, so a class cannot declare it as a field.
_From = create_model(
    "_From",
    __base__=Keys,
    **{
        "from": (
            BranchName,
            Field(default="main", description="The branch that the commits come from.", examples=["main"]),
        )
    },  # type: ignore[call-overload]
)


class TrackingBranch(_From):
    """A branch that tracks another one, `from`."""

    branch: BranchName

    @model_validator(mode="after")
    def _two_branches(self) -> Self:
        """Raise ValueError if the branch tracks itself: it would never move."""
        if self.branch == self.source:
            raise ValueError(TRACKS_ITSELF)
        return self

    @property
    def source(self) -> str:
        """Return the branch that the commits come from, `from`."""
        return str(getattr(self, "from"))


class Nightly(TrackingBranch):
    """A branch that once a day moves to the newest commit that is fit to be tested; all labs test that one."""

    branch: BranchName = Field(
        default="nightly",
        description="The branch to move. The bot creates it if it is missing, and moves it only forward.",
        examples=["nightly"],
    )
    at: TimeOfDay = Field(default="21:00", description="Time of the daily move.", examples=["21:00"])
    timezone: TimeZone = Field(
        default="America/Los_Angeles",
        description="Time zone of `at`, with daylight saving time.",
        examples=["America/Los_Angeles"],
    )
    require: Shared[tuple[Pattern, ...]] = Field(
        default=(),
        description=(
            "What must be green on a commit: status contexts and check run names. Each pattern must match "
            "at least one, and all matches must be green. An empty list: the newest commit."
        ),
        examples=[["*/branch"]],
    )

    @property
    def schedule(self) -> Daily:
        """Return when the branch moves."""
        return Daily(self.at, self.timezone)
