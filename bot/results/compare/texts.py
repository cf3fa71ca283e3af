"""Why a run or a suite has no usable results, and why it could not be compared."""

from __future__ import annotations

NO_TESTS = "it has no tests; check which tests the lab's command selects"
CRASHED = (
    "the lab's command ended with exit status {status} before its first test; check the lab's installation and device"
)
ONLY_CRASHES = "every test crashed; check the lab's installation and device"
UNTESTED = "all {skipped:,} tests were skipped"
ALL_SKIPPED = (
    "all {skipped:,} tests were skipped, of which {good:,} passed before; check whether the lab's device was found"
)
MASS_COLLECTION = "{broken:,} of {files:,} test files could not be imported; check the lab's installation"
ONE_CAUSE = "{failed:,} of the {ran:,} tests that ran failed with one cause; check the lab's installation and device"
COMPARISON_COST = "it could not be compared: {why}"
BASE_UNUSABLE = "its results at the base say nothing about the code: {why}"
SEARCH_SKIPPED = "the search for renamed tests is skipped"
SEARCH_TOO_LONG = "that would take more than {most:,} steps"
STILL_CHANGING = "the results beside this run keep changing while it is stored"
