"""What people read about the nightly branch alone: audit log, status and issue."""

FILE_WRITTEN, FILE_SAME = "updated {file} in the bucket", "{file} is up to date"
NO_LABS = "app.yaml no longer has results for this repository"
STATUS_DESCRIPTION = "the branch {branch} moved here on {day}; labs test this commit"

NIGHTLY_ISSUE = """\
Labs test the commit at the head of `{branch}`, which I move every day to a newer commit of `{source}`. But {trouble}.

I retry every hour and every day, and close this issue when it works."""


# -- the first sentence of the page, and what to do next --

LONGEST_NAME = 100
CANNOT_MOVE_NOW = "The nightly branch cannot be moved; the reason is below."
NO_BRANCH_YET = "There is no branch {branch} yet."
LABS_TEST = "Labs test "
SINCE_DAY = ", from {day} on"
COMMITS_AFTER = ", {commits} after "
NO_NEWER_COMMIT = "; there is no newer commit."
NEWER_COMMIT = "; {commits} is not green yet."
NEWER_COMMITS = "; {commits} are not green yet."
FIX_BLOCKER = "Maintainer: fix {name}, the only blocker of {commits}"
TEST_NIGHTLY, NIGHTLY_COMMAND = "Lab: test this commit with ", "nightjar-lab nightly"
