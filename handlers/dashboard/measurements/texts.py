"""What the pages of measurements say in sentences."""

from __future__ import annotations

POINT = "{sha}: {value}"
POINT_WITH_TITLE = "{sha}: {value}, {title}"
MARK = "{text}, since {sha}"
CHART = "{name} at {nights}, {first} to {last}: from {lowest} to {highest}"
CHART_LEVEL = ", now about {level}"
CHART_BAND = "; 99 of 100 further values are expected from {low} to {high}"
CHART_CHANGES = "; {changes}"
SPARK = "{name} at {nights}: from {lowest} to {highest}, newest {newest}"

NAMED = "{name} of {test}"
OF_TEST = "{name} of {test} on "
MOVED = ": {change}, since "
AND_MOVED = "it also moved on "
GONE = ": nothing was measured in the newest nights; the last value is {value}, at "
STEADY = ": {value}, no change in {nights}"
STEADY_ON = "{name} of {test} did not change in {nights} on "
NO_NIGHT = "No nightly commit has this measurement"

LISTED = "{measurements} of {suite} on {target}"
NO_MEASUREMENTS = "No test has measured anything yet"

READ_COMMITS = "read the commits with which it changed"
SEE_TARGET = "see what else {target} measures"
SEE_MAP = "compare the operators of this suite at two commits"
UNMEASURED = "correct {name} under measurements in app.yaml: no test measures it"
DID_YOU_MEAN = " (did you mean {name}?)"

MAPPED = "{name} of {operators} on {target}"
ON_THIS_PAGE = ", on this page"
SOME_DIFFER = ": {count} between {base} and {head}"
NONE_DIFFERS = ": none differs between {base} and {head}"
FIRST = "the first is "
DIFFERS = "◆ {values}"
ABSENT = "none"
NO_COMMIT = "The commit {sha} is not among the newest {nights} with numbers. The newest are {newest}."
NOTHING_MAPPED = "No test with this measurement at these commits"

BADGE_NO_VALUE = "no value"
BADGE_MOVED = "{value} ({share})"


def unmeasured(name: str, nearest: str) -> str:
    """Say that no test measures what app.yaml names, and which name is similar, if one is."""
    return UNMEASURED.format(name=name) + (DID_YOU_MEAN.format(name=nearest) if nearest else "")
