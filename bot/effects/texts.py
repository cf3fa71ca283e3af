"""What people read about effects: outcomes in the audit log, and texts in issues and pull requests of the bot's own."""

from __future__ import annotations

CHECK_NEWER = "{name} already shows a newer result"
CHECK_WRITTEN = "{name} on {sha}: {title}"
WITHOUT_ANNOTATIONS = "{said} (without annotations, which GitHub refused: {reason})"
CHECK_SAME = "{name} is up to date"
CHECK_SUPERSEDED = {"title": "Superseded", "summary": "Another run of this check on this commit has the result."}

STATUS_SET = "{name} on {sha}: {description}"
STATUS_SAME = "{name} is up to date"
STATUS_OUTDATED = "the record {record} has changed, so the bot did not change {name}"

ANSWERED = "answered"
ANSWER_SAME = "the answer is up to date"
ANSWER_CORRECTED = "corrected the answer"
COMMENT_DELETED_MEANWHILE = "somebody deleted the comment while the bot changed it"

NO_OPEN_ISSUE = "there is no open issue to close"
ISSUE_OPENED = "opened an issue"
ISSUE_CLOSED = "closed the issue #{number}"
ISSUE_SAME = "the issue #{number} is up to date"
ISSUE_UPDATED = "updated the issue #{number}"
ISSUE_NEWER = "the issue of {key} already has newer content"
NO_ISSUE_FOR_SECTION = "there is no open issue to write in"
ISSUE_LEFT_CLOSED = "somebody closed the issue #{number}, so the bot left it alone"
ALREADY_REPORTED = "an issue has already reported this"

LABEL_SAME = "the label is already as it should be"
LABEL_ADDED = "added the label {label}"
LABEL_REMOVED = "removed the label {label}"

PULL_TAKEN_OVER = (
    "Somebody else pushed to `{branch}`, so I no longer change it. If you delete the branch, I'll create a new one.\n\n"
)
"""At the top of a pull request of the bot's."""
PULL_NOT_NEEDED = "`{base}` already has all of this, so this pull request is no longer needed.\n\n"
"""At the top of a pull request of the bot's."""
NO_FILE_AT_BASE = "there is no file {path} at {sha}"
PULL_OLDER = "a newer decision replaced this one"
PULL_SHOWN = "#{number} is already open for this"
PULL_SAME = "#{number} is up to date"
PULL_OPENED = "opened #{number}"
PULL_UPDATED = "updated #{number}"
PULL_LEFT_ALONE = "somebody else pushed to {branch}, so the bot left it alone"
PULL_CLOSED_BY_OTHERS = "somebody closed #{number}, so the bot waits for a newer change"
PULL_OF_OTHERS = "somebody else opened #{number}, so the bot left its text alone"
PULL_CLOSED = "closed #{number}"
PULL_BRANCH_DELETED = "deleted the branch {branch}"
NOTHING_TO_CLOSE = "there is nothing to close"
BRANCH_TAKEN = (
    "the branch {branch} has commits that aren't mine, and no pull request of mine; delete it, or name another branch "
    "in app.yaml"
)

RECORD_STORED, RECORD_REMOVED = "stored {key}", "removed {key}"

REACTED = "reacted with {content}"
REACTION_REMOVED = "removed the reaction {content}"
NO_REACTION = "there was no reaction {content} of ours"
COMMENT_DELETED = "the comment was deleted, so there is nothing to react to"

CANNOT_MOVE = "the branch {branch} cannot be moved: "
"""The beginning of each failure text about a branch."""
HAS_OTHER_COMMITS = (
    "it has commits that {sha} does not have, and the bot only moves it forward. Delete it, and the bot creates it "
    "again; or merge its commits into the branch that it tracks"
)
BRANCH_CHANGED = "somebody else changed the branch {branch} at the same moment"
BRANCH_THERE = "{branch} is already at {sha}"
BRANCH_CONTAINS = "{branch} already contains {sha}"
BRANCH_CREATED = "created {branch} at {sha}"
BRANCH_MOVED = "moved {branch} from {before} to {sha}"

OUT_OF_DATE = "> **Out of date:** "
"""The beginning of a section that shows a commit other than the head; no section's own text begins like this."""
OF_ANOTHER_COMMIT = "this is for {sha}; the head is now {head}."
SECTION_REQUESTED = "requested section {section} of {sha}"
SECTION_SUBMITTED = "submitted section {section} of {sha}"
SECTION_COMPUTED = "section {section} of {sha} is ready to be shown"
SECTION_MOVED = "section {section}: {sha} is no longer the head of #{number}"
SECTION_NEWER = "section {section} already shows a newer result"
SECTION_SAME = "section {section} is up to date"
SECTION_WRITTEN = "wrote section {section}"
SECTION_REMOVED = "removed section {section}"
SECTIONS_MARKED = "marked as out of date or current again: {sections}"
NO_SECTION_TO_MARK = "no section had to be marked"
HEAD_HAS_MOVED = "the head of #{number} moved"

REVERT_OPENED = "opened #{number}"
REVERT_EXISTS = "#{number} reverts it already"
NOT_REVERTED_BY_GITHUB = (
    "GitHub can't revert #{number}: {message}\nIf it is not reverted yet, revert it by hand: {command} on a new branch "
    "of {base}. A merge commit needs `-m 1`."
)
REVERTS = "Reverts {reference}"
REVERT_TITLE = "Revert {title}"
LONGEST_REVERT_TITLE = 240
