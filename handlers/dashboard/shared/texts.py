"""Sentences of the dashboard's pages that code chooses; what stands in one place only is in its template."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

CELL_WORDS = {
    "infra": "no usable results",
    "missing": "no results arrived",
    "waiting": "no results yet",
    "absent": "not part of the run",
    "not-run": "not run",
    "incomplete": "incomplete",
    "failing-uncompared": "nothing to compare with",
}
"""What a cell says before its counts, or without any."""
LEGEND = {
    "passed": "passed",
    "new-failure": "new failures",
    "still-failing": "still failing",
    "failing-uncompared": "failing, nothing to compare with",
    "known-failure": "failing, but known: flaky or quarantined",
    "flaky": "flaky",
    "skipped": "skipped",
    "infra": "no usable results",
    "incomplete": "incomplete",
    "missing": "missing",
    "waiting": "no results yet",
    "not-run": "not run",
}
"""What each cell means, below a grid."""
ONE_SIDED_LEGEND = "a failure that passes on the simulator, or on the device, of the target"
"""What the sign of such a failure means, below a grid with a simulator and its device."""
NEW = "{count:,} new {failures}"
NEW_OF_FAILING = "{new} of {failing}"
"""What the cell of a grid shows if some of its failures are not new."""
FAILED = "{count:,} failed"
KNOWN = "{count:,} known {failures}"
FLAKY = "{count:,} flaky"
DEVICE_ONLY = "{count:,} of them passed on the simulator"
SIMULATOR_ONLY = "{count:,} of them passed on the device"
PASSED = "{count:,} passed"
SKIPPED = "{count:,} skipped"
NO_SUCH_TARGET = "This repository has no target {target}. Available: {known}{more}."
LOG_TOO_LONG = "{name} is long: only the first {most} MiB of its text are shown. Download it to read the rest"
FILE_LINES = "{name} has {lines}; "
NO_TEST_FAILED = "no test of its suite failed."
NAMES_NO_TEST = "it names none of the {tests}."
NAMES_TESTS = "it names {named:,} of {tests}, the first "
NOT_NAMED = " It does not name {test}."
IN_LINE = "in line {line:,}"
FILE_IMAGE = "{name} is an image of {bytes:,} bytes."
FILE_EXPIRED = "{name} has expired: files of runs are shown for {period} (`results.keep_files` in app.yaml)."
FILE_REMOVED = "{name} is not in the lab's bucket: it did not arrive, or a lifecycle rule removed it."
FILE_REPLACED = "{name} is not shown, because it is not the file that the manifest of the run describes."
FILE_UNREADABLE = "{name} cannot be read from the bucket now. The log of the bot says why."
FILE_COST = "{name} is not shown: {why}. Download it."
FILES_BUSY = "Too many files are read at this moment. Try again in a few seconds."
NO_SUCH_DAY = "there is no such day"
THOUSAND = 1_000
MANY = 10_000


@lru_cache(4096)
def cell_words(
    state: str,
    passed: int,
    failed: int,
    new: int,
    known: int,
    flaky: int,
    skipped: int,
    device_only: int = 0,
    simulator_only: int = 0,
) -> str:
    """Say what a cell shows: its state where that has words of its own, then the counts that are not 0.

    `failed` includes the `new` failures, but not the `known` ones. Of them, `device_only` passed on a simulator of the
    target, and `simulator_only` on the device that it simulates.

    Most cells of a page share a few texts, or were on it before, so texts are cached.
    """
    parts = [CELL_WORDS[state]] if state in CELL_WORDS else []
    counts = (
        (NEW, new),
        (FAILED, failed),
        (DEVICE_ONLY, device_only),
        (SIMULATOR_ONLY, simulator_only),
        (KNOWN, known),
        (FLAKY, flaky),
        (PASSED, passed),
        (SKIPPED, skipped),
    )
    for text, count in counts:
        if count:
            parts.append(text.format(count=count, failures="failure" if count == 1 else "failures"))
    return ", ".join(parts)


def compact(count: int) -> str:
    """Write a count in at most four characters up to 999 million: 999, 1.2k, 34k, 1.2M."""
    for size, unit in ((THOUSAND**2, "M"), (THOUSAND, "k")):
        # Half a unit less is rounded up to the next one: 999,500 is 1.0M, not 1000k.
        if count >= size - size / THOUSAND / 2:
            scaled = count / size
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return str(count)


# -- small charts --

RATES_OF_COMMITS = "Pass rate of {commits} nightly commits, oldest first: {lowest} to {highest}, newest {newest}"
SECONDS_OF_COMMITS = "Run time of {commits} nightly commits, oldest first: {shortest} to {longest}, newest {newest}"

# -- comparing two commits --

AMBIGUOUS_COMMIT = "More than one commit with results begins with {digits}. Give more digits of the SHA."
BAD_SHA = "This is not the SHA of a commit: give 7 to 40 hexadecimal digits."
COMMIT_WITHOUT_RESULTS = "There are no results for {sha} on {target}. The newest commits with results: {newest}."
NO_RESULTS_AT_HEAD = "It has no results at the head."
NO_RESULTS_AT_BASE = "It has no results at the base, so there is nothing to compare with."
INCOMPLETE_AT_HEAD = "Its results at the head are incomplete, so nothing counts as removed."
PRECLUDED = "{tests} could not run this time: the file or the run ended early."
RENAMED = ("test has a new name.", "tests have new names.")
UNSEARCHED = "Too many names changed to search for renamed tests: each counts as one removed and one new test."

# -- the page of a pull request --

BAD_NUMBER = "This is not the number of a pull request."
STEP_FAILED = "This failed. Operators can find the reason in the log under delivery {guid}."
STEP_RETRIED = "tried {times}; the bot will try again"
OTHER_EVENT = "Something happened on GitHub"
COMMAND_STATES = {
    "waiting": "the bot has not read it yet",
    "working": "in progress",
    "done": "done",
    "refused": "not carried out",
}
"""What came of a command, where nothing better is known."""
EFFECTS_DONE = {
    "ApproveDeviceJobs": ("approved the tests", "approved the tests"),
    "ApproveRun": ("approved 1 workflow run", "approved {count} workflow runs"),
    "CancelDeviceJobs": ("cancelled the tests", "cancelled the tests"),
    "LeaveQueue": ("took it out of the merge queue", "took it out of the merge queue"),
    "MergePull": ("merged it, or added it to the merge queue", "merged it, or added it to the merge queue"),
    "RequestRefresh": ("", ""),
    "RerunJob": ("restarted 1 job", "restarted {count} jobs"),
    "RerunWorkflow": ("restarted 1 workflow run", "restarted {count} workflow runs"),
    "StartJenkinsBuild": ("started 1 build", "started {count} builds"),
    "StorePendingMerge": ("", ""),
    "StoreRecord": ("", ""),
    "SubmitDeviceJob": ("requested 1 device test", "requested {count} device tests"),
    "UpdateBranch": ("asked GitHub to merge the base into it", "asked GitHub to merge the base into it"),
}
"""What the effects of a command did, by their kind: one of them, or several."""
MERGED_BY, MERGED, CLOSED = "Merged by {login}", "Merged", "Closed without a merge"
ON_DAY = " on {moment}"
NOTHING_PENDING = "Nothing is pending."
HEAD_UNKNOWN = "No webhook has named the head of this pull request yet."
MERGE_QUEUED = "The merge that {login} requested is in the merge queue of {base}. "
MERGE_WAITS, MERGE_WAITS_FOR = (
    "The merge that {login} requested is pending. ",
    "The merge that {login} requested is pending: {why}. ",
)
BOT_WORKS = "The bot is still working on {count}. "
TEST_PENDING = "{target}"
TEST_STATE, TEST_WAITS = ": {words}. ", ": waiting for an approval. "
MORE_TESTS = "{count} more device tests are pending. "
RESULTS_AWAITED = " is still sending results. "
NEW_FAILURES, ON_TARGETS = "{failures}", " on {bad} of {count}. "
NO_NEW_FAILURES = "No new failures on {count}. "
LOOK_AT_FAILURES = "Look at the new failures of {target}"
MAY_IGNORE = "; if this pull request did not cause them, someone with write access can press "
IGNORE_ON_CHECK = "Ignore on its check run"
APPROVE_TESTS = "A maintainer who has reviewed the head comments "
ASK_FOR_TEST = "To test the head on a device, comment "
READ_REFUSAL = "{command} was not carried out: the answer says why"
ALL_COMMANDS = "All commands"
STEP_END = "."
EVENTS = {
    "issue_comment.created": "Someone commented",
    "issue_comment.edited": "Someone edited a comment",
    "issue_comment.deleted": "Someone deleted a comment",
    "pull_request_review.submitted": "Someone submitted a review",
    "pull_request_review.edited": "Someone edited a review",
    "pull_request_review.dismissed": "A review was dismissed",
    "pull_request_review_comment.created": "Someone commented on the code",
    "pull_request_review_comment.edited": "Someone edited a comment on the code",
    "pull_request.opened": "The pull request was opened",
    "pull_request.reopened": "The pull request was reopened",
    "pull_request.closed": "The pull request was closed",
    "pull_request.edited": "Title, text or base was edited",
    "pull_request.synchronize": "New commits were pushed",
    "pull_request.labeled": "A label was added",
    "pull_request.unlabeled": "A label was removed",
    "pull_request.ready_for_review": "The pull request is ready for review",
    "pull_request.converted_to_draft": "The pull request became a draft",
    "pull_request.review_requested": "A review was requested",
    "pull_request.enqueued": "The pull request joined the merge queue",
    "pull_request.dequeued": "The pull request left the merge queue",
    "merge_group.checks_requested": "The merge queue asked for the checks of its group",
    "merge_group.destroyed": "The merge queue removed its group",
    "status": "A status of the head changed",
    "workflow_run.completed": "A workflow run of the head ended",
    "check_run.completed": "A check of the head ended",
    "nightjar.device-job": "A requested device test changed",
    "nightjar.lab-webhook": "A lab was notified of a requested device test",
    "nightjar.merge": "The bot checked whether the pending merge can go on",
    "nightjar.section": "The bot computed a section of its comment",
    "nightjar.section-text": "The bot updated its comment",
}
"""What happened, by event and action."""


def effects_done(kind: str, count: int) -> str | None:
    """Say what effects of a kind did; empty if that is not worth a word, None if the effects say it themselves."""
    if kind not in EFFECTS_DONE:
        return None
    singular, plural = EFFECTS_DONE[kind]
    return singular if count == 1 else plural.format(count=count)


# -- badges and the feed of regressions --

BADGE_FAILING = "{count:,} failing"
FEED_TITLE = "Regressions in {repository}"
FEED_AUTHOR = "Nightjar"
FEED_ENTRY = "{test} fails on {target}"
FEED_SINCE = "This test of {suite} began to fail at {since}."
FEED_GOOD = "It last passed at {good}."
FEED_ENDED = "The failure ended on {day}: {how}."

# -- a new issue about a test --

ISSUE_FLAKY, ISSUE_FAILING = "Flaky test: {test}", "Failing test: {test}"
ISSUE_WHERE = "{test} of {suite} on {target}"
ISSUE_IS_FLAKY, ISSUE_PROOF = "The test is flaky: {words}.", " It both passed and failed at these commits: {proofs}."
ISSUE_SINCE = "It has failed since {since}."
ISSUE_GOOD = " It last passed at {good}: [commits in between]({url})."
ISSUE_REPRODUCE = "To reproduce it:"
ISSUE_HISTORY = "[History of the test]({url})"

# -- search --

SEARCH_EMPTY = "Find tests, targets, labs, commits by the first digits of their SHA, and pull requests by number."
SEARCH_NOTHING = "Nothing matches “{text}”."
SEARCH_ONE, SEARCH_SOME = "{counts} matches “{text}”.", "{counts} match “{text}”."
PLURALS = {"repository": "repositories"}


def search_answer(text: str, counts: Mapping[str, int], most: int) -> str:
    """Say how much matches a text, by kind; a count above `most` means that there are more."""
    parts = []
    for kind, count in counts.items():
        if count:
            number = f"over {most}" if count > most else str(count)
            parts.append(f"{number} {kind if count == 1 else PLURALS.get(kind, f'{kind}s')}")
    if not parts:
        return SEARCH_NOTHING.format(text=text)
    joined = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return (SEARCH_ONE if sum(counts.values()) == 1 else SEARCH_SOME).format(counts=joined, text=text)


# -- all labs --

MOST_NAMED_LABS = 3
NO_LABS = "No lab is configured."
ON_THIS_PAGE = " on this page"


def labs_on_time(count: int, *, of_page: bool = False) -> str:
    """Say that no lab is late; with `of_page`, there are labs on other pages."""
    labs = "The lab" if count == 1 else "All labs"
    return f"{labs}{ON_THIS_PAGE * of_page} {'has' if count == 1 else 'have'} reported within the last 36 hours."


def labs_late(late: int, total: int, *, of_page: bool = False) -> str:
    """Say how many labs are late, before their names; with `of_page`, there are labs on other pages."""
    labs = f"{total:,} {'lab' if total == 1 else 'labs'}{ON_THIS_PAGE * of_page}"
    return f"{late:,} of {labs} {'is' if late == 1 else 'are'} late:"


PENDING_FOR = "a merge or a device test is pending for "


def pulls_open(count: int, total: int) -> str:
    """Say how many of the listed pull requests are open."""
    pulls = f"{total:,} {'pull request' if total == 1 else 'pull requests'}"
    return f"{count:,} of the {pulls} listed here {'is' if count == 1 else 'are'} open"


def lab_silence(since: str) -> str:
    """Say, after the name of a lab, for how long it has sent no nightly run; empty if it never sent one."""
    return f" has not reported for {since}" if since else " has never reported"
