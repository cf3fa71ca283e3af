"""Find where the end of a series differs most from what is before it, by the energy distance of both parts. No I/O.

This is the estimator of E-divisive: Matteson and James, "A nonparametric approach for multiple change point analysis of
multivariate data", Journal of the American Statistical Association 109 (2014), with exponent 1. MongoDB (Daly et al.,
"The use of change point detection to identify software performance regressions in a continuous integration system",
ICPE 2020) and Apache Otava (Fleming et al., "Hunter", ICPE 2023) find changes with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

LEAST = 2
"""The least values of a part: its own spread needs two."""


def newest_part(values: Sequence[float], most: int) -> int:
    """Return how many of the newest values, `most` at the most, are the part that differs most from all before.

    There must be four values or more. The time grows with their number times `most`.
    """
    size = len(values)
    pairs = sum([(2 * rank - size + 1) * value for rank, value in enumerate(sorted(values))])
    inside_newest = to_others = 0.0
    newest, best = LEAST, -math.inf
    for count in range(1, min(most, size - LEAST) + 1):
        value = values[size - count]
        inside_newest += sum([abs(value - other) for other in values[size - count + 1 :]])
        to_others += sum([abs(value - other) for other in values])
        if count < LEAST:
            continue
        between = to_others - 2 * inside_newest
        inside_older = pairs - between - inside_newest
        older = size - count
        spread = count * inside_older / (older - 1) + older * inside_newest / (count - 1)
        distance = (between - spread) / size
        if distance > best:
            best, newest = distance, count
    return newest
