"""Order tests by operator, and divide them into pages that no operator crosses. No I/O.

A test ID such as `test_conv2d[xnnpack-float32]` names an operator, and in brackets the flow with its parameters.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class OperatorOrder(NamedTuple):
    """Tests by operator, as ordinals of their names; the tests of an operator are in the order of their arrival.

    `starts` has the index of the first test of each operator, and at its end the number of tests. `measurements` is how
    many measurements the suite had then.
    """

    tests: Sequence[int]
    starts: Sequence[int]
    measurements: int = 0

    def with_text(self, names: Sequence[str], text: str) -> OperatorOrder:
        """Return the order of those tests whose name contains a text in lower case; `names` has all of the suite."""
        return order_of((test for test in self.tests if text in names[test].lower()), names) if text else self

    def pages(self, most: int) -> list[tuple[int, int]]:
        """Return the first and the last index of each page, the last one exclusive.

        A page has `most` tests at the most, or one operator that has more.
        """
        pages, start = list[tuple[int, int]](), 0
        while start < len(self.tests):
            number = bisect_right(self.starts, start + most) - 1
            end = self.starts[number]
            if end <= start:
                end = self.starts[number + 1]
            pages.append((start, end))
            start = end
        return pages


def operator_and_flow(test: str) -> tuple[str, str]:
    """Return what a test ID says of the operator and of the flow, which is in brackets at its end.

    >>> operator_and_flow("tests/test_ops.py::test_conv2d[xnnpack-float32]")
    ('tests/test_ops.py::test_conv2d', 'xnnpack-float32')
    """
    operator, bracket, flow = test.partition("[")
    return (operator, flow.removesuffix("]")) if bracket else (test, "")


def order_of(tests: Iterable[int], names: Sequence[str]) -> OperatorOrder:
    """Return the order of tests that are given in the order of their arrival, or by operator already."""
    operators = {test: operator_and_flow(names[test])[0] for test in tests}
    ordered = sorted(operators, key=operators.__getitem__)
    starts = array("I")
    before = None
    for index, test in enumerate(ordered):
        if (operator := operators[test]) != before:
            starts.append(index)
            before = operator
    starts.append(len(ordered))
    return OperatorOrder(array("I", ordered), starts)
