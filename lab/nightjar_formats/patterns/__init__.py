r"""Match patterns against text from a report: on RE2 where it is installed, as on every server, else on Python's `re`.

A server reads what others send, so it needs RE2, whose time is linear in the text. A lab reads its own files, and may
do so with what Python has. The syntax is RE2's for both (https://github.com/google/re2/wiki/Syntax): `\s`, `\w`, `\d`
and `\b` know ASCII only, and `$` is the end of the text, not the place before a last line end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nightjar_formats.patterns.with_re2 import Re2Pattern as Pattern
else:
    try:
        from nightjar_formats.patterns.with_re2 import Re2Pattern as Pattern
    except ImportError:
        from nightjar_formats.patterns.with_re import RePattern as Pattern

__all__ = ["SPACE", "Pattern"]

SPACE = r"\t-\r\x1c-\x20\x85\p{Z}"
"""What `str.isspace` calls space, to be written inside brackets: `[{SPACE}]`."""
