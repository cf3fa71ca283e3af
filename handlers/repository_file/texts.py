"""The check run `nightjar/config` on a repository's own settings, and the reasons in the audit log."""

# -- the check run --

INVALID = (
    "{path} has {count} and is ignored. Until a valid file is on {branch}, these settings stay in force: {in_force}."
)
LINE = "- line {line}, column {column}: {message}"
LINE_WITH_KEY = "- line {line}, column {column}: {key}: {message}"
CHECK_LOCALLY = "To check it on your own machine: `nightjar check-config {path}`"
VALID = "{path} is valid. Its settings apply once it is on {branch}."
REMOVED = "{path} does not exist. Once this is on {branch}, only app.yaml applies."
CHANGES = ("key", "now", "with this change")
MORE_ERRORS = "more errors"

# -- the audit log --

NEWER_STORED = "a later push is already stored"
ALREADY_IN_FORCE = "already in force"
IN_FORCE = "the file of {commit} is in force"
NO_ERRORS = "the file has no errors"
NO_FILE = "there is no file: only app.yaml applies"
FILE_INVALID = "errors in the file of {commit}: {faults}; {in_force} stays in force"
NOT_VISIBLE_YET = "GitHub's API does not show the pushed commit yet"
ERRORS = "the file has errors: {count}"
NOT_TOUCHED = "the push does not change the file"
SAME_AS_DEFAULT = "the file is the same as on the default branch"

# -- the log --

NOT_LISTED = "could not list the repositories of an owner"
NOT_SCANNED = "could not check whether a repository's own settings have changed"

# -- titles and words --

TITLE_VALID = "Valid"
TITLE_REMOVED = "Removed"
NO_CHANGES = "no changes"
CHANGES_COUNT = ("setting changes", "settings change")
LEFT_OUT_CHANGES = "what changes"
FILE_IN_FORCE = "the file of commit {commit}, over app.yaml"
APP_YAML_IN_FORCE = "app.yaml only"
THE_FILE_OF = "that of {commit}"
