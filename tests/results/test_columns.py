"""A run as columns: the meaning of bytes, and how runs are merged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.columns import (
    FLAKY,
    STATUS_BYTES,
    at,
    differences,
    duration,
    duration_code,
    is_flaky,
    is_flip,
    merged,
    status_byte,
    status_of,
)
from nightjar_formats.columns.collect import Reason, read_names
from nightjar_formats.limits import MAX_SECONDS
from nightjar_formats.model import BAD, Status, Trouble

from bot.results.store.tables.blobs import Reasons, names_blob, read_reason, read_reasons, reasons_blob

LONGEST = 16_000.0

statuses = st.tuples(st.sampled_from(Status), st.booleans()).map(lambda pair: status_byte(*pair))
columns = st.lists(st.one_of(st.just(0), statuses), max_size=300).map(bytes)


@given(st.floats(min_value=0, max_value=LONGEST))
def test_a_duration_is_stored_to_three_percent_or_half_a_millisecond(seconds: float) -> None:
    stored = duration(duration_code(seconds))
    assert stored is not None
    assert abs(stored - seconds) <= max(0.03 * seconds, 0.000501)


def test_a_missing_duration_stays_missing_and_a_day_is_read_as_more_than_four_hours() -> None:
    assert duration(duration_code(None)) is None
    assert duration_code(86400.0) == duration_code(MAX_SECONDS) == 255
    assert (duration(255) or 0) > 4.5 * 3600


@given(statuses)
def test_a_byte_holds_the_status_of_a_test(byte: int) -> None:
    status = status_of(byte)
    assert status is not None
    assert 0 < byte < STATUS_BYTES
    assert status_byte(status, is_flaky(byte)) == byte


@given(st.lists(columns, min_size=1, max_size=4))
def test_the_last_run_that_has_a_test_decides_its_status(runs: list[bytes]) -> None:
    result = merged(runs)
    for ordinal in range(max(map(len, runs))):
        bytes_of_test = [at(run, ordinal) for run in runs if at(run, ordinal)]
        ended = {status_of(byte) for byte in bytes_of_test}
        mixed = bool(ended & BAD) and bool(ended & {Status.PASSED, Status.XFAILED, Status.XPASSED})
        assert status_of(at(result, ordinal)) == (status_of(bytes_of_test[-1]) if bytes_of_test else None)
        assert is_flaky(at(result, ordinal)) == (mixed or any(map(is_flaky, bytes_of_test)))


@given(columns, columns)
def test_all_differences_are_found(old: bytes, new: bytes) -> None:
    ordinals = range(max(len(old), len(new)))
    assert list(differences(old, new)) == [ordinal for ordinal in ordinals if at(old, ordinal) != at(new, ordinal)]


@pytest.mark.parametrize(
    ("before", "after", "flip"),
    [
        (status_byte(Status.PASSED), status_byte(Status.FAILED), True),
        (status_byte(Status.ERRORED), status_byte(Status.XPASSED), True),
        (status_byte(Status.FAILED), status_byte(Status.ERRORED), False),
        (status_byte(Status.PASSED), status_byte(Status.SKIPPED), False),
        (status_byte(Status.PASSED), 0, False),
        (status_byte(Status.PASSED), status_byte(Status.PASSED) | FLAKY, True),
        (status_byte(Status.PASSED) | FLAKY, status_byte(Status.PASSED), False),
    ],
)
def test_a_flip_is_a_change_between_good_and_bad_or_to_flaky(before: int, after: int, flip: bool) -> None:
    assert is_flip(before, after) is flip


names = st.lists(st.text(min_size=1).map(lambda name: name.replace("\n", "")), unique=True, max_size=30)


@given(names, st.integers(1, 9))
def test_names_are_read_back_in_order(names: list[str], size: int) -> None:
    written = [names_blob(names[start : start + size]) for start in range(0, len(names), size)]
    assert list(read_names(written)) == names


def test_names_beyond_one_block_are_read_back() -> None:
    many = [f"tests/test_{number // 100}.py::test_{number}[é-{'x' * (number % 50)}]" for number in range(10_000)]
    assert list(read_names([names_blob(many)])) == many


reasons = st.builds(
    Reason,
    st.sampled_from(Trouble),
    st.text(max_size=5),
    st.integers(0, 9),
    st.text(max_size=3),
    st.one_of(st.none(), st.integers(1, 9)),
    st.sampled_from(["", '{"snr":Infinity}']),
)


@given(st.lists(reasons, min_size=1, max_size=5, unique=True), st.sets(st.integers(0, 500_000), max_size=9), st.data())
def test_reasons_are_read_back(whys: list[Reason], ordinals: set[int], data: st.DataObject) -> None:
    numbers = [data.draw(st.integers(0, len(whys) - 1)) for _ in ordinals]
    blob = reasons_blob(Reasons(sorted(ordinals), numbers, whys))
    assert read_reasons(blob) == Reasons(sorted(ordinals), numbers, whys)
    of_tests = dict(zip(sorted(ordinals), (whys[number] for number in numbers), strict=True))
    for ordinal in (0, *ordinals):
        assert read_reason(blob, ordinal) == of_tests.get(ordinal)
