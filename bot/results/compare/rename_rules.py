"""Summarize renames by rules: "the prefix `kernel.poll.` was dropped" explains a thousand pairs. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum, auto
from typing import NamedTuple

from bot.core.patterns import LETTER_OR_DIGIT, Pattern

_PART = Pattern(r"[^./:]*(?:\.py::|::|[./:])|[^./:]+")
_WORD = Pattern(rf"[{LETTER_OR_DIGIT}]+")


class RenameKind(Enum):
    """What a rule does to names."""

    PREFIX_DROPPED = auto()
    PREFIX_ADDED = auto()
    PART_DROPPED = auto()
    PART_ADDED = auto()
    REPLACED = auto()
    WORDS_DROPPED = auto()
    WORDS_ADDED = auto()
    REORDERED = auto()


class RenameRule(NamedTuple):
    """A change of one or many names: the text `before` became the text `after`."""

    kind: RenameKind
    before: str = ""
    after: str = ""


def rules_of(pairs: Iterable[tuple[str, str]]) -> list[tuple[RenameRule, int]]:
    """Return the rules that explain pairs of old and new names, each with its number of pairs, the largest first."""
    counted = Counter(_rule(before, now) for before, now in pairs)
    return sorted(counted.items(), key=lambda rule: (-rule[1], rule[0].kind.value, rule[0][1:]))


def _rule(before: str, now: str) -> RenameRule:
    old, new = _parts(before), _parts(now)
    end = _common(old[::-1], new[::-1])
    old, new = old[: len(old) - end], new[: len(new) - end]
    beginning = _common(old, new)
    left_out, added = "".join(old[beginning:]), "".join(new[beginning:])
    old_words, new_words = _words(before), _words(now)
    if old_words == new_words:
        return RenameRule(RenameKind.REORDERED)
    if not added:
        return RenameRule(RenameKind.PART_DROPPED if beginning else RenameKind.PREFIX_DROPPED, left_out)
    if not left_out:
        return RenameRule(RenameKind.PART_ADDED if beginning else RenameKind.PREFIX_ADDED, after=added)
    if end:
        return RenameRule(RenameKind.REPLACED, "".join(old), "".join(new))
    fewer, more = _shown(old_words - new_words), _shown(new_words - old_words)
    if fewer and more:
        return RenameRule(RenameKind.REPLACED, fewer, more)
    return RenameRule(RenameKind.WORDS_DROPPED, fewer) if fewer else RenameRule(RenameKind.WORDS_ADDED, after=more)


def _parts(name: str) -> list[str]:
    """Return the parts of a name, each with the separator after it; brackets belong to the last part."""
    outside, bracket, inside = name.partition("[")
    parts = [found[0] for found in _PART.finditer(outside)]
    return [*parts[:-1], (parts[-1] if parts else "") + bracket + inside]


def _words(name: str) -> Counter[str]:
    return Counter(found[0] for found in _WORD.finditer(name))


def _shown(words: Counter[str]) -> str:
    return " ".join(sorted(words))


def _common(left: list[str], right: list[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count
