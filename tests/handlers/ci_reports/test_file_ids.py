"""Files and modules in which a test may be, by its ID."""

from __future__ import annotations

import pytest

from handlers.ci_reports.outcomes import file_ids


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("tests/test_dma.py::test_copy", ["tests/test_dma.py"]),
        ("tests/test_dma.py::Dma::test_copy[a.b]", ["tests/test_dma.py"]),
        ("tests.test_dma.Dma::test_copy", ["tests.test_dma.Dma", "tests.test_dma", "tests"]),
        ("Dma::test_copy", ["Dma"]),
        ("tests/test_dma.py", []),
    ],
)
def test_the_places_of_a_test(test: str, expected: list[str]) -> None:
    assert list(file_ids(test)) == expected
