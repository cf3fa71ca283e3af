"""What a few tests did, from the reports of their run."""

from __future__ import annotations

import io

import pytest
from nightjar_formats.refused import Refused

from bot.results.few_tests import FewTestsOutcome
from bot.results.ingest.attempts import MOST_ATTEMPTS, read_attempts
from bot.results.ingest.parse import parse_run

FILE, TEST = "tests/test_ops.py", "tests/test_ops.py::test_add"


def test_a_report_with_thousands_of_attempts_counts_as_many_as_a_job_may_ask_for() -> None:
    case = '<testcase classname="tests.test_ops" name="test_add">{}</testcase>'
    cases = "".join(case.format('<failure message="lost"/>' if number % 2 else "") for number in range(5000))
    reports = [io.BytesIO(f"<testsuite>{cases}</testsuite>".encode()) for _ in range(3)]
    names = [("head.1.1.t.xml", None), ("base.2.1.t.xml", None), ("head.3.1.t.xml", None)]
    outcome = read_attempts(reports, names, frozenset({FILE}), [TEST], 60.0)
    for attempts in (outcome.of(TEST), outcome.of(TEST, "base")):
        assert (attempts.attempts, attempts.failed) == (MOST_ATTEMPTS, MOST_ATTEMPTS / 2)
        assert sum(kind.count for kind in attempts.kinds) == attempts.failed
    assert FewTestsOutcome.load(outcome.dump()) == outcome


@pytest.mark.parametrize("content", [b"<testsuite", b"no report"])
def test_a_refusal_names_its_file_once(content: bytes) -> None:
    with pytest.raises(Refused) as refusal:
        parse_run([io.BytesIO(content)], [("gpu.xml", None)], frozenset())
    assert str(refusal.value).count("gpu.xml") == 1
