import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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


@given(st.text(max_size=30) | st.text(st.sampled_from("ab-]*?![/. ()"), max_size=30))
@example("test [cpu]")
@example("build [!arm]")
@example("[a-c]*?")
def test_a_name_matches_itself_whatever_characters_of_patterns_it_has(name: str) -> None:
    assert matches((name,), name)
    assert matches(("nothing-like-it", name), name)
