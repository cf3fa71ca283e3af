"""The texts about the docs of a pull request."""

BUILT = "**Docs:** [built for commit {sha}]({url}), {at}."
TROUBLE = "**Docs:** built for commit {sha}, but I can't link them: {why}"
NO_BUILD = "the target URL contains no /PR-NUMBER/BUILD/, such as …/PR-12/3/…"
NOT_LINKED, LINKED = "linking the docs failed", "the docs of {sha} are built"
NO_HEAD = "{sha} is not the head of #{number}"

PLACEHOLDER_IN_HOST = "must not contain {written} in the host: what CI reports must not choose the server of a link"
