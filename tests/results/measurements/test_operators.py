"""The tests that measure something are in the order of their operators, on pages that no operator crosses."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.measurements import Measurement

from bot.results.store.measurements.lists import measuring_suites, metrics_of_tests, operator_order
from bot.results.store.store import ResultsStore
from bot.results.store.tables.names import all_names, cache_of
from bot.results.store.tables.operators import OperatorOrder, operator_and_flow
from tests.results.uploads import REPOSITORY, Upload
from tests.tables import with_tables


@given(st.lists(st.integers(1, 30), max_size=30), st.integers(1, 25))
def test_a_page_ends_before_an_operator_that_it_has_no_room_for(sizes: list[int], most: int) -> None:
    starts = [sum(sizes[:number]) for number in range(len(sizes) + 1)]
    pages = OperatorOrder(range(starts[-1]), starts).pages(most)
    assert [test for start, end in pages for test in range(start, end)] == list(range(starts[-1]))
    for number, (start, end) in enumerate(pages):
        assert {start, end} <= set(starts)
        assert end - start <= most or starts.index(end) == starts.index(start) + 1, "one operator has more tests"
        if number + 1 < len(pages):
            following = starts[starts.index(end) + 1]
            assert following - start > most, "the next operator has no room"


def read_mapped(connection: sa.Connection, text: str) -> list[str]:
    (suite,) = measuring_suites(connection, REPOSITORY)
    names = all_names(connection, suite.row)
    order = operator_order(connection, suite.row, "latency").with_text(names, text)
    metrics = metrics_of_tests(connection, suite.row, "latency", order.tests)
    return [f"{names[metric.ordinal]} {metric.metric.unit}" for metric in metrics]


def test_what_is_measured_first_in_a_later_run_is_in_the_order_too(tmp_path: Path) -> None:
    store = ResultsStore(with_tables(f"sqlite:///{tmp_path}/results.db"))
    store.open()

    def measure(night: int, *tests: str, unit: str = "ms") -> None:
        measured = {test: (Measurement("latency", 1.0 + night, unit), Measurement("size", 5.0)) for test in tests}
        upload = Upload(night, dict.fromkeys([*tests, "test_silent"], "passed"), measured=measured)
        store.put(upload.run, upload.columns)

    def mapped(text: str = "") -> list[str]:
        return store.read(read_mapped, text)

    measure(1, "test_pool[b]", "test_conv[b]", "test_add")
    assert mapped() == ["test_add ms", "test_conv[b] ms", "test_pool[b] ms"]
    measure(2, "test_conv[a]", "test_pool[b]")
    expected = ["test_add ms", "test_conv[b] ms", "test_conv[a] ms", "test_pool[b] ms"]
    assert mapped() == expected == mapped()
    measure(3, "test_add", unit="us")
    assert mapped("add") == ["test_add ms", "test_add us"]
    assert mapped("[a]") == ["test_conv[a] ms"]
    store.close()


def cached_orders(connection: sa.Connection, *names: str) -> int:
    (suite,) = measuring_suites(connection, REPOSITORY)
    for name in names:
        operator_order(connection, suite.row, name)
    return len(cache_of(connection).orders)


def test_what_nobody_measures_takes_no_memory_whoever_requests_it(tmp_path: Path) -> None:
    store = ResultsStore(with_tables(f"sqlite:///{tmp_path}/results.db"))
    store.open()
    upload = Upload(1, {"test_add": "passed"}, measured={"test_add": (Measurement("latency", 1.0, "ms"),)})
    store.put(upload.run, upload.columns)
    assert store.read(cached_orders, "latency", "made-up", "made-up-too") == 1
    store.close()


@pytest.mark.parametrize(
    ("test", "parts"), [("a.py::test_conv[x[1]]", ("a.py::test_conv", "x[1]")), ("test_add", ("test_add", ""))]
)
def test_an_operator_is_what_stands_before_the_bracket(test: str, parts: tuple[str, str]) -> None:
    assert operator_and_flow(test) == parts
