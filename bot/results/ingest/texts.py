"""Every sentence that a lab reads about its runs: why one is refused, waits or is incomplete, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nightjar_formats.readers.repairs import Repairs

from bot.core.listing import counted

UNKNOWN_LAB = "app.yaml has no lab {lab} for {repository}; ask its maintainers to add it below results.labs"
UNKNOWN_TARGET = "app.yaml has no target {target} for the lab {lab}; available: {known}"
UNKNOWN_COMMIT = "there is no commit {sha} in {repository}"
OTHER_HEAD = "the head of pull request {number} is {head}, not {sha}; leave pull_request out, or test its head"
NO_SUCH_PULL_REQUEST = "there is no pull request {number} in {repository}"
NOT_TO_BE_TESTED = (
    "{sha} is neither on {branches} nor the head of a pull request; for a fork's pull request, set pull_request in "
    "the manifest"
)
NO_SUCH_JOB = (
    "names that begin with {prefix} are for runs of the bot's jobs, and the lab has no job {job} for this commit"
)
TOO_MANY_RUNS = (
    "the lab has uploaded {runs} today (UTC), the limit in app.yaml (runs_per_day); upload this one "
    "tomorrow, under another run ID"
)
TOO_MANY_BYTES_TODAY = (
    "with this run the lab would exceed {megabytes} MB today (UTC), the limit in app.yaml "
    "(megabytes_per_day); upload it tomorrow, under another run ID"
)
FILE_UNREADABLE = "{name}: {why}"
OTHER_CASE = (
    "the folder is for {found}, but app.yaml names the repository {repository}; upload the run to the folder "
    "{prefix}{repository}/"
)
ONCE_NAMED = (
    "after app.yaml has it, ask a maintainer to run `nightjar results ingest`, or upload the run under another run ID"
)
ONCE_CORRECTED = "fix this and upload the run under another run ID"
MANIFEST_REMOVED = "{key} was removed"
LARGER = "{name} has more than the {expected:,} bytes that manifest.json says"
READING_COST = "the files could not be read: {why}; upload the run in shards, under another run ID"
NEVER_ARRIVED = "{missing}; the deadline has passed, so upload the run again under another run ID"
REPAIRED = "{name} was repaired: {repairs}"
MORE_REPAIRED = ("more file was repaired", "more files were repaired")
MOST_REPAIRED = 5
"""The most files of a run whose repairs are listed."""


def repaired(names: Sequence[str], repairs: Iterable[Repairs]) -> str:
    """Say what was repaired in the files of a run, "" if nothing was."""
    repairs_by_name = [
        (name, "; ".join(file_repairs.sentences())) for name, file_repairs in zip(names, repairs, strict=True)
    ]
    lines = [REPAIRED.format(name=name, repairs=text) for name, text in repairs_by_name if text]
    unlisted = len(lines) - MOST_REPAIRED
    return ". ".join(lines[:MOST_REPAIRED] + ([f"and {counted(unlisted, *MORE_REPAIRED)}"] if unlisted > 0 else []))


NO_BENCHMARK = "the run of a benchmark has no file {name}"
