"""The form of a fallback verdict, and the reasons why it is not known which files changed."""

from __future__ import annotations

OTHER_COMMIT = "{asked} is not the head, which is {head}"
TOO_MANY_FILES = "{count} files are changed and GitHub lists {most} of them"
TOO_MANY_IN_COMMIT = "GitHub shows at most {most} changed files of a commit, and there may be more"
PUSHED_MEANWHILE = "somebody pushed while the changed files were read"
INCOMPLETE = "GitHub lists {listed} of {count} changed files"
NO_PARENT = "{sha} has no parent to compare it with"
OTHER_BASE = "the branch was at {before} before the push of {sha}, whose parent is {parent}"
