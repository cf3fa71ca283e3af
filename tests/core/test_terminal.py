from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.terminal import escape_controls, quoted_text

from bot.core.terminal import _width, table


def test_columns_are_as_wide_as_their_widest_cell_on_the_screen() -> None:
    rows = [("a", "long cell", "x"), ("日本", "b", ""), ("e\u0301", "c", "y")]
    assert table(("ONE", "TWO", "THREE"), rows).splitlines() == [
        "ONE   TWO        THREE",
        "a     long cell  x",
        "日本  b",
        "e\u0301     c          y",
    ]


def test_nothing_in_a_cell_can_end_the_line_or_move_the_cursor() -> None:
    hostile = "a\nb\r\x1b[2J\x07\u2028\u202e"
    assert escape_controls(hostile) == "a\\nb\\r\\x1b[2J\\x07\\u2028\\u202e"
    assert len(table(("X",), [(hostile,)]).splitlines()) == 2


def test_a_value_in_a_message_is_quoted_and_always_printable() -> None:
    assert quoted_text("it's\n\x1b[2J\ud800") == '"it\'s\\n\\x1b[2J\\ud800"'


def test_the_last_column_is_truncated_to_the_width() -> None:
    rows = [("a" * 10, "b" * 80), ("a", "日本" * 20), ("a", "short")]
    lines = table(("ONE", "TWO"), rows, width=60).splitlines()
    assert lines[1:] == [
        "a" * 10 + "  " + "b" * 47 + "…",
        "a" + " " * 11 + "日本" * 11 + "日…",
        "a" + " " * 11 + "short",
    ]


@given(st.text(alphabet="ab日本e\u0301\u0300 ", max_size=80))
def test_a_truncated_cell_holds_as_many_characters_as_fit(text: str) -> None:
    [_, line] = table(("",), [(text,)], width=30).splitlines() if text.strip() else ["", ""]
    visible = line.removesuffix("…")
    assert text.startswith(visible)
    assert _width(line) <= 30
    if visible != text.rstrip():
        assert _width(visible + text[len(visible)]) > 29


def test_a_truncated_cell_keeps_a_minimum_width_even_if_the_line_becomes_too_long() -> None:
    assert table(("ONE", "TWO"), [("a" * 70, "b" * 80)], width=60).splitlines()[1] == "a" * 70 + "  " + "b" * 29 + "…"
