from bot.core.terminal import printable, table


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
    assert printable(hostile) == "a\\nb\\r\\x1b[2J\\x07\\u2028\\u202e"
    assert len(table(("X",), [(hostile,)]).splitlines()) == 2
