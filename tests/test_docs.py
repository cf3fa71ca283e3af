import pytest

from bot.core.docs import replace_block, table

TEXT = "# Title\n<!-- generated: keys -->\nold\n<!-- end of generated: keys -->\nrest\n"


def test_a_block_is_replaced_between_its_markers() -> None:
    new = replace_block(TEXT, "keys", "new\nlines\n")
    assert new == "# Title\n<!-- generated: keys -->\nnew\nlines\n<!-- end of generated: keys -->\nrest\n"
    assert replace_block(new, "keys", "old") == TEXT


@pytest.mark.parametrize(
    "text",
    ["", TEXT + TEXT, TEXT.replace("end of", ""), "<!-- end of generated: keys -->\n<!-- generated: keys -->"],
)
def test_a_text_without_exactly_one_pair_of_markers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="each once"):
        replace_block(text, "keys", "new")


def test_bars_in_a_table_stay_inside_their_cell() -> None:
    assert table(["a", "b"], [["1", "x|y"]]) == "| a | b |\n| --- | --- |\n| 1 | x\\|y |"
