"""Compute percentiles by the nearest-rank method. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """Return the percentile of values in ascending order, `share` from 0 to 1; None if there are no values."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None
