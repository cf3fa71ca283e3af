"""Long texts are read in a thread, short ones in the event loop."""

import sys
import threading

import pytest

from bot.core.run_in_thread import LONG_TEXT, run_in_thread, shorten_thread_switch_interval


@pytest.mark.parametrize(
    ("texts", "in_thread"),
    [
        (("x" * LONG_TEXT,), False),
        (("x" * (LONG_TEXT + 1),), True),
        (("x" * LONG_TEXT, "x"), True),
        ((None, "x"), False),
    ],
)
async def test_only_long_texts_are_read_in_a_thread(texts: tuple[str | None, ...], in_thread: bool) -> None:
    own_thread = threading.get_ident()
    assert (await run_in_thread(threading.get_ident, *texts) != own_thread) is in_thread


async def test_an_exception_in_the_thread_is_raised() -> None:
    def read() -> None:
        raise ValueError("not like this")

    with pytest.raises(ValueError, match="not like this"):
        await run_in_thread(read, "x" * 2 * LONG_TEXT)


def test_threads_switch_more_often_than_by_default() -> None:
    interval = sys.getswitchinterval()
    try:
        shorten_thread_switch_interval()
        assert sys.getswitchinterval() < interval
    finally:
        sys.setswitchinterval(interval)
