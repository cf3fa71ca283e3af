"""Compare names: how similar two are, and which of many are similar to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

LIKE_ENOUGH = 50
"""Percent of similarity from which a name is proposed."""
MOST_PROPOSED = 3
MOST_COMPARED = 1_000
"""Candidates to compare: for 20 unknown names this takes some milliseconds."""
LONGEST_COMPARED = 130
"""Characters of a name to compare; the cost grows with their square."""

# RapidFuzz is loaded at the first comparison, because it takes 2 MiB of memory.


def likeness(first: str, second: str) -> float:
    """Return the similarity of two texts, from 0 to 1."""
    from rapidfuzz import fuzz

    return fuzz.ratio(first, second) / 100


def most_similar(
    text: str, candidates: Sequence[str], *, least: float, most: int = 1, in_parts: bool = False
) -> list[int]:
    """Return the indices of at most so many candidates, the most similar first.

    `least` is their least similarity in percent. With `in_parts`, the order of words counts less, and so do words that
    only one of both has.
    """
    from rapidfuzz import fuzz, process

    scorer = fuzz.WRatio if in_parts else fuzz.ratio
    return [index for _, _, index in process.extract(text, candidates, scorer=scorer, limit=most, score_cutoff=least)]


def nearest_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Return the candidates most similar to an unknown name, the most similar first. Ignores letter case."""
    by_key = {candidate[:LONGEST_COMPARED].casefold(): candidate for candidate in islice(candidates, MOST_COMPARED)}
    names = list(by_key.values())
    indices = most_similar(name[:LONGEST_COMPARED].casefold(), list(by_key), least=LIKE_ENOUGH, most=MOST_PROPOSED)
    return [names[index] for index in indices]
