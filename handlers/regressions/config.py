"""The key `regressions`: which channels get messages about regressions."""

from __future__ import annotations

from pydantic import Field
from pydantic_core import PydanticCustomError

from bot.config.keys import Keys
from bot.config.places import TO, Place
from bot.config.repository_keys import ConfigKey, ValidatedKeys
from bot.config.texts import NEEDS_RESULTS
from bot.config.types import LACKING, Duration
from handlers.results.config import LAB_RESULTS


class Regressions(Keys):
    """Confirmed regressions on the nightly branch: one message for all targets that fail in the same tests."""

    to: tuple[Place, ...] = Field(default=("issue",), min_length=1, description=TO, examples=[["issue", "discord"]])
    wait: Duration = Field(
        default="30m",
        description="How long news of a target waits for other targets that may fail in the same tests.",
        examples=["30m"],
    )


def _check_results(_: Regressions, others: ValidatedKeys) -> None:
    """Raise an error of type LACKING if there are no results; if they are invalid, that is the only error."""
    if others.has(LAB_RESULTS) and others.of(LAB_RESULTS) is None:
        raise PydanticCustomError(LACKING, NEEDS_RESULTS)


REGRESSIONS = ConfigKey(
    "regressions",
    Regressions,
    description="Reports confirmed regressions that labs found on the nightly branch. Needs `results`.",
    example={"to": ["discord"]},
    position=90,
    places=lambda regressions: regressions.to,
    check=_check_results,
)
KEYS = (REGRESSIONS,)
