"""What people read who mute a test."""

NEEDS_FILE = "needs the key repository_file, because the pull request changes .github/nightjar.yaml"
OFF = "`mute` is off in app.yaml, so nothing was changed"
NO_BRANCH = "the default branch {branch} does not exist"
FILE_FAULTY = "{path} on {branch} has errors, so the bot does not change it; fix them first: {fault}"
NOT_IN_PLACE = (
    "the list `quarantine` in {path} is written in a form that the bot cannot extend; add the lines below by hand"
)
NOT_VALID_THEN = "with one more item, {path} would not be valid: {fault}"
REFRESHED = "{path} has changed; pull requests that begin at its newest commit now: {count}"
ALREADY_OPEN = "pull request #{number} is open already"
PROPOSED = "{login} (ID {person}) asked to mute {test} until {until}"

TITLE = "Mute {test} until {until}"
ALL_TARGETS = "all targets"
BODY = """\
Until {until} (UTC), failures of {test} on {targets} count neither as new failures nor as regressions. Every report \
still lists them, and from the next day on they count again.

| | |
| --- | --- |
| Owner | {owner} |
| Reason | {reason} |
| Tracked in | {issue} |
| Requested by | {login} (ID {person}){page} |

Merge this pull request to mute the test, or close it. To end the mute early, remove the item from `{path}`.
"""
PAGE = ", on [the test's page]({url})"
FAILED = "The pull request could not be opened: {reason}"

NEEDS_WRITE = (
    "Only people with the write role in {repository} can mute a test, and GitHub says that {login} has the role {role}."
)
NOT_KNOWN = "We could not ask GitHub for your role in the repository. Try again in a minute."
MUTE_OFF = "`mute` is off in app.yaml. The page of the test shows the lines to add by hand."
BAD_FIELD = "{label}: must be {meaning}. Go back and change it."
BAD_DAY = "a day from {first} to {last}"
UNKNOWN_TARGET = "one of the targets in app.yaml"
STAR = "the whole ID of a test, not a pattern"
LABELS = {
    "test": "Test",
    "targets": "Target",
    "owner": "Owner",
    "reason": "Reason",
    "issue": "Issue",
    "until": "Until",
}

MUTED = "It is muted until {until}: "
NOT_MUTED = "It is not muted"
WAITS = "; a pull request is being opened."
OPENED = "; {login} opened "
EARLIER = "; already proposed: "
PULL = "pull request #{number}"
MERGE_IT = ". Merge it to mute the test."
ENDED = "."
EXAMPLE_OWNER = "octocat"
EXAMPLE_REASON = "Why its failures are known"
