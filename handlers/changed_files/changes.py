"""Read from GitHub which files a pull request's head changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from bot.core.events import Payload, PullRequest
from handlers.changed_files import texts

if TYPE_CHECKING:
    from bot.github.client import GitHub

SHOWN_OF_SHA = 7
MOST_FILES = 3_000
"""GitHub lists no more (https://docs.github.com/en/rest/pulls/pulls#list-pull-requests-files)."""


@dataclass(frozen=True, slots=True)
class ChangedFiles:
    """The names of all changed files, with both names of a renamed file, which `count` counts once."""

    names: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class UnknownChanges:
    """Why we do not know what a pull request changes: `reason` is a clause that a comma may follow."""

    reason: str


Changes = ChangedFiles | UnknownChanges
NOT_NEEDED = ChangedFiles((), 0)
"""Stands for the files if no decision depends on them (`needs_files`)."""


def changes_of_other_commit(sha: str, head: str) -> UnknownChanges:
    """Return the changes of a commit that is not the head: they are unknown."""
    return UnknownChanges(texts.OTHER_COMMIT.format(asked=sha[:SHOWN_OF_SHA], head=head[:SHOWN_OF_SHA]))


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """A pull request as GitHub shows it; `changed_files` is the number of files, with a renamed file counted once."""

    pull: PullRequest
    repository_id: int
    changed_files: int

    @classmethod
    def of(cls, pull: Payload) -> Self:
        """Read a pull request object; that of a list lacks how many files are changed."""
        return cls(PullRequest.of(pull), pull.integer("base", "repo", "id"), pull.integer("changed_files"))


async def read_proposed(github: GitHub, repository: str, number: int) -> ProposedChange:
    """Ask GitHub for a pull request, in one request. Raises GitHub's errors."""
    url_vars = {"repo": repository, "number": str(number)}
    return ProposedChange.of(
        Payload(await github.getitem("/repos/{+repo}/pulls/{number}", url_vars=url_vars), "pull request")
    )


async def read_changes(github: GitHub, repository: str, proposed: ProposedChange) -> Changes:
    """Ask GitHub which files the head changes since the merge base: a request for each 100 files, and one more.

    `proposed` is the pull request as it was read before. GitHub does not say to which head its list of files belongs,
    so we read the pull request again: after a push or another base branch, the list may be that of another comparison.
    Returns `UnknownChanges` then, and if GitHub's list is not complete. Raises GitHub's errors.
    """
    if proposed.changed_files > MOST_FILES:
        return UnknownChanges(texts.TOO_MANY_FILES.format(count=proposed.changed_files, most=MOST_FILES))
    pull, listed_count = proposed.pull, 0
    names: list[str] = []
    url_vars = {"repo": repository, "number": str(pull.number)}
    async for item in github.getiter("/repos/{+repo}/pulls/{number}/files", url_vars=url_vars):
        file, listed_count = Payload(item, "changed file"), listed_count + 1
        names.extend(changed_names(file))
    reread = await read_proposed(github, repository, pull.number)
    if (reread.pull.head_sha, reread.pull.base_ref) != (pull.head_sha, pull.base_ref):
        return UnknownChanges(texts.PUSHED_MEANWHILE)
    if listed_count != reread.changed_files:
        return UnknownChanges(texts.INCOMPLETE.format(listed=listed_count, count=reread.changed_files))
    return ChangedFiles(tuple(names), listed_count)


def changed_names(file: Payload) -> list[str]:
    """Return the name of a changed file as GitHub lists it, and its old name if it was renamed."""
    # A file that is moved away changes its old folder as well.
    names = [file.string("filename")]
    return [*names, file.string("previous_filename")] if file.has("previous_filename") else names
