"""Reasons that people read in the status `ci/skip`, in the API's answers and on the command line."""

from __future__ import annotations

FALLBACK = "Fallback: {why}, so {what}."
"""`why` is one of the reasons below that end without a full stop."""
CI_RUNS, SLOW_TESTS_RUN, IMAGES_ARE_BUILT = "CI runs", "the slow tests run", "the images are built"
ALL_IS_BUILT = "everything is built"

# -- slow tests --

SLOW_TESTS_NOT_ON = "On: slow tests cannot be turned off in this repository (slow_tests is off)."
SLOW_TESTS_ON_COMMIT = "On: only a pull request can turn slow tests off, and this is a commit of a branch."
CHOICE_UNREADABLE = "On: the choice for this pull request could not be read, so everything runs."

# -- skip CI --

NOT_ON = "CI runs: skip_ci is off in this repository."
TAGGED = "CI is skipped: the title had [{tag}] when CI started."
UNTAGGED = "CI runs: the title has no [{tag}]."
COMMIT_UNTAGGED = "CI runs: skip_ci names no files, and the title tag does not apply to commits."
NO_FILES = "CI runs: no file changed."
MATTERS = "CI runs because {name} changed."
DOCS_ONLY = "CI is skipped: only documentation changed ({count})."
NOTHING_MATTERS = "CI is skipped: no file that CI needs changed ({count})."
RESTART_CI = " Restart CI if it has started."
NOT_SKIPPED_IN_GROUP = "CI runs: the merge queue tests each merge group"

# -- docs only --

DOCS_NOT_ON = "Everything is built: skip_ci is off in this repository."
DOCS_TAGGED = "The docs are not built either: the title has [{tag}]."
DOCS_NO_FILES = "Everything is built: no file changed."
DOCS_NOT_ALONE = "Everything is built because {name} changed, which is not documentation."
DOCS_UNTOUCHED = "Everything is built: no documentation changed."
DOCS_ALONE = "Only the docs are built: only documentation changed ({count})."

# -- Docker images --

IMAGES_NOT_ON = "The images are built: rebuild_docker is off in this repository."
IN_AN_IMAGE = "The images are built because {name} changed."
IN_NO_IMAGE = "The images are not rebuilt: none of their files changed."

# -- why a decision is a fallback --

OTHER_COMMIT = "{asked} is not the head, which is {head}"
TOO_MANY_FILES = "{count} files are changed and GitHub lists {most} of them"
TOO_MANY_IN_COMMIT = "GitHub shows at most {most} changed files of a commit, and there may be more"
PUSHED_MEANWHILE = "somebody pushed while the changed files were read"
INCOMPLETE = "GitHub lists {listed} of {count} changed files"
NOT_LISTED = "GitHub does not list the changed files"
NO_PARENT = "{sha} has no parent to compare it with"
OTHER_BASE = "the branch was at {before} before the push of {sha}, whose parent is {parent}"
NO_SETTINGS = "the repository's settings could not be read"
NO_ANSWER_ABOUT_PULL = "GitHub did not answer about the pull request"
NO_ANSWER_ABOUT_COMMIT = "GitHub did not answer about the commit"
BEHIND = "GitHub does not show the newest push yet"
SLOW = "GitHub did not answer in time"
NEWER_PUSH = "a newer push has its own status"

# -- the command line: asking the bot --

NO_ANSWER = "the bot did not answer ({problem})"
REFUSED = "the bot answered {status}: {detail}"
NOT_ENCRYPTED = "NIGHTJAR_TOKEN is not sent to {url}, where others could read it; use an address with https://"
UNREADABLE = "the answer is not from the bot"
LACKING = "the bot's answer does not say"

# -- the command line: asking GitHub --

FILE_INVALID = "{path} on the default branch has errors"
NO_STATUS = "there is no status {context} on {sha} yet"
GITHUB_NOT_REACHED = "GitHub did not answer"
INVALID_CREDENTIALS = "GitHub does not accept the token"
GITHUB_REFUSED = "GitHub refused: {message}"
MISSING_PERMISSION = "the token lacks a permission that this needs"
PULL_NOT_SHOWN = "GitHub shows no such pull request to this token"
COMMIT_NOT_SHOWN = "GitHub shows no such commit to this token"

# -- the API --

NO_SUCH_COMMIT = "There is no such commit, or app.yaml does not list the repository."
NO_SUCH_PULL_REQUEST = "There is no such pull request, or app.yaml does not list the repository."
BAD_REPOSITORY = "Give the owner and the name of a repository."
BAD_NUMBER = "A pull request's number is a whole number from 1 to 2147483647."
BAD_SHA = "Give the full SHA of a commit: 40 or 64 hexadecimal digits in lower case."
BAD_BRANCH = "Give the name of a branch, such as main: at most 244 characters, without refs/heads/ and without spaces."
GITHUB_UNAVAILABLE = "GitHub isn't answering right now. Try again in a minute."
