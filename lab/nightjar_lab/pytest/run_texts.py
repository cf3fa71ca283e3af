"""Every sentence of slow tests, shards, reports and the reproduce command."""

from __future__ import annotations

# Slow tests
SLOW_MARKER = "slow: takes long; skipped where the environment variable SKIP_SLOW_TESTS is true, 1 or yes"
SLOW_SKIPPED = (
    "slow test, and SKIP_SLOW_TESTS={value} is set; to run it: env -u SKIP_SLOW_TESTS pytest, "
    "or `@ci run slow tests` on a pull request"
)
SLOW_OPTION = (
    "Print how much time skipping the tests above each cut-off would save, and which tests could be marked as slow."
)
SLOW_TITLE = "slow tests"
SLOW_NOTHING = "no test reported a duration"
SLOW_TOTAL = "{tests} took {minutes:.2f}m in all"
SLOW_CUT_OFF = "[cutoff={cut_off}s] Total savings (m): {minutes}m by skipping {tests}"
SLOW_CANDIDATES = "candidates for @pytest.mark.slow, slowest first:"
SLOW_NO_CANDIDATES = "no candidates for @pytest.mark.slow: every test above {cut_off}s already has the mark"
SLOW_COLUMNS = ("seconds", "failed", "test")
SLOW_RATE = "{failed} of {runs}"
SLOW_RATE_UNKNOWN = "unknown"
SLOW_FAILED_NOW = "failed in this run"
SLOW_MORE = "and {more} more"
SLOW_ADVICE = "A test that fails often is worth its time: run it on every pull request."
SLOW_NO_RATES = (
    "To see how often each test fails, add --durations-from with the address of the slow page in Nightjar's API."
)

# Measurements
MEASURE_BETTER = "better is {better}: use lower or higher, or leave it out"
MEASURE_REPEATS = "a timer needs at least 0 repetitions of warm-up and 1 that counts, not {warmup} and {repeats}"

# Shards
SHARD_OPTION = "Run one shard of the tests, as in 2/4. Each test is in exactly one shard of the same list of tests."
DURATIONS_OPTION = (
    "Durations of the tests, to balance the shards: a report in any format that Nightjar reads, its address, or the "
    "address of /api/v1/repos/OWNER/REPO/slow?target=LAB/TARGET."
)
SHARD_BAD = "{value} is not a shard: write NUMBER/TOTAL, such as 2/4, with a number from 1 to the total"
SHARD_TOO_MANY = "{value} has too many shards: the maximum is {most}"
DURATIONS_ALONE = "--durations-from has no effect without --shard or --slow-report: add one of them"
DURATIONS_UNAVAILABLE = (
    "could not read the durations of {source} ({reason}), so tests are assigned to shards by a hash of their names. "
    "Shards with the durations assign them differently: run all shards again with the same durations"
)
DURATIONS_NO_RATES = "could not read the durations of {source} ({reason}), so it is unknown how often tests fail"
DURATIONS_EMPTY = "it has no durations"
DURATIONS_TOO_LARGE = "it has more than {most} bytes"
DURATIONS_STATUS = "HTTP status {status}"
DURATIONS_REDIRECTED = "it redirects elsewhere"
DURATIONS_BAD_ADDRESS = "its address is malformed"
SHARD_SUMMARY = "shard {shard}: {mine} of {all}{time}; {known} of known duration; plan {plan}"
SHARD_TIME = ", about {mine} of {all} minutes"
SHARD_EMPTY = "shard {shard} has no tests, because there are only {all}; this is not a failure"

# Report
REPORT_OPTION = (
    "Write a report that Nightjar understands: a line for each phase of each test, written at once, so that a crash "
    "loses nothing. With the variable NIGHTJAR_RESULTS, a report is written into that folder without this option."
)
REPORT_WRITES = "nightjar: the report is {path}"
REPORT_NOT_OPENED = "nightjar: THERE IS NO REPORT: {path} cannot be written ({reason}); tests run without it"
REPORT_NOT_WHOLE = (
    "nightjar: THE REPORT IS INCOMPLETE: {lost} of {lines} could not be written to {path} ({reason}). Make room there "
    "and run the tests again; the exit status does not show that the report is incomplete"
)
REPORT_FAULTS = "nightjar: {count} of pytest's reports could not be written as JSON ({reason}); only their outcome was"
REPORT_NO_READER = "nobody reads the pipe"
REPORT_TOO_MANY = "it already has {most} reports"
WORKER_DIED = "worker {worker} died: {error}"

# Reproduce command
REPRODUCE_OPTION = (
    "Print after failures how to run them again. auto: if the run uses another option or a variable of Nightjar's."
)
REPRODUCE_INI = "Names of environment variables that matter for a test, besides pytest's and Nightjar's own."
REPRODUCE_TITLE = "run the failed tests again"
REPRODUCE_MORE = "# {more} failed"
REPRODUCE_ISSUE = "Is it flaky? Open a prefilled issue:"
ISSUE_TITLE = "[Flaky Test] {test}"
ISSUE_TEST = "Test: {test}"
ISSUE_FACT = "{name}: {value}"
ISSUE_REPRODUCE = "To reproduce, in the folder of the repository:"

# The tests of a job
TESTS_UNREADABLE = "NIGHTJAR_TESTS names a file that cannot be read: {reason}"
