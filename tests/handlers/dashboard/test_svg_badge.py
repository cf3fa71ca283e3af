"""A badge: two texts side by side, each in its own place."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.dashboard.labs.badge import LONGEST_LABEL, LONGEST_MESSAGE, BadgeColor, svg_badge

SVG = "{http://www.w3.org/2000/svg}"


def test_the_texts_stand_side_by_side() -> None:
    root = ElementTree.fromstring(svg_badge("adreno", "passing", BadgeColor.GOOD))
    # 6 characters are 40 pixels and 7 are 46, with 10 pixels on each side.
    assert root.get("width") == "126"
    assert root.get("aria-label") == "adreno: passing"
    label, message = root.iter(f"{SVG}text")
    assert (label.text, label.get("x"), label.get("textLength")) == ("adreno", "10", "40")
    assert (message.text, message.get("x"), message.get("textLength")) == ("passing", "70", "46")
    rectangle, path = root.find(f"{SVG}rect"), root.find(f"{SVG}path")
    assert rectangle is not None
    assert path is not None
    assert (rectangle.get("width"), rectangle.get("fill")) == ("126", BadgeColor.GOOD.value)
    assert path.get("d") == "M3 0h57v20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z"


@pytest.mark.parametrize(("length", "is_clipped"), [(-1, False), (0, False), (1, True)])
def test_a_long_text_is_clipped(length: int, is_clipped: bool) -> None:
    label, message = "l" * (LONGEST_LABEL + length), "m" * (LONGEST_MESSAGE + length)
    title = ElementTree.fromstring(svg_badge(label, message, BadgeColor.BAD)).findtext(f"{SVG}title")
    clipped = f"{'l' * (LONGEST_LABEL - 1)}…: {'m' * (LONGEST_MESSAGE - 1)}…"
    assert title == (clipped if is_clipped else f"{label}: {message}")


@given(st.text(st.characters(exclude_categories=["C"]), max_size=20))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    root = ElementTree.fromstring(svg_badge(text, text, BadgeColor.UNKNOWN))
    assert root.findtext(f"{SVG}title") == f"{text}: {text}"
    assert [element.text or "" for element in root.iter(f"{SVG}text")] == [text, text]
