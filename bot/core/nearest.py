"""Propose known names for an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from rapidfuzz import fuzz, process

LIKE_ENOUGH = 50
"""Percent of similarity from which a name is proposed."""
MOST_PROPOSED = 3
MOST_COMPARED = 1_000
"""Known names to compare: for 20 unknown names this takes some milliseconds."""
LONGEST_COMPARED = 130
"""Characters of a name to compare; the cost grows with their square."""


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names most similar to an unknown one, the most similar first; letter case does not matter."""
    compared = {one[:LONGEST_COMPARED].casefold(): one for one in islice(known, MOST_COMPARED)}
    wanted = name[:LONGEST_COMPARED].casefold()
    close = process.extract(wanted, list(compared), scorer=fuzz.ratio, limit=MOST_PROPOSED, score_cutoff=LIKE_ENOUGH)
    return [compared[found] for found, _, _ in close]
