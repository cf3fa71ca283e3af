"""What people read about merges. A text that begins with "It" is about the pull request."""

from __future__ import annotations

MERGE_SUMMARY = "Merge this pull request now, if nothing blocks it."
WHEN_GREEN_SUMMARY = "Merge this pull request once its required checks are green and someone has approved it."
CANCEL_SUMMARY = "Cancel `merge when green`, or take the pull request out of the merge queue."
UPDATE_SUMMARY = "Merge the base branch into this pull request, as *Update branch* does."

HEAD_MOVED = "The head moved from {old} to {new}, so I did nothing. Review {new} and ask again."
HEAD_MOVED_SINCE = "The head moved to {new} after your comment, so I did nothing. Review {new} and ask again."
NOT_MERGED = "Not merged:\n{why}"
WILL_NOT_WAIT = """\
Not merged, and waiting won't help:
{why}

Ask again once someone has fixed this."""
WAITING = "I'll merge {sha} once these are resolved:\n{why}\n\nA new push or {cancel} cancels this."
TO_THE_QUEUE = "{sha} is in the merge queue of {base}. GitHub merges it when it reaches the front."
CANCELLED = "Cancelled the merge of {sha} that {by} asked for."
NOTHING_TO_CANCEL = "No merge is pending here, so there is nothing to cancel."

MERGED_ALREADY = "It is already merged."
CLOSED = "It is closed. Reopen it first."
METHOD = (
    "The rules of {base} don't allow the merge method {method}. Set `merge: method:` in `app.yaml` to one of {allowed}."
)
DRAFT = "It is a draft. Mark it as ready for review."
CONFLICTS = "It conflicts with {base}. Merge {base} into it or rebase it, then ask for a new review."
BEHIND = "It is behind {base}, and the rules of {base} require it to be up to date. {how}, then ask for a new review."
UPDATE_BY_COMMAND, UPDATE_YOURSELF = "Comment {command}", "Merge {base} into it"
HELD = "It has the label {label}. Remove the label first."
CHANGES_REQUESTED = "{who} [requested changes]({url}). They must approve, or someone must dismiss the review."
CHECK_FAILED = "{name} failed on {sha}.{remedy}"
RESTART = " Restart it with {command}."
CANNOT_RESTART = " I can't restart it: it comes from a CI that I don't control."
CHECK_RUNNING = "{name} is still running on {sha}."
RULE_MISSING = (
    "{name} hasn't started on {sha} yet. The rules of {base} require it{app}. If nothing ever reports this name, fix "
    "those rules."
)
FROM_APP = " from the app with ID {app}"
PATTERN_MISSING = (
    "Nothing on {sha} matches {name} yet. `merge: required` in `app.yaml` requires it. If nothing ever reports this "
    "name, fix `merge: required`."
)
JOB_MISSING = (
    "{name} hasn't started on {sha} yet. `merge: required` in `app.yaml` requires {pattern}, and {name} matched it on "
    "{seen}, a recent commit of {base}. If that job was removed, I stop waiting for it once {base} has been green "
    "without it for {hours} hours."
)
NOTHING_REPORTED = (
    "No CI has reported on {sha} yet. Neither the rules of {base} nor `merge: required` in `app.yaml` name a check, so "
    "I wait for at least one."
)
UNAPPROVED = "{sha} has no approval by someone with write access other than the author.{older}"
OLDER_APPROVAL = " [The approval by {who}]({url}) is for {sha}, an older commit."
TOO_FEW_APPROVALS = "The rules of {base} require {needed} approvals by people with write access. It has {there}."
MORE = "And {count} more."

PENDING_OFF = "I won't merge {sha}, which {by} [asked for]({url}). {why}"
"""`why` is whole sentences, perhaps with a list."""
BLOCKED = (
    "GitHub doesn't merge {sha} yet: {message}. I'll try again after each review or check. A new push cancels this."
)
PUSHED = "The head moved to {new}. Review it, and ask again to merge it."
RETARGETED = "Its base is now {new}, not {old}. Ask again to merge it there."
NEEDS_WORK = """\
Waiting won't help:

{why}

Ask again once someone has fixed this."""
FELL_BEHIND = "I'm still waiting to merge {sha}, but now someone must act:\n\n{why}"
LEFT_QUEUE = "GitHub removed it from the merge queue of {base}: {why} ({reason}). Ask again to add it back."
WHY_IT_LEFT = {
    "MANUAL": "{by} removed it",
    "MERGE_CONFLICT": "it conflicts with a pull request ahead of it in the queue",
    "CI_FAILURE": "a check that the queue requires failed",
    "CI_TIMEOUT": "a check that the queue requires didn't finish in time",
    "QUEUE_CLEARED": "someone cleared the queue",
    "ROLL_BACK": "the queue was rolled back",
    "BRANCH_PROTECTIONS": "it doesn't meet the rules of the branch",
    "GIT_TREE_INVALID": "Git could not merge it",
    "INVALID_MERGE_COMMIT": "Git could not merge it",
}
"""https://docs.github.com/webhooks/webhook-events-and-payloads?actionType=dequeued#pull_request"""
REASON_UNKNOWN = "GitHub doesn't say why"

MERGING_OFF = "Merging is now off for this repository."
HEAD_MOVED_MEANWHILE = "The head moved from {old} to {new}, which nobody asked me to merge. Review it and ask again."
NO_ACCESS = "{by} no longer has write access. Ask someone who has it to comment again."
NOW_BLOCKED = "Something blocks it now:\n{why}"
REFUSED = "GitHub didn't merge {sha}: {message}."
SKIPS_CI = (
    "A rebase keeps the message of {sha}, which tells CI to skip it (such as `[skip ci]`), so {base} would not be "
    "tested. Reword the commit, or set `merge: method:` in `app.yaml` to `squash` or `merge`."
)
QUEUE_REFUSED = "GitHub didn't add {sha} to the merge queue: {message}."

UPDATE_CLOSED = "This pull request is closed, so I didn't update it. Reopen it first."
UPDATE_HEAD_MOVED = "The head moved from {old} to {new}, so I didn't update it. Review {new} and ask again."
UPDATE_CONFLICTS = "GitHub can't merge {base} into it because of conflicts. Resolve them by hand."
UPDATE_FORK = (
    "I can't push to this branch: it is in the fork {fork}, which doesn't allow edits by maintainers or by this App. "
    "Ask the author to merge {base} into it."
)
UPDATE_REFUSED = "GitHub didn't update the branch: {message}."

# Reasons in the audit log
WHY_NO_PENDING_MERGE = "no merge is pending for this commit"
WHY_REFRESH = "requested a refresh of {numbers}"
WHY_SWEPT = "pending merges: {count}"
WHY_UPDATED = "the base was merged into the head, and the merge is still pending"
WHY_TRIED = "the bot tried to merge #{number}"
WHY_READY, WHY_NOT_READY = "it is ready to be merged", "it is not ready to be merged"
WHY_CLOSED, WHY_HEAD_MOVED, WHY_LEFT_QUEUE = "it is closed", "the head moved", "it left the merge queue"
WHY_NOT_CHECKED = "the bot could not check the pending merge"
WHY_CANCELLED = "the pending merge was cancelled before this ran"
WHY_CHANGED = "the base or the head has changed meanwhile, or GitHub's answers disagree for now"
WHY_UNDECIDED = "GitHub is still computing whether there are conflicts"
WHY_MERGED, WHY_MERGED_ALREADY = "merged {sha} into {base} as {commit}", "{sha} is already merged"
WHY_REFUSED_YET = "GitHub does not merge {sha} yet, so the merge stays pending"
WHY_QUEUED, WHY_QUEUED_ALREADY = (
    "added {sha} to the merge queue of {base}",
    "{sha} is already in the merge queue of {base}",
)
WHY_REMOVED_FROM_QUEUE, WHY_NOT_IN_QUEUE = "removed from the merge queue", "it is no longer in the merge queue"

# Outcomes in the audit log
IS_PENDING, NONE_PENDING = "the merge of {sha} is pending", "no merge is pending"
PENDING_REPLACED = "a later request replaced this one"
REFRESH_REQUESTED, REFRESH_PENDING = "requested a refresh of #{number}", "a refresh of #{number} is already pending"
UPDATE_STARTED = "asked GitHub to merge {base} into {sha}"
UPDATED_ALREADY, HAS_BASE = "{sha} was already updated", "{sha} already has the newest commits of {base}"

NOTHING_REQUIRED = (
    "{place}.merge: `required` is empty. If the branch's own rules require nothing either, the bot merges a pull "
    "request once everything that CI has reported is green, even if more checks are still to come. List the required "
    "checks."
)
"""A warning of `nightjar check-config`."""

HOLDING_LABEL = "label must not be one of hold_labels: those block a merge"
