"""Texts of the pages about searches for a culprit."""

from __future__ import annotations

SHORT = 10
"""Digits of a SHA."""
MOST_PROBABILITY = 0.999
"""Never 100 %: a search is not certain."""

# -- the list --

RUNNING, NAMED, OTHER = (
    ("search runs", "searches run"),
    ("search found the change", "searches found the change"),
    "{count} ended without finding it",
)
NO_SEARCHES = "No search yet"
OUTCOMES = {
    "": "searching",
    "culprit": "began with",
    "environment": "no commit: the device, the lab or its environment changed",
    "not repeated": "cannot tell: it does not repeat",
    "range": "cannot tell which commit",
    "budget": "cannot tell: out of runs",
}

# -- the answer --

SO_FAR = "Searching: {runs} of at most {most} so far"
BOTH_ENDS = ", first at both ends of the range"
LEFT_OF = ", and {left} of {commits} left (99 %)"
NOT_CERTAIN = "nothing is certain yet"
BEGAN_WITH = "Began with "
CHANCE = " ({probability})"
ONE_TARGET = "this rests on one target"
SEVERAL_TARGETS = "this rests on {targets}"
CHANGED_LAB = "No commit is the cause ({probability}): the device, the lab or its environment changed"
FAILS_BEFORE = "the tests fail at {good} too, where they passed before"
DOES_NOT_REPEAT = "Cannot tell: the tests do not fail at {bad} any more ({probability})"
NEW_LEVEL_BEFORE = "the new level is measured at {good} too, where it was as before"
AS_BEFORE = "Cannot tell: the new level is not measured at {bad} any more ({probability})"
ONE_OF = "Cannot tell which commit: it is one of {count} ({probability}), from "
OUT_OF_RUNS = (
    "Cannot tell: the search ended after {runs}. If a commit is the cause, it is one of {count} ({probability}), from "
)
UP_TO = " to "

# -- next steps --

READ_CHANGE = "read the change"
READ_DRAFT = "review the draft that reverts it"
REPRODUCE = "to run the test on the device, comment "
MEASURE = "to measure it on the device, comment "
ON_A_PULL_REQUEST = " on a pull request"
ASK_LAB = "what changed on {target}?"
READ_ISSUE = "read the issue about it"
READ_RANGE = "read the commits that are left"

# -- the bars and the runs --

BEFORE, OLDEST, NEWEST, ONLY = "before the range", "oldest commit", "newest commit", "commit"
BY = ", by {author}"
BAR = "{commit}: {probability}"
BARS = "{count} commits, {probability} together; the first is {first}"
CHART = "Probability of each of {commits}, and of other causes; below, {runs}"
MARK = "Run {number} on {target}: {words}"
NOT_A_COMMIT = "not a commit"
LAB_CHANGED = "The device, the lab or its environment changed"
NO_REPEAT = "The failure does not repeat"
FAILED_OF = "failed {failed} of {count}"
MEASURED = ("{value}, as before", "{value}, new level")
LEVELS = "{before} -> {after}"
NO_CHANGE = "The change does not repeat"
RUN_STATES = {
    "waiting": "waits for a device",
    "no results": "no results",
    "lost": "no lab ran it",
    "results": "none of the tests ran",
}

# -- what happens next --

TARGET_STATES = {
    "requested": "run {number} is requested",
    "idle": "run {number} waits until the device is idle: people's requests come first",
    "leased": "the device works on run {number}",
    "ready": "gets its next run with the next answer, or within the hour",
    "used up": "the day's budget for searches is used up; the next day begins at 00:00 (UTC)",
    "off": "takes no jobs for searches",
}
MOST_LISTED = 60
"""Commits that the page lists; the bar and the JSON have all."""


def percent(probability: float) -> str:
    """Write a probability."""
    if 0.0 < probability < 0.001:
        return "< 0.1 %"
    return f"{100 * min(probability, MOST_PROBABILITY):.1f} %"
