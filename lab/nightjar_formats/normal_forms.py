"""Bring text from outside into one of Unicode's normal forms."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal
from unicodedata import normalize  # noqa: TID251  # for `normalized`, which guards it

from nightjar_formats.patterns import Pattern


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return a text in one of Unicode's normal forms.

    A text with more than 30 marks on one letter, which no language has, stays as it is: Python sorts the marks in
    quadratic time (https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format).
    """
    return text if text.isascii() or _marks().search(text) else normalize(form, text)


@lru_cache(maxsize=1)
def _marks() -> Pattern:
    # Compiled at its first use, because without RE2 this searches all of Unicode for marks.
    return Pattern(r"\p{M}{31}")
