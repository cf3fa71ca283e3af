"""Reasons that people read in the status `ci/skip`, in the API's answers and on the command line."""

from __future__ import annotations

# -- slow tests --

SLOW_TESTS_NOT_ON = "On: slow tests cannot be turned off in this repository (slow_tests is off)."
SLOW_TESTS_ON_COMMIT = "On: only a pull request can turn slow tests off, and this is a commit of a branch."
SLOW_TESTS_REQUESTED = "On: requested with --slow-tests."
SLOW_TESTS_NOT_REQUESTED = "Off: nobody requested them. To turn on, use --slow-tests."
CHOICE_UNREADABLE = "On: the choice for this pull request could not be read, so everything runs."

# -- why a decision is a fallback --

NO_SETTINGS = "the repository's settings could not be read"
NO_ANSWER_ABOUT_PULL = "GitHub did not answer about the pull request"
NO_ANSWER_ABOUT_COMMIT = "GitHub did not answer about the commit"
BEHIND = "GitHub does not show the newest push yet"
SLOW = "GitHub did not answer in time"

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
