"""One part of a path against a shell pattern."""

from __future__ import annotations

import pytest
from nightjar_lab.glob_parts import GlobPart


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("junit.xml", ["junit.xml"], ["junit-xml", "junit.xml2", "a-junit.xml", ""]),
        ("*", ["a", "", "a.b\n"], [".hidden"]),
        (".*", [".hidden", "."], ["a"]),
        ("*.xml", ["a.xml", "a.xml.xml"], ["a.xml2", ".xml", "a-xml"]),
        ("a*b*c", ["abc", "a-b-b-c-c", "abcbc"], ["ab", "acb", "abcd", "xabc"]),
        ("a?c", ["abc", "a.c", "a\nc"], ["ac", "abbc"]),
        ("[abc]x", ["ax", "cx"], ["dx", "x", "abx", "[abc]x"]),
        ("[!abc]x", ["dx", "!x"], ["ax", "x"]),
        ("[a-c]", ["a", "b", "c"], ["d", "-"]),
        ("[!a-c]", ["d", "-"], ["b"]),
        ("[]]", ["]"], ["[", "[]]"]),
        ("[!]]", ["a"], ["]"]),
        ("[.]?", [], [".a"]),
        ("[^a]", ["^", "a"], ["b"]),
        ("[\\d]", ["\\", "d"], ["1"]),
        ("[", ["["], [""]),
        ("[!]", ["[!]"], ["!"]),
        ("**", ["a", "", "a.b"], [".hidden"]),
    ],
)
def test_a_part_matches_as_in_a_shell(pattern: str, matching: list[str], others: list[str]) -> None:
    part = GlobPart(pattern)
    assert [name for name in [*matching, *others] if part.matches(name)] == matching


@pytest.mark.parametrize("text", ["**", "*", "[a]", "a?"])
def test_a_literal_part_matches_itself_alone(text: str) -> None:
    part = GlobPart(text, is_literal=True)
    assert (part.matches(text), part.matches("a"), part.is_any_folders) == (True, False, False)
    assert GlobPart(text).is_any_folders is (text == "**")
    assert GlobPart("a").is_literal


def test_an_invalid_range_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"^bad character range z-a$"):
        GlobPart("[z-a]")
