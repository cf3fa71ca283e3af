"""Reports about flaky tests are as right as docs/signal.md promises, for tests with known rates."""

from __future__ import annotations

import pytest

from bot.results.compare.flaky import MOST_NEEDED
from tests.signal.flaky import CASES, measured_errors

TESTS = 150
LISTED, FOUND = 0.95, 0.99
"""The least shares: of failures of proved flaky tests that are listed as such, and of real failures that are found."""
WRONG = {0.0: 0.0, 0.01: 1.0, 0.03: 1.0, 0.1: 4.0, 0.2: 12.0, 0.3: 30.0}
"""Wrong reports in 1,000 runs, by the rate of failed runs, where that is proved."""


@pytest.mark.parametrize(("rate", "proof"), CASES)
def test_known_flaky_failures_are_listed_and_real_ones_reported_within_three_runs(rate: float, proof: float) -> None:
    errors = measured_errors(rate, proof, TESTS)
    assert errors.within(MOST_NEEDED) >= FOUND
    if proof:
        assert errors.listed >= LISTED * errors.failures
        assert 1_000 * errors.wrong / errors.runs <= WRONG[rate]


@pytest.mark.parametrize(("rate", "proof"), [case for case in CASES if not case[1]])
def test_without_proof_no_test_is_called_flaky_and_no_report_is_delayed(rate: float, proof: float) -> None:
    errors = measured_errors(rate, proof, TESTS)
    assert (errors.listed, errors.wrong, errors.within(2)) == (0, errors.of_two, 1)


def test_the_rule_for_flaky_tests_makes_fewer_wrong_reports_than_any_two_failures_in_a_row() -> None:
    errors = [measured_errors(rate, proof, TESTS) for rate, proof in CASES if proof and rate >= 0.1]
    assert all(rule_errors.wrong < 0.5 * rule_errors.of_two for rule_errors in errors)
