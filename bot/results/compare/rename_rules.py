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
    """A change of one or many names: the text `old` became the text `new`."""

    kind: RenameKind
    old: str = ""
    new: str = ""


def rules_of(pairs: Iterable[tuple[str, str]]) -> list[tuple[RenameRule, int]]:
    """Return the rules that explain pairs of old and new names, each with its number of pairs, the largest first."""
    counted = Counter(_rule(old_name, new_name) for old_name, new_name in pairs)
    return sorted(counted.items(), key=lambda rule: (-rule[1], rule[0].kind.value, rule[0][1:]))


def _rule(old_name: str, new_name: str) -> RenameRule:
    old_parts, new_parts = _parts(old_name), _parts(new_name)
    end = _common_length(old_parts[::-1], new_parts[::-1])
    old_parts, new_parts = old_parts[: len(old_parts) - end], new_parts[: len(new_parts) - end]
    beginning = _common_length(old_parts, new_parts)
    left_out, added = "".join(old_parts[beginning:]), "".join(new_parts[beginning:])
    old_words, new_words = _words(old_name), _words(new_name)
    if old_words == new_words:
        return RenameRule(RenameKind.REORDERED)
    if not added:
        return RenameRule(RenameKind.PART_DROPPED if beginning else RenameKind.PREFIX_DROPPED, left_out)
    if not left_out:
        return RenameRule(RenameKind.PART_ADDED if beginning else RenameKind.PREFIX_ADDED, new=added)
    if end:
        return RenameRule(RenameKind.REPLACED, "".join(old_parts), "".join(new_parts))
    dropped_words, added_words = _sorted_text(old_words - new_words), _sorted_text(new_words - old_words)
    if dropped_words and added_words:
        return RenameRule(RenameKind.REPLACED, dropped_words, added_words)
    return (
        RenameRule(RenameKind.WORDS_DROPPED, dropped_words)
        if dropped_words
        else RenameRule(RenameKind.WORDS_ADDED, new=added_words)
    )


def _parts(name: str) -> list[str]:
    """Return the parts of a name, each with the separator after it; brackets belong to the last part."""
    outside, bracket, inside = name.partition("[")
    parts = [match[0] for match in _PART.finditer(outside)]
    return [*parts[:-1], (parts[-1] if parts else "") + bracket + inside]


def _words(name: str) -> Counter[str]:
    return Counter(match[0] for match in _WORD.finditer(name))


def _sorted_text(words: Counter[str]) -> str:
    return " ".join(sorted(words))


def _common_length(left: list[str], right: list[str]) -> int:
    count = 0
    for left_part, right_part in zip(left, right, strict=False):
        if left_part != right_part:
            break
        count += 1
    return count
