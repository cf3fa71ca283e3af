"""Sentences of the dashboard's pages that code chooses; what stands in one place only is in its template."""

from __future__ import annotations

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
    "flaky": "flaky",
    "skipped": "skipped",
    "infra": "no usable results",
    "incomplete": "incomplete",
    "missing": "missing",
    "waiting": "no results yet",
    "not-run": "not run",
}
"""What each cell means, below a grid."""
NEW = "{count:,} new {failures}"
FAILED = "{count:,} failed"
FLAKY = "{count:,} flaky"
PASSED = "{count:,} passed"
SKIPPED = "{count:,} skipped"
NO_SUCH_TARGET = "This repository has no target {target}. Available: {known}{more}."
NO_SUCH_DAY = "there is no such day"
THOUSAND = 1_000
MANY = 10_000


def cell_words(state: str, passed: int, failed: int, new: int, flaky: int, skipped: int) -> str:
    """Say what a cell shows: its state where that has words of its own, then the counts that are not 0."""
    parts = [CELL_WORDS[state]] if state in CELL_WORDS else []
    if new:
        parts.append(NEW.format(count=new, failures="failure" if new == 1 else "failures"))
    for text, count in ((FAILED, failed), (FLAKY, flaky), (PASSED, passed), (SKIPPED, skipped)):
        if count:
            parts.append(text.format(count=count))
    return ", ".join(parts)


def compact(count: int) -> str:
    """Write a count in at most four characters: 999, 1.2k, 34k, 1.2M."""
    if count < THOUSAND:
        return str(count)
    for size, unit in ((THOUSAND**2, "M"), (THOUSAND, "k")):
        if count >= size:
            scaled = count / size
            return f"{scaled:.1f}{unit}" if scaled < 9.95 else f"{scaled:.0f}{unit}"
    return str(count)


# -- comparing two commits --

AMBIGUOUS_COMMIT = "More than one commit with results begins with {digits}. Give more digits of the SHA."
COMMIT_WITHOUT_RESULTS = "There are no results for {sha} on {target}. Choose a commit that its lab tested."
NO_RESULTS_AT_HEAD = "It has no results at the head."
NO_RESULTS_AT_BASE = "It has no results at the base, so there is nothing to compare with."
INCOMPLETE_AT_HEAD = "Its results at the head are incomplete, so nothing counts as removed."
PRECLUDED = "{count:,} tests could not run this time, because their file or the run ended early."
RENAMED = "{count:,} tests have a new name."
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
    "SetStatus": ("set the status", "set {count} statuses"),
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
APPROVE_TESTS = "A maintainer who has reviewed the head comments {command}"
ASK_FOR_TEST = "To test the head on a device, comment {command}"
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
    """Say what effects of a kind did; empty if that is not worth a word, None if we have no words for the kind."""
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
