"""Every sentence about regressions of hardware targets."""

from __future__ import annotations

# News of regressions
NEWS_TITLE = "{changes} on {where} at nightly commit {sha}"
BEGAN = "{suite}, since {since}; it passed at {good}"
BEGAN_TOGETHER = "{tests} since {since}; last pass at {good}"
ALSO_ON_TOGETHER = "also failing on {targets}"
NEVER_PASSED = "{suite}, failing since {since}; it has never passed"
NEVER_PASSED_TOGETHER = "{tests} since {since}; never passed"
RECOVERED = "{suite}, recovered"
REMOVED = "{suite}, removed without a pass"
BEGAN_COUNT = ("test began to fail", "tests began to fail")
NEVER_PASSED_COUNT = ("test has never passed", "tests have never passed")
RECOVERED_COUNT = ("test recovered", "tests recovered")
REMOVED_COUNT = ("failing test was removed", "failing tests were removed")
BECAME_UNRELIABLE, RELIABLE_AGAIN = "results became unreliable", "results are reliable again"
UNRELIABLE = "unreliable since {since}; {tests} flipped between passed and failed, then back, in {run}"
RELIABLE = "reliable again; failures are reported as usual"
HELD = "{changes} in unreliable results are not reported now."
CONFIRMED = "New failures are confirmed: they failed in two runs in a row."
STEADY = (
    "The results of {suites} are unreliable, but these tests failed in {runs} nightly runs in a row, after {runs} in "
    "which they passed. There is at most one such message a week."
)
LATE = (
    "The results of nightly commit {sha}, committed on {date}, arrived after those of newer commits. The newest run "
    "still has these failures."
)
STILL = "{tests} as before; this was already reported."
QUARANTINED = "{tests}; check runs list them."

# News of several targets
GROUP_TITLE = "{tests} on {targets} since {since}"
JOINED_TITLE = "{targets} in the same tests: {tests} since {since}"
GROUP_TESTS = "The tests: {tests}."
GROUP_BETWEEN = "The cause is between {good}, where they passed, and {since}."

# The issue of several targets
GROUP_ISSUE = """\
These targets began to fail in the same tests of {suite} on the nightly branch. {range}

{targets}

{tests}

{end}"""
GROUP_OPEN = "I'll close this issue when none of these tests fails on any of the targets."
GROUP_CLOSED = "I closed this issue because none of these tests fails on any of the targets now."
GROUP_TARGET = "- {target}: {tests}, since {since}"
GROUP_RECOVERED, GROUP_REMOVED = "; recovered at {sha}", "; removed without a pass at {sha}"
GROUP_ENDED = "; no longer failing"
GROUP_RANGE = "They passed before [these changes]({url})."

# The issue of a target
ISSUE_TITLE = "Regressions on {where}"
ISSUE = """\
On target {target} of lab {lab}, these tests fail on the nightly branch and have not passed since the commit shown.

{failing}

I'll comment here when more tests fail or some recover, and close this issue when all have recovered."""
ISSUE_UNRELIABLE = """\
On target {target} of lab {lab}, so many tests of the nightly branch flip between passed and failed that single failures
mean nothing. I'll close this issue when the results are reliable again and no failure lasts."""
UNRELIABLE_SUITE = "- {suite}: {what}"
FAILING = "- {suite}: {tests}, since {since}{changed}{never}"
CHANGED = " ([what changed]({url}))"
NEVER = "; never passed"
TEST, MORE_TESTS, MORE = "  - {test}", "  - and {count:,} more", "- and {count:,} more"
TEST_WITH_HISTORY = "  - {test} ([history]({url}))"
OWNERS = ", owners: {owners}"

# Measurements that moved
MOVED_TITLE = "{what} got worse on {targets} since {since}"
MOVED_BACK_TITLE = "{what} no longer worse on {targets} than before {since}"
MOVED_ONE = "{name} of {test}"
MOVED_SEVERAL = "{names} of {tests}"
MOVED_ON = "{change} on {target}"
LEFT_DELEGATE, PARTLY_LEFT_DELEGATE = "left the delegate, {change}", "partly left the delegate, {change}"
MOVED_BETWEEN = "The cause is between {good}, where the numbers were as before, and {since}."
MOVED_CONFIRMED = "The newest nights confirm it. The numbers in parentheses are a 95 % interval."
MOVED_ENDED = "ended at {sha}"
MOVED_LEFT_OUT = "not reported now: the test is quarantined, or app.yaml no longer has the target"
MOVED_WITHDRAWN = "Results that arrived late do not confirm that these measurements got worse, so I closed this issue."
MOVED_ISSUE = """\
These measurements got worse at {since} on the nightly branch. {range}

{changes}

{end}"""
MOVED_RANGE = "They were as before until [these changes]({url})."
MOVED_LINE = "{test}: {change} on {target}{end}"
MOVED_OPEN = "I'll close this issue when none of them is worse than before."
MOVED_CLOSED = "I closed this issue because none of them is worse than before now."

# What the audit log says
MOVES_STORED = "looked for changes of measurements on {where} at {sha}"
NO_NEW_MOVES = "no change of measurements on {where} at {sha}"
NO_MOVES = "no message about measurements is outdated"
MOVES_POSTED = "posted what moved at {commits}"
REPORTS_STORED = "stored the reported failures of {where} at {sha}"

# Why there is no news
NOT_OVER = "more results of this commit are expected"
NOT_NIGHTLY = "the commit is not on the nightly branch"
NIGHTLY_TOO_OLD = "the newest nightly commit of this target is older than 30 days"
NEWER_PENDING = "results of a newer nightly commit are still arriving; this one is reported with it"
NOTHING_FAILS = "nothing fails, and nothing failed before"
NEWS_WAITS = "{news}; waiting for the results of other targets"
NO_NEWS_WAITING = "no news of targets is waiting"
NEWS_POSTED = "posted the news of {targets}"
NO_NEWS = "nothing new to report"
ONLY_UNRELIABLE = "{changes} in unreliable results, which are not reported; nothing else is new"
ONLY_QUARANTINED = "{tests} for two runs in a row; nothing else is new"
BEGUN_ANNOUNCED = "the search for the cause of {issue} is requested"
