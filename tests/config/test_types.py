import pytest

from bot.config import matches


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("main", "main", True),
        ("main", "Main", False),
        ("main", "maintenance", False),
        ("release/*", "release/1.0/fix", True),
        ("*/pr-head", "cpu/pr-head", True),
        ("*/pr-head", "pr-head", False),
        ("v?.[0-9]", "v1.5", True),
        ("v[!0-9]", "v1", False),
        ("a.c", "abc", False),
    ],
)
def test_patterns_are_those_of_a_shell(pattern: str, name: str, expected: bool) -> None:
    assert matches(("nothing-like-it", pattern), name) is expected


def test_an_empty_list_of_patterns_matches_nothing() -> None:
    assert not matches((), "main")


def test_a_hostile_pattern_is_matched_quickly() -> None:
    assert not matches(["a*" * 120 + "b"], "a" * 10_000)
