"""Student's t distribution, by a transformation to the normal one that can be inverted. No I/O.

The server has no numerical library. The transformation is Wallace's ("Bounds on normal approximations to Student's and
the chi-square distributions", Annals of Mathematical Statistics 30, 1959). From 5 degrees of freedom on, its quantiles
are within 1 % of the exact ones. With fewer, they are larger, so intervals are wider and chances smaller than exact.
"""

from __future__ import annotations

import math
from statistics import NormalDist

_NORMAL = NormalDist()


def upper_tail(value: float, freedom: float) -> float:
    """Return the probability of at least this value, which is not negative, with so many degrees of freedom."""
    factor = (8 * freedom + 1) / (8 * freedom + 3)
    return 0.5 * math.erfc(factor * math.sqrt(freedom * math.log1p(value * value / freedom) / 2))


def quantile(probability: float, freedom: float) -> float:
    """Return the value below which a draw is with this probability, which is at least 0.5; inf if it is huge."""
    normal = _NORMAL.inv_cdf(probability) * (8 * freedom + 3) / (8 * freedom + 1)
    exponent = normal * normal / freedom
    return math.sqrt(freedom * math.expm1(exponent)) if exponent < 700 else math.inf
