"""Our own record of each pull request's head, updated from the payloads of webhooks.

An `issue_comment` payload names no commit, and GitHub's API can lag behind its webhooks. So the head that the author of
a command saw is the one in the newest webhook that we received.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from gidgethub import HTTPException

from bot.core.events import Delivery, Payload, PullRequest, Repository
from bot.engine.records import Record
from bot.github.errors import is_not_found

if TYPE_CHECKING:
    from bot.engine.records import Records
    from bot.github.client import GitHub


LARGEST_NUMBER = 2**31 - 1
"""The largest number of a pull request or issue."""
MOST_PULLS = 20
"""The most pull requests that we store for a commit, the latest ones: a branch may have several pull requests."""


@dataclass(frozen=True, slots=True)
class PullHead:
    """A pull request as its newest payload describes it.

    `heads` are the heads that payloads with this `updated_at` named, in order of arrival. Each maps to the head that
    its push replaced, empty if no payload reported a push. `head_ref` is the pull request's branch in this repository,
    empty for one from a fork. `moved_at` is the time of the payload that first named this head instead of another, so
    no earlier than the push; empty if we know of no other head. `since` is the time since when we know this head:
    `moved_at`, or else the time of our first payload; empty if the pull request was opened with this head. The author
    of an earlier comment may have seen another head. `title`, `author` (a login), `merged_at` and `merged_by` (a login)
    are as in the payload; records of earlier releases lack them.
    """

    sha: str
    heads: Mapping[str, str]
    head_ref: str
    base_ref: str
    author_id: int
    is_open: bool
    updated_at: str
    moved_at: str = ""
    since: str = ""
    title: str = ""
    author: str = ""
    merged_at: str = ""
    merged_by: str = ""

    @property
    def state(self) -> Literal["open", "merged", "closed"]:
        """Return whether it is open, merged, or closed without a merge."""
        return "open" if self.is_open else "merged" if self.merged_at else "closed"

    @classmethod
    def of(cls, pull: PullRequest, replaced_sha: str = "", *, opened: bool = False) -> Self:
        """Return the record of a pull request; `opened`: it was just opened. A push replaced `replaced_sha`, if any."""
        return cls(
            sha=pull.head_sha,
            heads={pull.head_sha: replaced_sha},
            head_ref=pull.head_ref,
            base_ref=pull.base_ref,
            author_id=pull.author.id,
            is_open=pull.is_open,
            updated_at=pull.updated_at,
            moved_at=pull.updated_at if replaced_sha else "",
            since="" if opened else pull.updated_at,
            title=pull.title,
            author=pull.author.login,
            merged_at=pull.merged_at,
            merged_by=pull.merged_by,
        )

    def merged_into(self, stored: PullHead) -> PullHead:
        """Merge this payload's head into the stored record, and return the newer state.

        Webhooks arrive in any order. GitHub's times are whole seconds, so pushes decide between heads of the same
        second: the head is the one that no push replaced; of several, the one that arrived last.
        """
        if self.updated_at < stored.updated_at:
            return stored
        if self.updated_at > stored.updated_at:
            return self._moved_from(stored, self.sha)
        heads = {
            **stored.heads,
            **{sha: replaced_sha or stored.heads.get(sha, "") for sha, replaced_sha in self.heads.items()},
        }
        last = [sha for sha in (*stored.heads, self.sha) if sha not in heads.values()]
        sha = last[-1] if last else self.sha
        return replace((self if sha == self.sha else stored)._moved_from(stored, sha), sha=sha, heads=heads)

    def _moved_from(self, stored: PullHead, sha: str) -> PullHead:
        """Return a copy with the times of the stored head if `sha` is that head, else with the time of this payload."""
        if sha == stored.sha:
            return replace(self, moved_at=stored.moved_at, since=stored.since)
        return replace(self, moved_at=self.updated_at, since=self.updated_at)

    def may_follow(self, written_at: str) -> bool:
        """Return whether the author of a text from that time may have seen another head.

        Times are whole seconds: a text from the same second as a push counts as written before it.
        """
        return bool(self.since) and self.since >= written_at


@dataclass(frozen=True, slots=True)
class PullNumbers:
    """The numbers of pull requests, the latest last."""

    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedPull:
    """A pull request of which a webhook came. Its key has all ten digits of the number, so that keys are in order.

    docs/decisions/pages-of-pull-requests.md
    """

    number: int


@dataclass(frozen=True, slots=True)
class RepositoryId:
    """GitHub's ID of a repository."""

    id: int


HEAD = Record("head", 1, PullHead, "the head of a pull request, as its newest payload names it", days=365)
PULLS_OF_COMMIT = Record(
    "pulls-of", 1, PullNumbers, "the pull requests that have or had a commit as their head", days=90
)
LISTED_PULL = Record("pull-list", 1, ListedPull, "an entry of the list of a repository's pull requests", days=365)
REPOSITORY_ID = Record("repository", 1, RepositoryId, "the ID of a repository, by name", days=None)
RECORDS = (HEAD, PULLS_OF_COMMIT, LISTED_PULL, REPOSITORY_ID)


async def note_head(records: Records, delivery: Delivery) -> None:
    """Store the head that a `pull_request` delivery names, unless a newer one is stored already.

    Called once for each delivery, in the order of its pull request's lock. Ignores other events. Raises `PayloadError`
    for a payload that lacks one of the stored fields.
    """
    if delivery.event != "pull_request":
        return
    pull, repository = PullRequest.of(delivery.payload.at("pull_request")), delivery.repository
    head, key = _head_in(pull, delivery), HEAD.of(repository.id, pull.number)
    stored = await records.get(key)
    newest = head.merged_into(stored) if stored is not None else head
    if newest != stored:
        # Write this record first: after a crash between the two, `newest` still differs from the stored head, so both
        # are written again.
        await _note_pull(records, repository.id, newest.sha, pull.number)
        listed = LISTED_PULL.of(repository.id, list_key(pull.number))
        await records.put_all({key: newest, listed: ListedPull(pull.number)})
    await note_id(records, repository.full_name, repository.id)


async def note_id(records: Records, full_name: str, repository_id: int) -> None:
    """Store the id of a repository by its name."""
    key, record = REPOSITORY_ID.of(full_name.lower()), RepositoryId(repository_id)
    if await records.get(key) != record:
        await records.put(key, record)


def _head_in(pull: PullRequest, delivery: Delivery) -> PullHead:
    return PullHead.of(pull, replaced_sha=delivery.payload.text("before"), opened=delivery.action == "opened")


async def head_of(records: Records, repository_id: int, number: int) -> PullHead | None:
    """Return the stored record of a pull request; None if none of its payloads has arrived."""
    return await records.get(HEAD.of(repository_id, number))


def list_key(number: int) -> str:
    """Return the last part of the key of a `LISTED_PULL`."""
    return f"{number:010}"


async def listed_heads(
    records: Records, repository_id: int, most: int, end_number: int | None = None
) -> dict[int, PullHead]:
    """Return the records of a repository's newest pull requests, at most `most`, by number, the highest number first.

    With `end_number`, only those with a lower number.
    """
    end_part = None if end_number is None else list_key(end_number)
    listed_pulls = await records.newest_under(LISTED_PULL, repository_id, most=most, end_part=end_part)
    keys = {pull.number: HEAD.of(repository_id, pull.number) for pull in listed_pulls}
    heads = await records.get_some(keys.values())
    return {number: heads[key.name] for number, key in keys.items() if key.name in heads}


async def _note_pull(records: Records, repository_id: int, sha: str, number: int) -> None:
    """Store that a pull request has a commit as its head: statuses and workflow runs name only the commit."""

    def with_number(stored: PullNumbers | None) -> PullNumbers | None:
        numbers = stored.numbers if stored is not None else ()
        return PullNumbers((*numbers, number)[-MOST_PULLS:]) if number not in numbers else None

    # Pull requests with the same head have different locks, so their deliveries may be processed concurrently.
    await records.update(PULLS_OF_COMMIT.of(repository_id, sha), with_number)


async def pulls_with_head(records: Records, repository_id: int, sha: str) -> list[int]:
    """Return the pull requests that have a commit as their head, including those from forks, without a request.

    https://docs.github.com/rest/commits/commits#list-pull-requests-associated-with-a-commit lists none from a fork.
    """
    pulls = await records.get(PULLS_OF_COMMIT.of(repository_id, sha)) or PullNumbers()
    heads = {number: await head_of(records, repository_id, number) for number in pulls.numbers}
    return [number for number, head in heads.items() if head is not None and head.sha == sha]


async def confirmed_head(
    records: Records, github: GitHub, repository: Repository, number: int, sha: str
) -> PullHead | None:
    """Return the pull request if `sha` is its head; ask GitHub if our own record has another head.

    Raises GitHub's errors.
    """
    stored = await head_of(records, repository.id, number)
    if stored is not None and stored.sha == sha:
        return stored
    url_vars = {"repo": repository.full_name, "number": str(number)}
    try:
        pull = PullRequest.of(Payload(await github.getitem("/repos/{+repo}/pulls/{number}", url_vars=url_vars)))
    except HTTPException as error:
        if is_not_found(error):
            return None
        raise
    # If GitHub already has a newer push, its webhook is still on its way and will be handled after the caller.
    return PullHead.of(pull) if pull.head_sha == sha else None


async def repository_id_of(records: Records, full_name: str) -> int | None:
    """Return the id of the repository with this name, None if no payload has contained it yet."""
    record = await records.get(REPOSITORY_ID.of(full_name.lower()))
    return record.id if record is not None else None


async def repository_ids(records: Records, full_names: Iterable[str]) -> dict[str, int]:
    """Return the ids of repositories by the given names, without those that no payload has contained yet."""
    keys = {name: REPOSITORY_ID.of(name.lower()) for name in full_names}
    stored = await records.get_some(keys.values())
    return {name: stored[key.name].id for name, key in keys.items() if key.name in stored}


async def find_repository_id(
    records: Records, github_for: Callable[[str], Awaitable[GitHub]], full_name: str, *, remember: bool = True
) -> int:
    """Return a repository's id; ask GitHub if no payload has contained it yet.

    Raises GitHub's errors.
    """
    repository_id = await repository_id_of(records, full_name)
    if repository_id is not None:
        return repository_id
    github = await github_for(full_name)
    repository_id = Payload(await github.getitem("/repos/{+repo}", url_vars={"repo": full_name})).integer("id")
    if remember:
        await note_id(records, full_name, repository_id)
    return repository_id
