"""Every sentence of `nightjar results explain`, except the help of options."""

from __future__ import annotations

# Which rule applies
RULE_UNUSABLE = "The run has no usable results: {why}."
RULE_REGRESSION = (
    "It failed in the two newest runs with usable results, and passed before. That is a regression, which is reported "
    "once."
)
RULE_NEVER_PASSED = (
    "It failed in the two newest runs with usable results, and has never passed on this target. This is reported once."
)
RULE_NEW_FAILURE = (
    "It fails here but not in the baseline. A failure is reported after two nightly runs in a row have it."
)
RULE_KNOWN_FLAKY = (
    "It fails here. It recently passed and failed on the same commit, so it is known to be flaky. Its failure is "
    "reported after {needed} failed runs in a row of the nightly branch."
)
RULE_STILL_FAILING = (
    "It fails here and in the baseline. This run does not confirm it: only a complete run of the nightly branch does."
)
RULE_UNJUDGED = "It fails here, and there is no earlier run to compare with."
RULE_FLAKY = "It failed and passed at this commit."
RULE_FIXED = "It failed in the baseline and passes here, or its file can be collected again."
RULE_NEWLY_SKIPPED = "It is skipped here and was not skipped in the baseline."
RULE_SKIPPED = "It is skipped here, as it was in the baseline, or there is no baseline."
RULE_ADDED = "It passes here and is absent from the baseline."
RULE_PASSED = "It passes here, and did not fail in the baseline."
RULE_PRECLUDED = "The baseline has it, but its file or the whole run ended early, so it has no result here."
RULE_REMOVED = "The baseline has it, but this commit does not."
RULE_ABSENT = "Neither this commit nor its baseline has it."

# Messages
SENT = "{at}: began to fail at {since}, reported with the run of {sha}"
SENT_NEVER_PASSED = "{at}: failing since {since}, never passed, reported with the run of {sha}"
ENDED = "{at}: {how}, with the run of {sha}"
NO_MESSAGES = "no message was sent about it"

# Output
HEADING = "{suite} on {lab}/{target} at {sha} ({repository})"
FLAKINESS, HEALTH, QUARANTINE = "Flakiness", "Health", "Quarantine"
CLASS, RULE, BASELINE, SINCE, RENAMED, MESSAGES = "Class", "Rule", "Baseline", "Since", "Renamed", "Messages"
NO_BASELINE = "none: no ancestor has complete results"
BASELINE_LINE = "{sha} of {at}: {outcome}"
SINCE_LINE = "{since}; it last passed at {good}"
SINCE_NEVER = "{since}; it has never passed"
FLAKY_RATE = "failed in {failed} of {runs} runs"
FLAKY_FEW = "too few runs for a rate"
FLAKY_PROVED = "proven: it passed and failed on one commit, in runs: {proved}"
FLAKY_SUSPECTED = "suspected: single failed runs: {suspected}"
UNRELIABLE = (
    "unreliable since {since}: {flipped} of {tests} tests flipped between passed and failed, then back, in {run}. "
    "Single failures are not reported until {needed} nightly runs in a row are stable; {stable} so far."
)
QUARANTINED = "until {until} ({owner}): {reason}, {issue}. No message is sent about new failures until then."
RENAMED_LINE = "from {name}"
RUNS_HEADER = ("RUN", "COMMITTED", "RESULT", "NOTE")
ABSENT, FLAKY_RESULT, LEFT_OUT = "absent", "{status}, flaky", "does not count"
NOTE_THIS, NOTE_BASELINE = "this run", "baseline"
NOTE_CALLED = "called {name}"
NOTE_LEFT_OUT = {
    "pull request": "head of a pull request",
    "incomplete": "results are incomplete",
    "unusable": "no usable results: {reason}",
}
MORE_RUNS = "and {runs}; --runs shows more"

# What is asked for is unknown
NO_TEST = "name a test with --test, as check runs show it"
NO_RESULTS = "no results are stored"
NOT_A_TARGET = "{value} is not LAB/TARGET, as in example-lab/adreno"
UNKNOWN_REPOSITORY = "no results for {repository} are stored; stored: {known}"
UNKNOWN_TARGET = "no results for {target} are stored; stored: {known}"
SEVERAL_REPOSITORIES = "{target} has results for {known}; add --repo OWNER/NAME"
UNKNOWN_SHA = "no results for {target} are stored at {sha}; its newest commits: {known}"
NO_COMMITS = "no results for {target} are stored at any commit"
SEVERAL_SHAS = "several commits of {target} begin with {sha}: {known}"
UNKNOWN_TEST = "no run of {target} has a test {test}; similar: {known}"
UNKNOWN_TEST_AT_ALL = "no run of {target} has a test {test}, or one of a similar name"
