"""The keys `measurements` of results and of a target: how large a change must be before people hear of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from nightjar_formats.measurements import EXACT_UNITS
from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.types import Pattern, Says
from bot.core.patterns import glob

MAX_LIMITS = 100
"""Entries that the mapping may have."""
LEAST_CHANGE = 0.02
"""Smaller changes of numbers with noise, as shares of the level, are not reported unless a repository asks for it."""
SIZE_UNITS, LEAST_SIZE_CHANGE = frozenset({"B", "byte", "bytes", "instructions"}), 0.01
"""Every commit changes the size of a program by some bytes, so smaller shares are left out by default."""

Percent = Annotated[
    str,
    StringConstraints(pattern=r"^(?:0|[1-9][0-9]{0,2})(?:\.[0-9]{1,2})?%$"),
    Says("a share in percent, as in 5%"),
]


class MeasurementSettings(Keys):
    """What the bot reports about the measurements that a name or a pattern matches."""

    least: Percent = Field(
        description=(
            f"Smaller changes are not reported. Default: {LEAST_CHANGE:.0%} of numbers with noise, "
            f"{LEAST_SIZE_CHANGE:.0%} of bytes and instructions, and any change of other counts, such as nodes."
        ),
        examples=["5%"],
    )

    @property
    def least_share(self) -> float:
        """Return the least change as a share."""
        return float(self.least.removesuffix("%")) / 100


Measurements = Annotated[Mapping[Pattern, MeasurementSettings], Field(max_length=MAX_LIMITS)]


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    """The least changes of measurements on a target: `settings` of the target come before those of all targets.

    Within one of them, a name comes before a pattern, and of the patterns that match, the longest one counts.
    """

    settings: Sequence[Mapping[str, MeasurementSettings]] = ()

    def least(self, name: str, unit: str) -> float:
        """Return the least change of a measurement that is reported, as a share of its level; 0 for any change."""
        for mapping in self.settings:
            patterns = [pattern for pattern in mapping if pattern == name or glob(pattern).fullmatch(name)]
            if patterns:
                return mapping[max(patterns, key=lambda pattern: (pattern == name, len(pattern)))].least_share
        if unit in SIZE_UNITS:
            return LEAST_SIZE_CHANGE
        return 0.0 if unit in EXACT_UNITS else LEAST_CHANGE

    def unmeasured(self, names: Collection[str]) -> list[str]:
        """Return the names and patterns that match none of the measured `names`, each once."""
        patterns = dict.fromkeys(pattern for mapping in self.settings for pattern in mapping if pattern not in names)
        return [pattern for pattern in patterns if not any(map(glob(pattern).fullmatch, names))]


DEFAULT_LIMITS = ChangeLimits()
