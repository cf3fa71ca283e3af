r"""Match patterns against text from outside, in time linear in the text.

Python's `re` backtracks: one line that somebody chose can keep it busy for hours, with the interpreter's lock held. RE2
does not (https://github.com/google/re2/wiki/WhyRE2), so it has no look-around and no back-references; code that needs
either checks the neighbors of a match itself. The linter refuses `re` elsewhere. `nightjar_formats.patterns` defines a
pattern, also for labs, which have no RE2; this module adds what only the server needs.

Differences from `re` that matter here (https://github.com/google/re2/wiki/Syntax): `\s`, `\w`, `\d` and `\b` know only
ASCII, so this module has SPACE and LETTER_OR_DIGIT; `$` is the end of the text, not the place before a last line end.

One search is linear. Many in a row (`finditer`, `sub`, `split`) are linear if no search has to read far behind its
match to find its end: what may follow an unbounded repetition must not be what the next match begins with.
"""

from __future__ import annotations

from functools import lru_cache

# google-re2 has no type information.
import re2  # type: ignore[import-untyped]
from nightjar_formats.normal_forms import normalized
from nightjar_formats.patterns import HAS_RE2, MAX_MEMORY, SPACE, Pattern, PatternMatch, without_half_pairs

__all__ = [
    "LETTER_OR_DIGIT",
    "MAX_MEMORY",
    "SPACE",
    "Pattern",
    "PatternMatch",
    "escape_pattern",
    "glob",
    "is_glob",
    "normalized",
    "without_half_pairs",
]

if not HAS_RE2:
    raise ImportError("the module re2 is not that of google-re2", name="re2")

LETTER_OR_DIGIT = r"\p{L}\p{N}"
"""The characters that `str.isalnum` accepts, for use inside brackets."""
_WILD = frozenset("*?[")


def is_glob(text: str) -> bool:
    """Return whether a text, read as a shell pattern, may match other texts than itself."""
    return not _WILD.isdisjoint(text)


@lru_cache(maxsize=128)
def glob(pattern: str) -> Pattern:
    """Return a shell pattern as `fnmatch.fnmatchcase` reads it: `*` (which also matches `/`), `?`, `[abc]`, `[!a-c]`.

    The standard library's own takes time that grows with the product of both lengths.
    """
    parts, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        closing = pattern.find("]", position + (3 if pattern[position + 1 : position + 2] == "!" else 2))
        position += 1
        if character == "[" and closing > 0:
            parts.append(_one_of(pattern[position:closing]))
            position = closing + 1
        else:
            parts.append({"*": ".*", "?": "."}.get(character) or escape_pattern(character))
    return Pattern("".join(parts), dot_is_any=True)


def _one_of(inside: str) -> str:
    negated, inside = inside.startswith("!"), inside.removeprefix("!")
    ranges, position = [], 0
    while position < len(inside):
        is_range = inside[position + 1 : position + 2] == "-" and position + 2 < len(inside)
        first, last = inside[position], inside[position + 2] if is_range else inside[position]
        if first <= last:
            ranges.append(f"\\x{{{ord(first):x}}}-\\x{{{ord(last):x}}}")
        position += 3 if is_range else 1
    if ranges:
        return f"[{'^' if negated else ''}{''.join(ranges)}]"
    return "." if negated else r"[^\x00-\x{10ffff}]"


def escape_pattern(text: str) -> str:
    """Return a pattern that matches this text and nothing else."""
    escaped: str = re2.escape(without_half_pairs(text))
    return escaped
