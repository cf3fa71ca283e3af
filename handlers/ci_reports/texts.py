"""The form of the sections about CI's tests, and the sentences that say why results of CI could not be read."""

from __future__ import annotations

# Lists
FOLDED = "<details><summary>{title}: {count:,}</summary>\n\n{rows}\n\n</details>"
UNFOLDED = "{title}:\n{rows}"
HEADED = "**{title}** at {sha} ({at}):"
PAGE = "[Everything the bot did on this pull request]({url})"

# Why there are no results, or not all of them
NO_HEAD = "{sha} is not the head of #{number}"
NO_RESULTS = "there are no results for {sha}"
ANOTHER_SOURCE = "app.yaml now names another source of results"
NO_ARTIFACTS = "The run of {workflow} has no artifact that matches {patterns}."
NO_BASE = (
    "No results to compare with: no run of {workflow} on {branch} was green at the merge base {sha} or at an earlier "
    "commit among its newest {most}."
)
BASE_EMPTY = "No results to compare with: {run} at {sha} has no matching artifact that can be read."
THE_RUN = "[the run of {workflow}]({url})"
ARTIFACT_UNREADABLE = "The artifact {name} cannot be read: {why}."
ARTIFACT_TOO_LARGE = "it is larger than {mib} MiB"
ARTIFACT_REMOVED = "GitHub no longer has it"
ARTIFACT_NOT_READ = "an earlier artifact of this run was too expensive to read, so the rest of the run is skipped"
ARTIFACTS_LEFT_OUT = "{count} artifacts match; only the first {most} were read."
FILES_TOO_LONG = "the files of all artifacts together have more than {limit:,} bytes uncompressed"
NO_REPORTS = "it has no file that ends with {suffix}"
MORE_WRONG = "and {count:,} more of its files cannot be read"
NO_ZIP = "it is not a complete zip archive"
DIRECTORY_TOO_LARGE = "its list of files is larger than {mib} MiB"
TOO_MANY_FILES = "it has more than {most:,} files"
ZIP_TOO_LONG = "its files together have more than {limit:,} bytes uncompressed"
BOMB = "{name} is more than {ratio} times as large uncompressed, and no real report is"
BROKEN = "{name} cannot be decompressed"
ENCRYPTED = "{name} is encrypted"
OTHER_METHOD = "{name} is compressed with something other than deflate"

# Reasons in the audit log
WHY_NOT_FINISHED = "the run ended as {conclusion}, so its tests did not finish"
WHY_REQUESTED = "pull requests with the head {sha}: {count}"
WHY_COMPARED = "compared the results of {sha}"

NO_RESULTS_SOURCE = (
    "must name the source of CI's results: lab and target (uploaded to the bucket of results), or workflow and "
    "artifacts (of GitHub Actions)"
)
TWO_RESULTS_SOURCES = "must name one source of CI's results: either lab and target, or workflow and artifacts"
UNKNOWN_LAB = "needs a lab {lab} with the target {target} below results.labs; CI uploads its results as that lab"
