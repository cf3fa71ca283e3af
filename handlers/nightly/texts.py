"""What people read about the nightly branch alone: audit log, status and issue."""

FILE_WRITTEN, FILE_SAME = "updated {file} in the bucket", "{file} is up to date"
NO_LABS = "app.yaml no longer has results for this repository"
STATUS_DESCRIPTION = "the branch {branch} moved here on {day}; labs test this commit"

NIGHTLY_ISSUE = """\
Labs test the commit at the head of `{branch}`, which I move every day to a newer commit of `{source}`. But {trouble}.

I retry every hour and every day, and close this issue when it works."""
