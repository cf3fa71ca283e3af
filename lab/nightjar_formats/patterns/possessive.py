"""Patterns for Python's `re` that do not backtrack."""

from __future__ import annotations

import re  # noqa: TID251  # patterns for whole chunks of a report, for which RE2 has a call for each match
import sys
from typing import AnyStr


def possessive(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Compile a pattern with possessive quantifiers, which Python has since 3.11.

    Older versions, with which a lab reads its own files, compile it without them, so the pattern must match the same
    text either way.
    """
    return re.compile(source if sys.version_info >= (3, 11) else _without_plus(source), flags)  # noqa: TID251


def _without_plus(source: AnyStr) -> AnyStr:
    if isinstance(source, bytes):
        return re.sub(rb"(?<=[*+}])\+", b"", source)  # noqa: TID251  # of one length
    return re.sub(r"(?<=[*+}])\+", "", source)  # noqa: TID251  # of one length
