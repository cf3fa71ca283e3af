"""The parts and the words of tests' names, by which renamed tests are found. No I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from bot.core.patterns import LETTER_OR_DIGIT, Pattern
from bot.results.compare.steps import StepBudget

MAX_WORDS = 64
"""Words of a name, and parts, at most; the search ignores longer names."""

Parts = tuple[str, ...]

_WORD = Pattern(rf"[{LETTER_OR_DIGIT}]+")
SIGNS = {code: " " for code in range(128) if not chr(code).isalnum()}
"""The separators of ASCII words. `str.translate` and `str.split` with it are ten times as fast as a pattern."""


class Beginning(NamedTuple):
    """The text of a name before its last part. All names with this beginning share the object."""

    text: str
    parts: Parts
    words: Parts


class SplitName(NamedTuple):
    """A test's name, split: its parts, its words outside of brackets, the brackets, and the text before the last part.

    `tests/ir/test_a.py::test_add[int8]` has the parts `tests`, `ir`, `test_a`, `py`, `test_add[int8]`.
    """

    parts: Parts
    words: Parts
    brackets: str
    beginning: Beginning


# Not `SplitName(...)`: the constructor of a NamedTuple is one call more for each of thousands of names.
new_tuple = tuple.__new__


def split_names(tests: Collection[str], words_of: dict[str, Parts], steps: StepBudget) -> dict[str, SplitName]:
    """Split names; `words_of` caches the words of parts, which thousands of names share."""
    steps.take(sum(map(len, tests)))
    names = {}
    beginnings: dict[str, Beginning] = {}
    has_brackets = "[" in "".join(tests)
    outside = [test.partition("[")[0] for test in tests] if has_brackets else [*tests]
    brackets = ""
    for test, bare, (text, dot, last) in zip(tests, outside, _cut_at_last_dot(outside), strict=True):
        text += dot
        beginning = beginnings.get(text)
        if beginning is None:
            beginning = beginnings[text] = _split(text, words_of)
        if (words := words_of.get(last)) is None:
            words = words_of[last] = words_in(last)
        if has_brackets:
            brackets = test[len(bare) :]
            last += brackets
        parts, words = (*beginning[1], last), beginning[2] + words
        if len(words) <= MAX_WORDS and len(parts) <= MAX_WORDS:
            names[test] = new_tuple(SplitName, (parts, words, brackets, beginning))
    return names


def _cut_at_last_dot(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each name's beginning, its last dot and its last part; slashes and double colons count as dots."""
    joined_names = "\n".join(names)
    # One string of all names is faster, unless a name has a line break.
    is_joined = joined_names.count("\n") < len(names)
    for text in [joined_names] if is_joined else names:
        dotted = text.replace("::", ".").replace("/", ".")
        yield from [name.rpartition(".") for name in (dotted.split("\n") if is_joined else [dotted])]


def _split(text: str, words_of: dict[str, Parts]) -> Beginning:
    """Split a beginning that ends with a dot, or is empty."""
    parts = tuple(text[:-1].split(".", MAX_WORDS)) if text else ()
    for part in parts:
        if part not in words_of:
            words_of[part] = words_in(part)
    return Beginning(text, parts, tuple(chain.from_iterable(map(words_of.__getitem__, parts))))


def words_in(part: str) -> Parts:
    """Return the words of a part of a name."""
    if part.isascii():
        return tuple(part.translate(SIGNS).split())
    return tuple(match[0] for match in _WORD.finditer(part))


def common_end(left: Parts, right: Parts) -> int:
    """Return how many parts at the end of two names are the same."""
    shorter = min(len(left), len(right))
    if left[len(left) - shorter :] == right[len(right) - shorter :]:  # nearly always, and cheaper than the loop
        return shorter
    count = 0
    for left_part, right_part in zip(reversed(left), reversed(right), strict=False):
        if left_part != right_part:
            break
        count += 1
    return count
