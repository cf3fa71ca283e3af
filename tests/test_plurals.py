"""No text says `1 tests`: a number and its noun come from `bot.core.listing.counted`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.core.listing import counted

ROOT = Path(__file__).parent.parent
PLURAL = re.compile(
    r"(?<!\bof )\{(?:count|number|jobs|rows|runs|tests|total|files)(?::,)?\} (?:(?:more|new|earlier|newest) )?(\w+s)\b"
)
"""A number, and a word behind it that ends like a plural; not `1 of 1 runs`."""
VERBS = {"as", "is", "was", "has", "reverts", "waits"}
SEVERAL = {
    "bot/engine/retry.py:LOST": "a job is lost more than once before it fails",
    "bot/results/report/texts.py:RENAMED": "RENAMED_ONE says it of one",
    "handlers/changed_files/texts.py:TOO_MANY_FILES": "more than GitHub lists",
    "handlers/ci_reports/texts.py:ARTIFACTS_LEFT_OUT": "more than are read",
    "handlers/dashboard/searches/texts.py:BARS": "a bar of one commit has its title",
    "handlers/device_tests/reproduce/texts.py:PASSED": "a test that passes runs several times",
    "handlers/docker_update/texts.py:TOO_MANY_IMAGES": "more than the maximum",
    "handlers/labs/texts.py:TOO_MANY_WAIT": "as many as may wait",
    "lab/nightjar_formats/columns/texts.py:LEFT_OUT": "the middle of a long text",
    "lab/nightjar_formats/readers/texts.py:JSON_CUT_OFF_AFTER": "a file of one byte is refused as no JSON",
    "lab/nightjar_formats/readers/texts.py:LONG_NAME_AND_CLASS": "more than the limit",
    "lab/nightjar_lab/suite/texts.py:OUTPUT_CUT": "the middle of a long output",
    "lab/nightjar_lab/texts.py:NOT_PACKED": "more than a run may have",
    "handlers/tracking_branches/texts.py:NONE_GREEN": "ONE_NOT_GREEN says it of one",
}
"""Texts about numbers that are never one, with the reason."""


def plurals(path: str, source: str) -> Iterator[str]:
    """Name the constants of a module whose text has a number with a plural, but pairs of singular and plural."""
    for node in ast.parse(source).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(str(text))) if set(PLURAL.findall(text)) - VERBS:
                yield f"{path}:{name}"


def test_a_number_has_the_noun_that_fits_it() -> None:
    modules = [path for folder in ("bot", "handlers", "lab") for path in (ROOT / folder).rglob("*.py")]
    assert len(modules) > 900
    names = {name for path in modules for name in plurals(path.relative_to(ROOT).as_posix(), path.read_text("utf-8"))}
    assert names - SEVERAL.keys() == set(), "write it with `counted`"
    assert SEVERAL.keys() - names == set(), "these are no longer needed"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs"), (1267, "1,267 jobs")], ids=["0", "1", "2", "1267"]
)
def test_a_plural_is_the_singular_with_an_s(number: int, text: str) -> None:
    assert counted(number, "job") == text


def test_other_plurals_are_given() -> None:
    assert counted(1, "more repository", "more repositories") == "1 more repository"
    assert counted(2, "more repository", "more repositories") == "2 more repositories"
