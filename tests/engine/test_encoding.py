"""Text comes back as it was, whatever it contains."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.engine.sql.portable import dumps, loads, original, storable

ANY_TEXT = st.text(st.characters(codec=None, categories=None))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(ANY_TEXT)
def test_text_comes_back(written: str) -> None:
    stored = storable(written)
    stored.encode()  # no lone surrogate
    assert "\x00" not in stored
    assert original(stored) == written


@pytest.mark.no_cover
@given(ANY_JSON)
def test_json_comes_back(value: object) -> None:
    stored = dumps(value)  # type: ignore[arg-type]
    stored.encode()
    assert "\\u0000" not in stored.replace("\\\\", "")
    assert loads(stored) == json.loads(json.dumps(value))
    assert loads(stored.encode()) == json.loads(json.dumps(value))


@pytest.mark.parametrize(
    "body",
    ['{"a": "\\u0000"}', '{"a": "\\ud800"}', '{"a": "\\\\u0000"}', '{"a": "\ufdd0"}', '{"a": "\U0001f600"}'],
)
def test_the_raw_text_of_a_payload_is_stored_unchanged(body: str) -> None:
    stored = dumps({"body": body})
    assert loads(stored) == {"body": body}


def test_text_that_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        dumps({"n": float("nan")})
