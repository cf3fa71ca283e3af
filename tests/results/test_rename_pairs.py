"""All renames of a commit are one row, in which each test is found by its new or old name."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.results.store.tables.rename_pairs import RenamePairs, pairs_blob

places = st.integers(0, 3_000_000)


@given(st.lists(st.tuples(places, places), unique_by=(lambda pair: pair[0], lambda pair: pair[1])), places)
def test_each_pair_is_found_by_either_name(pairs: list[tuple[int, int]], ordinal: int) -> None:
    stored = RenamePairs(pairs_blob(dict(pairs)))
    assert list(stored) == sorted(pairs)
    assert [(stored.new_of(old), stored.old_of(new)) for new, old in pairs] == pairs
    assert stored.old_of(ordinal) == dict(pairs).get(ordinal)
    assert stored.new_of(ordinal) == {old: new for new, old in pairs}.get(ordinal)


def test_a_completely_renamed_suite_costs_almost_nothing() -> None:
    assert len(pairs_blob({40_000 + place: place for place in range(10_000)})) < 1_000
