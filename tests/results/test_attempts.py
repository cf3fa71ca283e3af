"""What a few tests did, from the reports of their run."""

from __future__ import annotations

import io

import pytest
from nightjar_formats.refused import Refused

from bot.results.few_tests import FewTestsOutcome, MedianValue, TestAttempts, job_of_run
from bot.results.ingest.attempts import (
    MOST_ATTEMPTS,
    MOST_CAUSES,
    MOST_MEDIANS,
    MOST_TEXT,
    MOST_TEXTS,
    read_attempts,
    read_benchmark,
)
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


def case_xml(test: str, *measured: tuple[str, str], failure: str = "") -> str:
    """Return a test case with what it measured: names and texts of measurements."""
    properties = "".join(f'<property name="measurement.{name}" value="{text}"/>' for name, text in measured)
    return (
        f'<testcase classname="tests.test_ops" name="{test}"><properties>{properties}</properties>{failure}</testcase>'
    )


def test_attempts_have_the_median_of_what_they_measured_even_if_they_failed() -> None:
    failed = '<failure message="too slow"/>'
    cases = [
        case_xml("test_add", ("latency", "412 ms lower"), ("size", "7 B")),
        case_xml("test_add", ("latency", "900 ms lower"), failure=failed),
        case_xml("test_add", ("latency", "414 ms lower")),
        case_xml("test_add", ("latency", "0.4 s lower")),
    ]
    report = io.BytesIO(f"<testsuite>{''.join(cases)}</testsuite>".encode())
    outcome = read_attempts([report], [("head.1.1.t.xml", None)], frozenset({FILE}), [TEST], 60.0)
    attempts = outcome.of(TEST)
    assert (attempts.attempts, attempts.failed) == (4, 1)
    assert attempts.medians == (
        MedianValue("latency", "ms", 414.0),
        MedianValue("size", "B", 7.0),
        MedianValue("latency", "s", 0.4),
    )
    assert (attempts.median("latency", "s"), attempts.median("latency", "h")) == (0.4, None)
    assert FewTestsOutcome.load(outcome.dump()) == outcome


def test_the_medians_of_a_run_are_limited() -> None:
    names = [f"test_{number}" for number in range(100)]
    measured = [(f"m{number}", "1") for number in range(60)]
    report = io.BytesIO(f"<testsuite>{''.join(case_xml(name, *measured) for name in names)}</testsuite>".encode())
    tests = [f"{FILE}::{name}" for name in names]
    outcome = read_attempts([report], [("head.1.1.t.xml", None)], frozenset({FILE}), tests, 60.0)
    assert sum(len(attempts.medians) for attempts in outcome.head.values()) == MOST_MEDIANS


def test_the_causes_of_a_test_are_limited_to_the_first_ones() -> None:
    names = [chr(ord("a") + number // 26) + chr(ord("a") + number % 26) for number in range(MOST_CAUSES + 1)]
    failures = [f'<failure message="lost the device {name}"/>' for name in (*names, names[0], names[0], names[-1])]
    report = io.BytesIO(
        f"<testsuite>{''.join(case_xml('test_add', failure=each) for each in failures)}</testsuite>".encode()
    )
    outcome = read_attempts([report], [("head.1.1.t.xml", None)], frozenset({FILE}), [TEST], 60.0)
    kinds = [(kind.message, kind.count) for kind in outcome.of(TEST).kinds]
    assert kinds[:2] == [("lost the device aa", 3), ("lost the device ab", 1)]
    assert outcome.of(TEST).failed == MOST_CAUSES + 4


def test_the_texts_of_a_run_are_limited_and_one_without_room_is_left_out() -> None:
    long, short = f'<failure message="lost">{"x" * 5_000}</failure>', '<failure message="lost">short</failure>'
    names = [f"test_{number:02}" for number in range(MOST_TEXTS // MOST_TEXT + 1)]
    # The first text is short, so the room that is left is too small for one more long text, but not for a short one.
    cases = [case_xml(name, failure=short if name == names[0] else long) for name in names]
    cases.append(case_xml("test_last", failure=short))
    report = io.BytesIO(f"<testsuite>{''.join(cases)}</testsuite>".encode())
    tests = [f"{FILE}::{name}" for name in (*names, "test_last")]
    outcome = read_attempts([report], [("head.1.1.t.xml", None)], frozenset({FILE}), tests, 60.0)
    texts = [kind.text for test in tests for kind in outcome.of(test).kinds]
    assert list(map(len, texts)) == [5, *[MOST_TEXT] * (MOST_TEXTS // MOST_TEXT - 1), 0, 5]


def test_an_outcome_that_was_stored_without_medians_is_read() -> None:
    stored = '{"head": {"a": {"passed": 1, "failed": 2, "skipped": 0, "kinds": []}}, "base": {}, "seconds": 1.0}'
    assert FewTestsOutcome.load(stored).of("a") == TestAttempts(1, 2)


@pytest.mark.parametrize("content", [b"<testsuite", b"no report"])
def test_a_refusal_names_its_file_once(content: bytes) -> None:
    with pytest.raises(Refused) as refusal:
        parse_run([io.BytesIO(content)], [("gpu.xml", None)], frozenset())
    assert str(refusal.value).count("gpu.xml") == 1


def test_a_file_is_read_in_the_format_that_the_manifest_names() -> None:
    report = b"<testsuite><testcase classname='tests.test_ops' name='test_add'/></testsuite>"
    for name in (None, "junit"):
        assert len(parse_run([io.BytesIO(report)], [("gpu.xml", name)], frozenset({FILE})).columns.names) == 1
    with pytest.raises(Refused, match=r"gpu\.xml"):
        parse_run([io.BytesIO(report)], [("gpu.xml", "trx")], frozenset({FILE}))


def test_a_run_of_a_few_tests_belongs_to_the_job_that_its_id_names() -> None:
    assert [job_of_run(run_id) for run_id in ("tests-1f2e-2", "tests-1f2e", "tests-1f2e-2-3")] == ["tests-1f2e"] * 3


def test_a_run_of_a_benchmark_has_its_report() -> None:
    with pytest.raises(Refused) as refusal:
        read_benchmark([io.BytesIO(b"{}")], [("te.xml", None)])
    assert str(refusal.value) == "the run of a benchmark has no file benchmark.json"
