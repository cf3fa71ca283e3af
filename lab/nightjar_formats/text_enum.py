"""Provide Python 3.11's `StrEnum` for labs with an older Python."""

from __future__ import annotations

from enum import Enum


class TextEnum(str, Enum):
    """An enumeration whose members are texts, and format as their values."""

    __str__ = str.__str__

    def __format__(self, format_spec: str) -> str:
        """Format the member as its value."""
        return str.__format__(self, format_spec)
