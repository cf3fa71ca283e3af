"""Sentences of pages that depend on numbers, each as a whole."""

from __future__ import annotations

import pytest

from handlers.dashboard.shared.texts import (
    cell_words,
    compact,
    effects_done,
    lab_silence,
    labs_late,
    labs_on_time,
    pulls_open,
    search_answer,
)


def test_how_many_labs_are_late() -> None:
    assert labs_on_time(1) == "The lab has reported within the last 36 hours."
    assert labs_on_time(2) == "All labs have reported within the last 36 hours."
    assert labs_on_time(2, of_page=True) == "All labs on this page have reported within the last 36 hours."
    assert labs_late(1, 1) == "1 of 1 lab is late:"
    assert labs_late(1, 2) == "1 of 2 labs is late:"
    assert labs_late(1200, 2100, of_page=True) == "1,200 of 2,100 labs on this page are late:"
    assert (lab_silence("3 days"), lab_silence("")) == (" has not reported for 3 days", " has never reported")


def test_how_many_pull_requests_are_open() -> None:
    assert pulls_open(1, 1) == "1 of the 1 pull request listed here is open"
    assert pulls_open(0, 1200) == "0 of the 1,200 pull requests listed here are open"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1249, "1.2k"),
        (9949, "9.9k"),
        (9951, "10k"),
        (34_000, "34k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (1_000_000, "1.0M"),
        (12_000_000, "12M"),
    ],
)
def test_a_count_in_a_cell_is_short(count: int, text: str) -> None:
    assert compact(count) == text


def test_what_matches_a_search_is_counted_by_kind() -> None:
    assert search_answer("conv", {"test": 1, "commit": 0}, 50) == "1 test matches “conv”."
    assert search_answer("conv", {"test": 50, "commit": 1}, 50) == "50 tests and 1 commit match “conv”."
    assert search_answer("conv", {"test": 51, "commit": 2, "repository": 3}, 50) == (
        "over 50 tests, 2 commits and 3 repositories match “conv”."
    )
    assert search_answer("conv", {}, 50) == "Nothing matches “conv”."


def test_what_effects_did_is_counted() -> None:
    assert effects_done("RerunJob", 1) == "restarted 1 job"
    assert effects_done("RerunJob", 2) == "restarted 2 jobs"
    assert effects_done("no such kind", 1) is None


def test_a_cell_says_its_state_and_its_counts() -> None:
    assert cell_words("new-failure", 5, 3, 2, 1, 1, 4, 1, 1) == (
        "2 new failures, 3 failed, 1 of them passed on the simulator, 1 of them passed on the device, 1 known failure, "
        "1 flaky, 5 passed, 4 skipped"
    )
    assert cell_words("waiting", 0, 0, 0, 0, 0, 0) == "no results yet"
    assert cell_words("passed", 1200, 0, 0, 2, 0, 3) == "2 known failures, 1,200 passed, 3 skipped"
