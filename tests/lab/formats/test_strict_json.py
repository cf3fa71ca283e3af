"""The reader of JSON that others wrote accepts what RFC 8259 defines, and only numbers that can be written again."""

import json
import math
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.strict_json import read_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
NUMBERS = st.from_regex(r"-?[0-9]{1,400}(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,5})?", fullmatch=True)


def is_finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list):
        return all(map(is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@given(JSON)
def test_what_python_writes_is_read_unless_it_holds_a_number_that_is_not_finite(value: Any) -> None:
    written = json.dumps(value)
    if is_finite(value):
        assert read_json(written) == value
        assert read_json(written.encode("utf-16")) == value
    else:
        with pytest.raises(ValueError, match=r"(NaN|Infinity) is not a number of JSON"):
            read_json(written)


@given(NUMBERS)
def test_every_number_that_is_read_can_be_written(number: str) -> None:
    with suppress(ValueError):
        json.dumps(read_json(f'{{"a": [{number}]}}'), allow_nan=False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1e999", "the number 1e999 is too large"),
        ("-1E+400", "the number -1E+400 is too large"),
        ("9" * 400 + ".0", "the number 99999999999999999999… is too large"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff", "utf-8"),
        (b'"\xed\xa0\x80"', "utf-8"),
        ("", "Expecting value"),
        ("9" * 5000, "digits"),
        ("\ufeff{}", "Expecting value"),
    ],
)
def test_every_fault_is_a_value_error_that_names_it(text: str | bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        read_json(text)
