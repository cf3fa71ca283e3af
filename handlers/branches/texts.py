"""What people read about the nightly and the last good branch: audit log, status, issues and API."""

# -- why a branch moves or stays, in the audit log and the API --

CREATED = "{branch} is created at {sha}"
MOVED = "{branch} moves to {sha}, {commits}"
ONE_COMMIT = "one commit on"
COMMITS = "{count} commits on"
SOME_COMMITS = "some commits on"
NOT_NEWEST = ". Skipped newer commits: {newest}"
AT_HEAD = "nothing new: {branch} is at the head of {source}"
IS_AHEAD = "nothing new: {branch} is ahead of {source}"
NONE_GREEN = "none of the {count} newest commits of {source} is green: {newest}"
ONE_NOT_GREEN = "the only new commit of {source} is not green: {newest}"
NO_MATCH = "; nothing on them matches {patterns}: check the names in `require`"
BLOCKED = "{sha}: {blockers}"
NO_SOURCE_BRANCH = "there is no branch {source}; set `from` of {branch} in app.yaml to the branch that has the commits"

# -- after the move --

MOVE_FAILED = "the move of {branch} failed; the next run of the timer retries"
CANNOT_MOVE = "{branch} cannot be moved"
BRANCH_AT = "{branch} is at {sha}"
NO_BRANCH = "there is no branch {branch}"
FILE_WRITTEN, FILE_SAME = "updated {file} in the bucket", "{file} is up to date"
NO_LABS = "app.yaml no longer has results for this repository"
STATUS_DESCRIPTION = "the branch {branch} moved here on {day}; labs test this commit"

# -- the issue about a branch that cannot be moved --

ISSUE_TITLE = "The branch {branch} cannot be moved"
NIGHTLY_ISSUE = """\
Labs test the commit at the head of `{branch}`, which I move every day to a newer commit of `{source}`. But {trouble}.

I retry every hour and every day, and close this issue when it works."""
LAST_GOOD_ISSUE = """\
`{branch}` tracks the newest commit of `{source}` on which everything required is green. But {trouble}.

I retry at every scan for a newer commit, and close this issue when it works."""

# -- the API --

NO_TRACKING_BRANCH = "This bot has no {name} branch in this repository, or has not scanned it yet."
