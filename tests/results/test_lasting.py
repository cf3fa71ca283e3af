"""Since when a test fails permanently: histories as letters, one for each run."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nightjar_formats.model import SeenTest, Status

from bot.results.compare.lasting import (
    STEADY_RUNS,
    LastingFailure,
    Segment,
    is_steady,
    lasting_failure,
    newly_confirmed,
)

ENDED = {
    "P": SeenTest(Status.PASSED),
    "X": SeenTest(Status.XFAILED),
    "F": SeenTest(Status.FAILED),
    "E": SeenTest(Status.ERRORED),
    "f": SeenTest(Status.FAILED, flaky=True),
    "p": SeenTest(Status.PASSED, flaky=True),
    "S": SeenTest(Status.SKIPPED),
    "-": None,
}


def segments(history: str) -> list[Segment]:
    """Return the segments of a test with these results, run after run."""
    result, begin = [], 0
    for letter, same_letters in groupby(history):
        result.append((begin, ENDED[letter]))
        begin += len(list(same_letters))
    return result


def lasting(history: str) -> LastingFailure | None:
    return lasting_failure(segments(history), len(history))


@pytest.mark.parametrize(
    ("history", "since", "good"),
    [
        ("PFF", 1, 0),
        ("PFFFFFF", 1, 0),
        ("PPPEF", 3, 2),
        ("XFF", 1, 0),
        ("FPFF", 2, 1),
        ("PFFPFF", 4, 3),
        ("PSFFFF", 2, 0),
        ("P-FFFF", 2, 0),
        ("PFSFFFF", 1, 0),
        ("PFSFF", 1, 0),
        ("PF-FF", 1, 0),
        ("PfFF", 2, 1),
        ("pFF", 1, 0),
        ("FF", 0, None),
        ("--FF", 2, None),
        ("SSFSFF", 2, None),
        ("FFFFFFFF", 0, None),
    ],
)
def test_a_failure_in_two_consecutive_runs_lasts_whatever_came_before(
    history: str, since: int, good: int | None
) -> None:
    assert lasting(history) == LastingFailure(since, good)


@pytest.mark.parametrize(
    "history", ["", "P", "F", "PF", "SF", "PFP", "PFPF", "PFSF", "PF-F", "PFFP", "PFF-", "PFFS", "PFFf", "PFf", "Pff"]
)
def test_a_failure_in_one_run_only_or_absent_in_the_newest_run_does_not_last(history: str) -> None:
    assert lasting(history) is None


@given(st.text("PXFEfpS-", max_size=12))
def test_segments_and_single_runs_give_the_same_history(history: str) -> None:
    assert lasting(history) == lasting_failure([*enumerate(ENDED[letter] for letter in history)], len(history))


@given(st.text("PXFEfpS-", min_size=3, max_size=12))
def test_a_run_confirms_failures_that_last_and_did_not_last_before_it(history: str) -> None:
    current, previous, earlier = ({"a": seen} if (seen := ENDED[letter]) else {} for letter in reversed(history[-3:]))
    newly = lasting(history) is not None and lasting(history[:-1]) is None
    assert (newly_confirmed(current, previous, earlier) == {"a"}) == newly


@pytest.mark.parametrize(
    ("history", "steady"),
    [
        ("PPPPPFFFFF", True),
        ("PpXfPFEFFF", True),
        ("FFPPPPPFFFFF", True),
        ("PPPPPFFFFFFFF", True),
        ("PPPPPPFFFF", False),
        ("PPPPFFFFF", False),
        ("FPPPPFFFFF", False),
        ("PPFPPPFFFFF", False),
        ("PPPPPFFFSFF", False),
        ("PPPPPSFFFFF", False),
        ("PPSPPPFFFFF", False),
        ("PPPPP-FFFFF", False),
        ("PPPPPFFFFFP", False),
        ("PPPPPFFFFf", False),
        ("", False),
        ("FFFFF", False),
    ],
)
def test_a_failure_is_steady_after_five_failed_runs_in_a_row_that_follow_five_passed_ones(
    history: str, steady: bool
) -> None:
    assert is_steady(segments(history), len(history)) is steady
    # However the runs are split into segments.
    assert is_steady([(number, ENDED[letter]) for number, letter in enumerate(history)], len(history)) is steady


@given(st.text("PF", max_size=20))
def test_a_steady_failure_lasts(history: str) -> None:
    if is_steady(segments(history), len(history)):
        assert lasting(history) is not None
        assert history.endswith("P" * STEADY_RUNS + "F" * STEADY_RUNS) or history.endswith("F" * (STEADY_RUNS + 1))
