"""What Python 3.11 calls `StrEnum`, for labs with an older Python."""

from __future__ import annotations

from enum import Enum


class TextEnum(str, Enum):
    """An enumeration of texts, each of which is its value wherever a text is wanted, also in a format string."""

    __str__ = str.__str__

    def __format__(self, format_spec: str) -> str:
        """Format it as the text that it is."""
        return str.__format__(self, format_spec)
