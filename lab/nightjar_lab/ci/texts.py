"""What CI says about a decision that it could not get, and why."""

from __future__ import annotations

FALLBACK = "Fallback: {why}, so {what}."
"""`why` is a reason that ends without a full stop, of this module or of the server's."""
SLOW_TESTS_RUN = "the slow tests run"
CI_RUNS = "CI runs"
ALL_IS_BUILT = "everything is built"
IMAGES_ARE_BUILT = "the images are built"

NO_PULL_REQUEST = "This build is not for a pull request, so {what}."
NO_ANSWER = "the bot did not answer ({problem})"
NO_CONNECTION = "no connection to {place}"
TOO_LATE = "too late"
REFUSED = "the bot answered {status}: {detail}"
NO_REASON = "no reason given"
TOKEN_NOT_SENT = "NIGHTJAR_TOKEN is not sent to {url}, where others could read it; use an address with https://"  # noqa: S105
UNREADABLE = "the answer is not from the bot"
LACKING = "the bot's answer does not say"
NO_ADDRESS = "neither --api nor NIGHTJAR_URL is set"
NO_ANSWER_IN_TIME = "there was no answer within {seconds:.0f} s"
UNEXPECTED_ERROR = "an unexpected error occurred ({kind})"
OUTPUT_NOT_WRITTEN = "could not append the values to GITHUB_OUTPUT ({problem})"

# Bad usage
NO_BUILD_NAMED = "name the build: --pr NUMBER, or --branch BRANCH and --sha SHA"
NO_COMMIT = "--branch needs --sha SHA, the commit of the build"
NO_REPOSITORY = "name the repository: --repo OWNER/NAME"
PULL_REQUEST_FORM = "the number of a pull request; leave it empty for other builds"
BRANCH_FORM = "the name of a branch, as in main"
COMMIT_FORM = "the full SHA of a commit, in lower case"
ADDRESS_FORM = "a web address, as in https://ci.example.org"
