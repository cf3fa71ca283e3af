"""The tags of a title."""

import pytest

from bot.core.titles import folded, tags_of


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("[hexagon] Fix it", ("hexagon",)),
        ("[Hexagon][TIR] Fix it [ci]", ("Hexagon", "TIR", "ci")),
        ("[ hexagon ] Fix it", ("hexagon",)),
        ("[[hexagon]] Fix it", ("hexagon",)),
        ("[a, b,c] Fix it", ("a", "b", "c")),
        ("[a,,b,] Fix it", ("a", "b")),
        ("[a][a] Fix it", ("a",)),
        ("[skip ci] Fix it", ("skip ci",)),
        ("hexagon: fix it", ()),
        ("[hexagon", ()),
        ("", ()),
    ],
)
def test_tags_are_in_brackets_and_separated_by_commas(title: str, expected: tuple[str, ...]) -> None:
    assert tags_of(title) == expected


@pytest.mark.parametrize("title", ["[] Fix it", "[ ] Fix it", "[,] Fix it", "[][] Fix it"])
def test_empty_brackets_name_nothing(title: str) -> None:
    """TVM #11454, #11455: an empty tag mentioned people who had not subscribed to anything."""
    assert tags_of(title) == ()


def test_case_and_the_width_of_blanks_do_not_matter() -> None:
    assert folded(" Skip   CI ") == folded("skip ci") == "skip ci"
