"""The parts and the words of tests' names, by which renamed tests are found. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain
from typing import NamedTuple

from bot.core.patterns import LETTER_OR_DIGIT, Pattern
from bot.results.compare.steps import StepBudget

MAX_WORDS = 64
"""Words of a name, and parts; longer ones are not looked at."""

Parts = tuple[str, ...]

_WORD = Pattern(rf"[{LETTER_OR_DIGIT}]+")
SIGNS = {code: " " for code in range(128) if not chr(code).isalnum()}
"""What parts the words of ASCII: with it, `str.translate` and `str.split` are ten times as fast as a pattern."""


class SplitName(NamedTuple):
    """A test's name: its parts, the words outside of brackets, and the brackets."""

    parts: Parts
    words: Parts
    brackets: str


# Not `SplitName(...)`: the constructor of a NamedTuple is one call more for each of thousands of names.
new_tuple = tuple.__new__


def split_names(tests: Collection[str], words_of: dict[str, Parts], steps: StepBudget) -> dict[str, SplitName]:
    """Split names; `words_of` remembers the words of parts, which thousands of names have in common."""
    steps.take(sum(map(len, tests)))
    names = {}
    begins: dict[str, tuple[Parts, Parts]] = {}
    for test in tests:
        bracket = test.find("[")
        outside, brackets = (test[:bracket], test[bracket:]) if bracket >= 0 else (test, "")
        outside = outside.replace("::", ".").replace("/", ".")
        cut = outside.rfind(".") + 1
        beginning, last = outside[:cut], outside[cut:]
        begin = begins.get(beginning)
        if begin is None:
            begin = begins[beginning] = _split(beginning, words_of)
        if last not in words_of:
            words_of[last] = words_in(last)
        parts, words = (*begin[0], last + brackets), begin[1] + words_of[last]
        if max(len(words), len(parts)) <= MAX_WORDS:
            names[test] = new_tuple(SplitName, (parts, words, brackets))
    return names


def _split(beginning: str, words_of: dict[str, Parts]) -> tuple[Parts, Parts]:
    """Return the parts and the words of a beginning that ends with a dot, or is empty."""
    parts = tuple(beginning[:-1].split(".", MAX_WORDS)) if beginning else ()
    for part in parts:
        if part not in words_of:
            words_of[part] = words_in(part)
    return parts, tuple(chain.from_iterable(map(words_of.__getitem__, parts)))


def words_in(part: str) -> Parts:
    """Return the words of a part of a name."""
    if part.isascii():
        return tuple(part.translate(SIGNS).split())
    return tuple(found[0] for found in _WORD.finditer(part))


def common_end(left: Parts, right: Parts) -> int:
    """Return how many parts at the end of two names are the same."""
    shorter = min(len(left), len(right))
    if left[len(left) - shorter :] == right[len(right) - shorter :]:  # as nearly always, and a loop costs more
        return shorter
    count = 0
    for one, other in zip(reversed(left), reversed(right), strict=False):
        if one != other:
            break
        count += 1
    return count
