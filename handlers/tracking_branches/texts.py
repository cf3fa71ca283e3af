"""What people read about tracking branches in the audit log, in issues and in the API."""

# -- why a branch moves or stays, in the audit log and the API --

# True before the move and after it: the pages show the text of the last scan until the next one.
CREATED = "{branch} begins at {sha}"
MOVED = "the newest good commit is {sha}"
COMMITS_AFTER = ", {commits} after {head}"
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

# -- the issue about a branch that cannot be moved --

ISSUE_TITLE = "The branch {branch} cannot be moved"

# -- the API --

NO_TRACKING_BRANCH = "This bot has no {name} branch in this repository, or has not scanned it yet."

TRACKS_ITSELF = "branch and from must differ: one tracks the other"
