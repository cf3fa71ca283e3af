"""Merges that people wish for: what is kept of those that wait, and how they come to be looked at again.

A status or a check run names a commit alone, and carries no pull request's lock. So it is a hint and nothing more:
where somebody waits for that commit, a look at the pull request is asked for, by a delivery of our own that is handled
in order with everything else of its pull request. It is GitHub's answer at that look that counts.

Looks are numbered by pull request. Whoever asks for one asks for the next that has not begun; as soon as that begins,
before anything is read, the number moves on. So a burst of a hundred checks makes a look or two, and none is lost: what
was told before a look began, GitHub shows to it, and what is told later asks for another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bot.core.events import Person
from bot.core.payload import Payload

if TYPE_CHECKING:
    from bot.core.events import Delivery, Repository
    from bot.engine.records import Records

REFRESH_DUE = "nightjar.merge"
"""A pull request is to be looked at, whether it can be merged. GitHub's events have no dot: nobody can send one."""

MOST_WAITING = 1_000
"""Pull requests of one repository that are looked at by the timer, the ones that began to wait last."""


@dataclass(frozen=True, slots=True)
class PendingMerge:
    """A merge that somebody asked for, of this commit into this branch, where they asked (`url`) and when (ISO 8601).

    `queued`: it is in GitHub's merge queue since, where we put it; all that is left to do is to take it out again.
    `refused`: GitHub has refused it for what it does not show to us, and people were told that it waits for that.
    """

    sha: str
    base: str
    by: Person
    url: str
    asked_at: str
    queued: bool = False
    refused: bool = False

    @classmethod
    def read(cls, record: Mapping[str, Any] | None) -> PendingMerge | None:
        """Read it back out of its record; None where nothing waits."""
        if not record or "sha" not in record:
            return None
        stored = Payload(record, "merge record")
        return cls(
            sha=stored.string("sha"),
            base=stored.string("base"),
            by=Person(stored.integer("by", "id"), stored.string("by", "login"), stored.flag("by", "is_bot")),
            url=stored.text("url"),
            asked_at=stored.text("asked_at"),
            queued=stored.flag("queued"),
            refused=stored.flag("refused"),
        )

    def as_record(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)

    def is_same(self, other: PendingMerge) -> bool:
        """Say whether both were asked for by the same words, whatever became of them since."""
        return replace(self, queued=other.queued, refused=other.refused) == other


def record_after(kept: Mapping[str, Any] | None, wish: PendingMerge | None, moment: str) -> dict[str, Any] | None:
    """Return the record to keep in place of another, None where something that was said later stands there.

    `moment` (ISO 8601) is when the wish was said, or for None that nothing is wished for any more; empty: not known,
    and whatever is kept ends. It stays in the record, so that who was held up brings back nothing that has ended.
    """
    known = kept or {}
    over, last = "ended_at" in known, str(known.get("asked_at") or known.get("ended_at") or "")
    if wish is None:
        return {"ended_at": max(moment, last)} if not moment or moment >= last else None
    if wish.queued and over:
        # No wish but how it stands at GitHub: to take it out of the queue somebody has to know that it is there.
        return wish.as_record()
    return None if moment < last or (over and moment == last) else wish.as_record()


def pending_key(repository_id: int, number: int) -> str:
    """Return the key of the record of the merge that waits for a pull request; one without `sha`: none does."""
    return f"{_pending_keys(repository_id)}{number}"


def _pending_keys(repository_id: int) -> str:
    return f"merge:{repository_id}#"


def watch_key(repository_id: int, sha: str) -> str:
    """Return the key of the record of the pull requests that are to be looked at when something happens to a commit."""
    return f"merge-watch:{repository_id}:{sha}"


def refresh_count_key(repository_id: int, number: int) -> str:
    """Return the key of the record of how many looks at a pull request have begun."""
    return f"merge-looks:{repository_id}#{number}"


async def numbers_in(records: Records, key: str) -> list[int]:
    """Return the pull requests that a record lists."""
    return [int(number) for number in (await records.get(key) or {}).get("numbers", ())]


async def waiting(records: Records, repository_id: int) -> list[int]:
    """Return a repository's pull requests for which a merge waits, the first that began to wait first, for the timer.

    Found by what is kept for each: of a list of them, two that are written in the same instant would lose one.
    """
    found = await records.starting_with(_pending_keys(repository_id))
    wishes = [(PendingMerge.read(record), int(key.rpartition("#")[2])) for key, record in found.items()]
    waits = sorted((wish.asked_at, number) for wish, number in wishes if wish is not None and not wish.queued)
    return [number for _, number in waits][-MOST_WAITING:]


async def next_refresh(records: Records, repository: Repository, number: int) -> tuple[str, str, str, str]:
    """Return the next look at a pull request that has not begun, as the engine accepts it: GUID, event, body, lock."""
    turn = await _begun(records, repository.id, number)
    known: dict[str, Any] = {"id": repository.id, "full_name": repository.full_name}
    body: dict[str, Any] = {
        "action": "",
        "repository": known,
        "pull_request": {"number": number},
        "look": {"turn": turn},
    }
    if repository.installation_id is not None:
        body["installation"] = {"id": repository.installation_id}
    about = f"{repository.id}#{number}"
    return f"merge:{about}:{turn}", REFRESH_DUE, json.dumps(body), f"pr:{about}"


async def note_refresh(records: Records, delivery: Delivery) -> None:
    """Note that a look begins: whoever asks for one from now on gets the one after it.

    Called once for each delivery, before anything is planned. One that is replayed is none that others count on.
    """
    if delivery.event != REFRESH_DUE:
        return
    payload = delivery.payload
    repository_id, number = payload.integer("repository", "id"), payload.integer("pull_request", "number")
    following = payload.integer("look", "turn") + 1
    if following > await _begun(records, repository_id, number):
        await records.put(refresh_count_key(repository_id, number), {"begun": following})


async def _begun(records: Records, repository_id: int, number: int) -> int:
    return int((await records.get(refresh_count_key(repository_id, number)) or {}).get("begun", 0))
