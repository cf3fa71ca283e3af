"""The sentences with which pages begin, and what pages suggest to do next."""

from __future__ import annotations

CLAUSE_END = "; "
AND_MORE = " and {more}"
SINCE = " since "
LONGEST_NAME = 120
"""Characters of a test's ID, or of a command, in a sentence."""

# -- the grid --

SUITE, TARGET = "suite", "target"
OF_SUBJECTS = "on {count:,} of {subjects}"
NEW_FAILURES = "{failures} {on}"
DAY_OF_COMMIT = "{day} ({sha})"
NOTHING_NEW_SINCE = "Nothing new since "
NOTHING_NEW = "No new failure in {commits}"
NO_TEST_FAILS = ": no test fails"
NO_TEST_FAILS_ON = ": no test fails {on}"
"""Where other targets are late, or have no usable results."""
STILL_FAIL = "{tests} still {fail} {on}"
NO_USABLE_RESULTS = ": no usable results in the newest run"
FAILED_THEN = "{tests} failed then"
NOT_REPORTED = " has not reported for {age}"
NEVER_REPORTED = " has never reported"
MATCHES = {
    "": ("matches", "match"),
    "failing": ("fails", "fail"),
    "new-failure": ("fails that did not fail before,", "fail that did not fail before,"),
    "still-failing": ("still fails", "still fail"),
    "fails-on-device-only": (
        "fails on a device and passes on its simulator",
        "fail on a device and pass on its simulator",
    ),
    "fails-on-simulator-only": (
        "fails on a simulator and passes on its device",
        "fail on a simulator and pass on its device",
    ),
    "known-failure": ("is a known failure", "are known failures"),
    "flaky": ("is flaky", "are flaky"),
    "skipped": ("is skipped", "are skipped"),
    "passed": ("passed", "passed"),
}
"""What tests that match each filter of the grid did, for one and for many."""
MATCHING_TESTS = "{tests} {match} in the newest nightly runs"
OF_TARGETS = " of {count} targets"
MATCHING_RESULTS = "{results} match in the newest nightly runs, each of one test on one target"

# -- one run --

RUN_STATES = {
    "waiting": "This run waits for files",
    "incomplete": "The files of this run did not arrive",
    "refused": "This run was refused",
}
"""What a run says that is not stored, before the reason."""
NOTHING_USABLE = "No usable results: {why}"
NO_USABLE_RESULTS_OF_SUITE = ": no usable results"
NO_NEW_FAILURE = "No new failure"
RUN_STILL_FAILS = "{count:,} still failing"
FAIL_UNCOMPARED = "{failures}, with nothing to compare with"
COMPLETE, INCOMPLETE = "complete", "incomplete: {missing}"
LONGEST_REASON = 200
"""Characters of a reason in a sentence."""

# -- one lab --

ON_TIME = "{targets} reported within the last 36 hours"
THE_SIMULATOR, THE_DEVICE = "the simulator {target}", "the device {target}"
ENDS_DIFFERENTLY = (
    "{tests} passes on {first} and fails on {second}",
    "{tests} pass on {first} and fail on {second}",
)
RUN_ON_ONE = "{tests} runs on {first} and not on {second}", "{tests} run on {first} and not on {second}"
"""For one test, and for several."""
TARGETS_AGREE = "Every test ends the same way on {first} and on {second}"
RUN_SIMULATED = "also run on the device {tests} that only the simulator runs"
PAUSED_UNTIL = " is paused until {day}, by {login}"
UNUSABLE_SINCE = " has had no usable results since "
ASK = "ask {contacts}"

# -- one commit on all targets --

NONE_NEW = ", none of them new"
NO_TEST_FAILED = "No test failed"
NOT_ALL_ARRIVED = ": not all results have arrived"

# -- all repositories --

FAIL_ON_TARGETS = "{tests} on {count:,} of {targets}"
OF_REPOSITORY = " of {repository}"
NOTHING_FAILS = "No test fails in the newest nightly runs"
NOTHING_FAILS_ON = "No test fails on {count:,} of {targets}"
NO_RESULTS_YET = "No lab has sent results yet"
FAIL_ELSEWHERE = "tests also fail in {more}"
MORE_LATE = "{more} without a recent report"
MORE_UNUSABLE = "{more} without usable results"
BEGAN_AT = ", which began at {sha}"

# -- lists of tests --

ON_TARGET = " on {target}"
AT_LEAST = "At least {tests}"
FLAKY_TESTS = "{tests} {were} flaky{place} in the last {days}"
NOTHING_FLAKY = "No test was flaky{place} in the last {days}"
MOST_PROOF = " on {target} most clearly: it both passed and failed at {commits}"
TESTS_TAKE = "{tests} on {target} {take} {duration}"
NONE_SLOW = "none takes longer than {seconds} s"
SOME_SLOW = "{tests} {take} longer than {seconds} s: to skip them saves {saved}"
SKIPPED_TESTS = "{tests} {verb} skipped in the newest nightly runs{place}"
NOTHING_SKIPPED = "No test is skipped in the newest nightly runs{place}"
IDLE_TESTS = "{tests} did not run for a week"

# -- one test --

FAILS_ON = "Fails on {count:,} of {targets}: "
FAILS_NOWHERE = "Fails on none of {targets}"
FAILS_ON_ONE, PASSES_ON_ONE = "Fails on ", "Does not fail on "
"""For a test that one target has."""
IS_FLAKY_ON = "flaky on "
QUARANTINED_UNTIL, QUARANTINED_ON = "quarantined until {day}, owner: {owner}", ", on "
FAILED_LAST_ON, UNKNOWN_ON, NO_REPORT = "failed when it last ran on ", "unknown on ", ": no report for over 36 hours"
"""For targets that are late: what their newest runs say is old."""
REMOVED, REMOVED_ON = "The newest nightly runs do not have this test", "no longer run on "
NOT_CONFIGURED = "no longer in app.yaml: "
RENAMED_TO = "renamed to "

# -- what to do next --

MAINTAINER, CONTRIBUTOR, LAB, OPERATOR = "Maintainer: ", "Contributor: ", "Lab: ", "Operator: "
SEE_OPERATE = "see what needs a person"
QUARANTINE_ENDS = "fix {test}, or extend its quarantine, which ends on {day}"
OR, MUTE = ", or ", "mute {test}"
COMPARE_COMMITS = "see what changed between the last two nightly commits"
KNOWN_FAILURES = "a failure in this list"
NOT_YOURS = " is not from your pull request"
SEE_LAB = "see what {lab} sent, and what is missing"
NEWEST_FAILURE = "look at the newest failure"
READ_COMMITS = "read the commits between the two"
READ_COMMITS_BEFORE = "read the commits since the nightly commit before"
READ_COMMITS_SINCE = "read the commits with which it began to fail"
READ_COMMITS_SINCE_BASE = "read the commits since {sha}"
READ_UPLOADS = "read why uploads have no result"
SEND_RESULTS = "send the results of {target} for {sha}"
ADD_CONTACTS = "add contacts to the lab in app.yaml, so that people know whom to ask"
OPEN_ISSUE = "open an issue with what is known"
READ_QUARANTINE_ISSUE = "read the issue of its quarantine"
REPRODUCE = "to reproduce it, run "
SEE_PROOF = "see the test with the most proof, and report it from its page"
FLAKY_IS_KNOWN = "a failure that known flakiness explains does not count against your pull request"
MARK_SLOW, SLOW_MARK, FIRST = "mark the slowest tests with ", "@pytest.mark.slow", ", first "
RUN_OR_REMOVE = "run these tests on some target, or remove them, first "


def shortened(name: str) -> str:
    """Shorten a long name or command: sentences stay readable."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def shortened_reason(reason: str) -> str:
    """Return a reason in one line, without the dot at its end, for the middle of a sentence."""
    line = " ".join(reason.split())
    return f"{line[:LONGEST_REASON]}…" if len(line) > LONGEST_REASON else line.rstrip(" .")


# -- the time to fix --

FIXED_WITHIN = "Of {failures} fixed in the last {days} days, half took {median} at most, and 90 % took {longest}"
NONE_FIXED = "No failure was fixed in the last {days} days"
FEW_FIXED = "{failures} fixed in the last {days} days, too few to say how long it takes"
NOTHING_FAILED = "The bot has reported no failure in the last {days} days"
NOT_FIXED = "{failures} not fixed yet"
