"""Values of members and attributes, whatever type a report gives them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.limits import MAX_RAW_NAME
from nightjar_formats.readers import values
from nightjar_formats.refused import TooMuch

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(json_values)
def test_a_value_of_another_type_is_empty(value: object) -> None:
    assert values.mapping(value) == (value if isinstance(value, dict) else {})
    assert values.sequence(value) == (value if isinstance(value, list) else [])
    if not isinstance(value, str):
        assert (values.name(value), values.text(value), values.message(value)) == ("", "", "")


@pytest.mark.parametrize(
    ("value", "count"), [(3, 3), ("3", 3), (1, 1), (0, 0), (-1, 0), (1.5, 0), (None, 0), (True, 0)]
)
def test_a_count_is_a_whole_number(value: object, count: int) -> None:
    assert values.count(value) == count


def test_a_name_may_have_the_most_characters_and_no_more() -> None:
    longest = "n" * MAX_RAW_NAME
    assert values.name(longest) == longest
    with pytest.raises(TooMuch, match=f"{MAX_RAW_NAME + 1:,}"):
        values.name(longest + "n")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "NaN", "1e999", 10**400, -1, True, "", None, [], {}])
def test_what_is_no_duration_has_no_seconds(value: object) -> None:
    assert values.seconds(value) is None
    assert values.line(value) is None


@pytest.mark.parametrize(
    ("value", "first", "line"),
    [
        *((1, 1, 1), (0, 0, 1), (6, 0, 7), ("7", 1, 7), (0, 1, None), (2.5, 1, None)),
        *((values.MAX_LINE, 1, values.MAX_LINE), (values.MAX_LINE + 1, 1, None)),
    ],
)
def test_a_line_counts_from_1(value: object, first: int, line: int | None) -> None:
    assert values.line(value, first) == line
