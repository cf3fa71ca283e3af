"""Propose names that are similar to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

LIKE_ENOUGH = 50
"""Percent of similarity from which a name is proposed."""
MOST_PROPOSED = 3
MOST_COMPARED = 1_000
"""Candidates to compare: for 20 unknown names this takes some milliseconds."""
LONGEST_COMPARED = 130
"""Characters of a name to compare; the cost grows with their square."""


def nearest_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates most similar to an unknown name, the most similar first. Ignores letter case."""
    # Loaded for the first unknown name, because it takes 2 MiB of memory.
    from rapidfuzz import fuzz, process

    candidates_by_key = {
        candidate[:LONGEST_COMPARED].casefold(): candidate for candidate in islice(candidates, MOST_COMPARED)
    }
    key = name[:LONGEST_COMPARED].casefold()
    close = process.extract(
        key, list(candidates_by_key), scorer=fuzz.ratio, limit=MOST_PROPOSED, score_cutoff=LIKE_ENOUGH
    )
    return [candidates_by_key[match] for match, _, _ in close]
