"""In which order a command runs a few tests at two commits, and how its files are named."""

from __future__ import annotations

import pytest
from nightjar_formats.runs.few_tests import BASE, HEAD, is_few_tests, side_of, turn_file_name, turns_of
from nightjar_formats.runs.file_names import MOST_OF_NAME


@pytest.mark.parametrize(
    ("repeat", "most_turns", "has_base", "repeats_itself", "turns"),
    [
        (3, 2, True, False, [(HEAD, 1), (BASE, 1), (BASE, 1), (HEAD, 1), (HEAD, 1), (BASE, 1)]),
        (5, 2, True, True, [(HEAD, 3), (BASE, 3), (BASE, 2), (HEAD, 2)]),
        (2, 4, True, True, [(HEAD, 1), (BASE, 1), (BASE, 1), (HEAD, 1)]),
        (5, 2, False, True, [(HEAD, 5)]),
        (2, 1, False, False, [(HEAD, 1), (HEAD, 1)]),
    ],
)
def test_turns_alternate_and_have_all_repeats(
    repeat: int, most_turns: int, has_base: bool, repeats_itself: bool, turns: list[tuple[str, int]]
) -> None:
    assert turns_of(repeat, most_turns, has_base=has_base, repeats_itself=repeats_itself) == turns


def test_names_of_runs_and_files() -> None:
    assert [is_few_tests(name) for name in ("tests-1", "n-tests-1", "nightly")] == [True, False, False]
    assert turn_file_name(BASE, 3, 1, "te.xml") == "base.3.1.te.xml"
    assert turn_file_name(HEAD, 1, 2, "x" * MOST_OF_NAME + "y") == f"head.1.2.{'x' * (MOST_OF_NAME - 1)}y"
    assert [side_of(name) for name in ("base.3.1.te.xml", "head.1.1.te.xml", "te.xml", "based.xml")] == [
        BASE, HEAD, HEAD, HEAD,
    ]  # fmt: skip
