r"""Match patterns against text from a report: with RE2 if it is installed, as on every server, else with Python's `re`.

A server reads text from others, so it needs RE2, whose time is linear in the text. A lab reads its own files, so
Python's `re` is good enough. Both use RE2's syntax (https://github.com/google/re2/wiki/Syntax): `\s`, `\w`, `\d` and
`\b` match only ASCII, and `$` is the end of the text, not the place before a last line end.
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
"""The characters that `str.isspace` accepts, for use inside brackets: `[{SPACE}]`."""
