"""Percentiles of what was measured, by the nearest rank. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the smallest value that at least a share of sorted values does not exceed, None where there are none."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
