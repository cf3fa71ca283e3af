"""A pattern that repeats all letters of the world a hundred times takes megabytes in each model that checks it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nightjar_formats.patterns import Re2Pattern

import bot.app.features as all_features
from bot.core.patterns import Pattern

SCHEMAS = [Path(__file__).parents[2] / "docs" / name for name in ("app.schema.json", "nightjar.schema.json")]
MOST_STEPS = 15_000
"""Instructions of RE2 for one pattern, each of about 16 bytes."""
OURS = ("bot.", "handlers.", "nightjar_formats.")
UNICODE = {r"\w": r"\p{L}\p{N}_", r"\s": r"\t-\r\x1c-\x20\x85\p{Z}"}
"""Classes that RE2 knows for ASCII only, and pydantic's own expressions for all letters."""


def patterns_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(pattern := schema.get("pattern"), str):
            yield pattern
        for value in schema.values():
            yield from patterns_of(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from patterns_of(value)


def steps_of(pattern: Pattern) -> int:
    pattern.search("")  # which compiles it
    match: Any = pattern._matched
    return int(match.__self__.ProgramSize())


def widened(pattern: str) -> str:
    for ascii_class, letters in UNICODE.items():
        pattern = pattern.replace(f"[{ascii_class}", f"[{letters}").replace(f"^{ascii_class}", f"^{letters}")
        pattern = pattern.replace(ascii_class, f"[{letters}]")
    return pattern


def test_no_pattern_of_a_key_is_large() -> None:
    patterns = {pattern for path in SCHEMAS for pattern in patterns_of(json.loads(path.read_text(encoding="utf-8")))}
    assert len(patterns) > 20
    large = {pattern: steps_of(Pattern(widened(pattern))) for pattern in patterns}
    assert {pattern: steps for pattern, steps in large.items() if steps > MOST_STEPS} == {}


def test_no_pattern_of_the_bot_is_large() -> None:
    assert all_features.ALL_FEATURES  # which imports all of them
    modules = [module for name, module in sys.modules.items() if name.startswith(OURS)]
    compiled = [value for module in modules for value in vars(module).values() if isinstance(value, Re2Pattern)]
    assert len(compiled) > 100
    assert {pattern.source: steps for pattern in compiled if (steps := steps_of(pattern)) > MOST_STEPS} == {}
