"""What people read in the issue about a last good branch that cannot be moved."""

LAST_GOOD_ISSUE = """\
`{branch}` tracks the newest commit of `{source}` on which everything required is green. But {trouble}.

I retry at every scan for a newer commit, and close this issue when it works."""
