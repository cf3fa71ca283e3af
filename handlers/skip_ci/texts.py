"""Reasons that people read in the status `ci/skip`, in the API's answers and on the command line."""

from __future__ import annotations

NOT_LISTED = "GitHub does not list the changed files"
NEWER_PUSH = "a newer push has its own status"

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
