"""Names that are proposed in place of an unknown one."""

from __future__ import annotations

from bot.core.nearest import MOST_COMPARED, MOST_PROPOSED, nearest_names


def test_the_nearest_names_are_proposed_and_few_of_them() -> None:
    candidates = [f"hexagon-v{number}" for number in range(60, 80)]
    assert nearest_names("Hexagon-V73", candidates)[0] == "hexagon-v73"
    assert len(nearest_names("hexagon-v73", candidates)) == MOST_PROPOSED
    assert nearest_names("opencl", candidates) == []


def test_only_the_first_candidates_are_compared() -> None:
    candidates = [f"other-{number}" for number in range(MOST_COMPARED)]
    assert nearest_names("zzzzzzzz", [*candidates, "zzzzzzzz"]) == []
