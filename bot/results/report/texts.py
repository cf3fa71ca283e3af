"""Every sentence of a hardware check run. Text from labs goes in through `code`, `escape` or `plain`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from nightjar_formats.model import Trouble

from bot.core.listing import counted, listed
from bot.results.compare.flaky import LEAST_RUNS, Flakiness
from bot.results.compare.health import JUDGED_RUNS, LEAST_TESTS, SHARE, UNSTABLE_RUNS, RunFlips, SuiteHealth
from bot.results.compare.lasting import STEADY_RUNS
from bot.results.compare.rename_rules import RenameKind

SHORT = 10
"""Characters of a commit's SHA."""

ADVISORY = (
    "This check is advisory: it ends as `success` or `neutral`, never as `failure`, so that it cannot block a merge."
)
NEUTRAL_MEANS = "Neutral means: please take a look."
NEUTRAL_BECAUSE = "**Neutral**: {reasons}. " + NEUTRAL_MEANS
SUCCESS_BECAUSE = "**Success**: {reason}."

HAPPENED = {
    Trouble.COLLECTION: "not collected",
    Trouble.CRASH: "crashed",
    Trouble.INTERNAL: "test runner failed",
    Trouble.SETUP: "error in setup",
    Trouble.TEARDOWN: "error in teardown",
    Trouble.TIMEOUT: "timed out",
    Trouble.QUANTIZE: "failed to quantize",
    Trouble.LOWER: "failed to lower",
    Trouble.LOAD: "failed to load",
    Trouble.RUN: "failed to run",
    Trouble.OUTPUT: "wrong output",
}
FAILED, ERRORED = "failed", "errored"

# Titles
TITLE_INCOMPLETE = "Incomplete: {what}"
TITLE_UNRELIABLE = "Unreliable results since {since}"
TITLE_UNUSABLE = "Lab setup problem, no usable results: {why}"
TITLE_SUITE_UNUSABLE = "no usable results from {suite}"
TITLE_FIRST = "First run, nothing to compare with"
TITLE_NOTHING = "No usable results"
TITLE_UNTESTED = "Nothing was tested: {skipped:,} skipped"
TITLE_SAME = "Nothing changed"
TITLE_IGNORED = "{failures} ignored by {login}"
TITLE_QUARANTINED = "{failures} quarantined"
TITLE_CONFIRMED = "{failures} confirmed"
TITLE_MISSING = "{suite} is missing"
TITLE_MISSING_SUITES = "{suite} and {more} are missing"
TITLE_SHARDS = "{have:,} of {total:,} shards of {suite}"
TITLE_WAITING = "{runs} of {suite} without all files"
TITLE_BROKEN = "{runs} of {suite}"
UNUSABLE_RUN = "unusable run"

# Why the check run is neutral or a success
INCOMPLETE = "the results are incomplete"
UNUSABLE = "no usable results from {suites}"
UNJUDGED = "{tests}, with no earlier run to compare with"
UNTESTED = "all {tests} skipped"
NOTHING_CAME = "no usable results"
NO_NEW_FAILURES = "no new failures"
NO_FAILURES = "no test fails"
ONLY_FLAKY = "no new failures, but {failures} of known flaky tests"
ALL_IGNORED = "{failures} ignored for {pull} by {login}; no other new failures"

NEWLY_QUARANTINED = "{failures} of quarantined tests"
UNCOMPARED_QUARANTINED = "{failures} of quarantined tests, with no earlier run to compare with"

# What is missing or unusable
UNUSABLE_WHY = "No usable results from {suite}: {why}"
MISSING = "Missing: {suites} (reported by the previous nightly run)."
MISSING_FOR_GOOD = "If the lab no longer runs {them}, the next nightly run does not expect {them}."
MISSING_SHARDS = "{suite}: {shards} of {total:,} {are} missing."
FIRST_RUN_AT = "The first run arrived on {since}."
WAITING = "{suite}: run {run} has been waiting for its files since {since}: {reason}"
BROKEN = "{suite}: run {run}, which arrived on {since}, is unusable: {reason}"
REPAIRED = "{suite}: run {run}: {reason}"
REPAIRED_FILES = "Files of this lab needed repairs before they could be read:"
NO_REASON = "no reason is known"
OVER = "The deadline has passed. Results that arrive later still count."

# What the run is compared with
COMPARED = (
    "Compared with {commit}, the nearest earlier commit with complete results of this lab for the same target and "
    "suite."
)
COMPARED_BUT = "There are no earlier results for {suites}."
COMPARED_EACH = (
    "Each suite is compared with the nearest earlier commit with complete results of this lab for the same target and "
    "suite; see the table."
)
COMPARED_NONE = "There are no earlier complete results to compare with, so no test is reported as new or fixed."
MASS = (
    "Many tests of {suites} failed at once, probably for one reason. Look at the first failures, and check the lab "
    "before the change."
)
IGNORED = "{failures} ignored for {pull} by {login} at {sha}. Later new failures are shown."
CONTACTS = "Questions about this lab: {contacts} (not notified)."

# Unreliable results
UNRELIABLE = (
    "**Unreliable results** of {suite} since {since}: {tests} flipped between passed and failed, then back, in {run}, "
    "the newest unstable run. Stable runs in a row since then: {stable} of {needed}."
)
UNRELIABLE_MEANS = (
    "A run is unstable if at least {least} tests and {share:.0%} of all tests flip back in it. Results are unreliable "
    "while {unstable} of {runs} nightly runs are unstable. Single failures are not reported until {runs} nightly runs "
    "in a row are stable; failures that last longer are reported then. Tests that fail in {steady} runs in a row, "
    "after {steady} in which they passed, are reported once a week."
)
OR_EARLIER = "{since} or earlier"

# Headings
NEW_FAILURES = "New failures"
KNOWN_FLAKY = "Known flaky, failed"
KNOWN_FLAKY_MEANS = (
    "Each of these tests recently passed and failed on one commit, so these failures are not counted as new. If a test "
    "fails more often in a row than its flakiness explains, the failure is reported."
)
FAILING = "Failing, with no earlier run to compare with"
IGNORED_FAILURES = "Ignored"
QUARANTINED = "Quarantined"
QUARANTINE_ENDED = "No longer quarantined"
QUARANTINE_ENDED_MEANS = "Their last day in app.yaml has passed, so these failures count again."
STILL_FAILING = "Still failing"
FIXED = "Fixed"
NEWLY_SKIPPED = "Newly skipped"
FLAKY = "Flaky: failed, then passed"
REMOVED = "Removed"
PRECLUDED = "Did not run because the file or the whole run ended early"
MEASUREMENTS = "Measurements"
EXPECTED_ALL = "{measurements} {are} as the nightly runs lead to expect."
UNEXPECTED_MEANS = (
    "Of {measurements} that were compared, these are outside of what the nightly runs lead to expect. The next nightly "
    "run would be between the numbers shown in 99 of 100 cases, so 1 in 100 is outside by chance. Measurements never "
    "change the conclusion of a check run."
)
TO_COMPARE = (
    "To find out whether it is chance, comment {command}: a device runs this pull request's head and its base in turn."
)
MEASURED, MEASURED_WORSE, EXPECTED = "{value}{unit}", "{value}{unit} (worse)", "{low} to {high}{unit}"
REPRODUCE = "### How to reproduce"
REPRODUCE_FIRST = "The first {shown} of {total:,} new failures."
OUTPUT_OF = "Output of {test}:"

# Beside a failure
SINCE = "since {since}"
SINCE_OLDER = "since {since} or earlier"
LAST_PASSED = "last passed at {good}"
NEVER_PASSED = "never passed"
FAILED_BEFORE = "failed in {failed} of {runs}"
ALSO_ON = "also fails on {targets}"
PASSES_ON_SIMULATOR = "passes on the simulator {targets}"
PASSES_ON_DEVICE = "passes on the device {target}"
ONLY_ON_DEVICE = "Passes on the simulator, fails on the device: {failures}."
ONLY_ON_SIMULATOR = "Passes on the device, fails on the simulator: {failures}."

# Tables
HISTORY = "history"
FIRST_RUN = "nothing earlier"
NOT_ARRIVED = "not arrived"
NOT_USABLE = "unusable"
WAITS, CANNOT_BE_USED = ", waiting for its files", ", unusable"
CLAIMS = "What the lab reports about its runs (not verified):"
CONFIRMED = "by this run"
FLAKY_RATE = "failed in {failed:,} of {runs:,} runs"
FLAKY_BOTH = "failed and passed on one commit in {runs}"
CONFIRM = "A failure is confirmed when two runs in a row have it."
RENAMED = "{count:,} tests were renamed and keep their history: {rules}. For example, {before} is now {now}."
RENAMED_BY = {
    RenameKind.PREFIX_DROPPED: ("the prefix {name} was dropped", "a prefix was dropped"),
    RenameKind.PREFIX_ADDED: ("the prefix {name} was added", "a prefix was added"),
    RenameKind.PART_DROPPED: ("{name} was dropped", "a part of the name was dropped"),
    RenameKind.PART_ADDED: ("{name} was added", "a part of the name was added"),
    RenameKind.REPLACED: ("{name}", "a part of the name was replaced"),
    RenameKind.WORDS_DROPPED: ("{name} was dropped", "words were dropped"),
    RenameKind.WORDS_ADDED: ("{name} was added", "words were added"),
    RenameKind.REORDERED: ("words were reordered", "words were reordered"),
}
"""What a rule did, and what several rules of one kind did."""
REPLACED_BY = "{before} became {after}"
RENAMED_OF = "{rule} ({count:,})"
RENAMED_ONE = "1 test was renamed and keeps its history: {before} is now {now}."
UNSEARCHED = (
    "{suites}: the search for renamed tests was skipped because it would take more than {most:,} steps. A renamed "
    "test counts as one removed and one new test."
)

# Annotations and buttons
ANNOTATION_TITLE = "New failure on {lab}/{target}"
UNKNOWN_LINE = "the report does not name a line of this file"
RECHECK_LABEL, RECHECK_DESCRIPTION = "Re-check", "Compute this check again"
IGNORE_LABEL, IGNORE_DESCRIPTION = "Ignore for this PR", "Count these new failures as known"


def how_flaky(flakiness: Flakiness) -> str:
    """Say how often a test fails, if there are enough runs for a rate, and what proves that it is flaky."""
    proved = FLAKY_BOTH.format(runs=counted(flakiness.proved, "run"))
    if flakiness.runs < LEAST_RUNS:
        return proved
    return f"{FLAKY_RATE.format(failed=flakiness.failed, runs=flakiness.runs)}, {proved}"


def since_commit(health: SuiteHealth) -> str:
    """Name the commit since which results are unreliable, in plain text."""
    since = health.since[:SHORT]
    return OR_EARLIER.format(since=since) if health.older else since


def unreliable(suite: str, health: SuiteHealth) -> str:
    """Say why the results of a suite are unreliable, since when, and until when; the suite is Markdown."""
    newest = health.newest or RunFlips("", 0, 0)
    return UNRELIABLE.format(
        suite=suite,
        since=since_commit(health),
        tests=f"{newest.flipped_back:,} of {counted(newest.tests, 'test')}",
        run=newest.sha[:SHORT],
        stable=health.stable,
        needed=JUDGED_RUNS,
    )


def unreliable_means() -> str:
    """Say when results count as unreliable, and what follows from that."""
    return UNRELIABLE_MEANS.format(
        least=LEAST_TESTS, share=SHARE, unstable=UNSTABLE_RUNS, runs=JUDGED_RUNS, steady=STEADY_RUNS
    )


def format_moment(seconds: float) -> str:
    """Format a moment, given in seconds since 1970, in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def missing_suites_title(suites: Sequence[str]) -> str:
    """Name the missing suites in a title: the first one, and how many more."""
    further = len(suites) - 1
    if not further:
        return TITLE_MISSING.format(suite=suites[0])
    return TITLE_MISSING_SUITES.format(suite=suites[0], more=counted(further, "more suite"))


def missing_suites(suites: Sequence[str]) -> str:
    """Name the suites that only the previous nightly run has, and say what happens if the lab no longer runs them."""
    pronoun = "it" if len(suites) == 1 else "them"
    return f"{MISSING.format(suites=listed(suites, 10))} {MISSING_FOR_GOOD.format(them=pronoun)}"


def missing_shards(suite: str, numbers: Sequence[int], total: int) -> str:
    """Say which shards of a suite are missing."""
    shards = f"shard{'s' if len(numbers) > 1 else ''} {listed([str(number) for number in numbers], 20)}"
    return MISSING_SHARDS.format(suite=suite, shards=shards, total=total, are="are" if len(numbers) > 1 else "is")
