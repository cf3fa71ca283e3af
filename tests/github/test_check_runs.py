"""The text of a check run stays within GitHub's limits, and says what was left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.check_runs import TEXT_LIMIT, Block, joined_blocks, shortened, size


def test_blocks_are_separated_and_empty_ones_leave_nothing() -> None:
    assert joined_blocks([Block("one", "a"), Block("two", ""), Block("three", "b")]) == "a\n\nb"


def test_a_block_that_does_not_fit_is_left_out_whole_and_named_once() -> None:
    long = Block("details", "é" * 40_000)
    text = joined_blocks([Block("why", "because"), long, long, Block("contacts", "somebody")])
    assert text == ("because\n\nsomebody\n\n*Left out, because GitHub limits the text of a check run: details.*")


@pytest.mark.no_cover
@given(st.lists(st.builds(Block, st.sampled_from(["a", "b"]), st.text() | st.just("é" * 20_000)), max_size=8))
def test_any_blocks_fit_into_the_limit(blocks: list[Block]) -> None:
    assert size(joined_blocks(blocks)) <= TEXT_LIMIT


@given(st.text(), st.integers(3, 30))
def test_a_truncated_text_fits_and_is_cut_between_characters(text: str, limit: int) -> None:
    cut = shortened(text, limit)
    assert size(cut) <= limit
    assert cut == text or (cut.endswith("…") and text.startswith(cut[:-1]))
