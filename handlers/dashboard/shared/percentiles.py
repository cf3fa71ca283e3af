"""Compute percentiles by the nearest-rank method. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEAST_VALUES = 5
"""Fewer values have no percentile: the 90th of four is their maximum, and says nothing about the next one."""


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the percentile of values in ascending order, `share` from 0 to 1; None if there are too few values."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if len(ordered) >= LEAST_VALUES else None
