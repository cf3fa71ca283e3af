"""Decide whether a run may be ingested: it must be the lab's own, and for a commit that labs should test.

Claims in the run don't count. The key in the bucket says which lab it belongs to, because a lab's credentials can write
only below its own folder. GitHub says what the commit is. The existence of the commit is not enough: GitHub shows the
commits of every fork under the repository's name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from cachetools import TTLCache
from gidgethub import HTTPException
from nightjar_formats.model import RunKey
from nightjar_formats.refused import Refused

from bot.core.payload import Payload
from bot.github.errors import is_not_found, is_unprocessable
from bot.github.pages import PER_PAGE
from bot.github.pull_heads import head_of
from bot.results.ingest import texts
from bot.results.state import Admission

if TYPE_CHECKING:
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.settings.results import Lab, Results


REMEMBERED, REMEMBERED_SECONDS = 10_000, 600.0
"""A lab uploads many runs of one commit within minutes; the bot asks GitHub about the commit once."""
REFUSED_SECONDS = 60.0
"""Likewise of a commit that is not to be tested, but that may change: a branch is moved to it, or a head pushed."""


def lab_of(key: RunKey, config: Results) -> Lab:
    """Return the lab that a run belongs to. Raises `Refused` where app.yaml has no such lab or target."""
    lab = config.labs.get(key.lab)
    if lab is None:
        raise Refused(texts.UNKNOWN_LAB.format(lab=key.lab, repository=key.repository))
    if key.target not in lab.targets:
        raise Refused(texts.UNKNOWN_TARGET.format(target=key.target, lab=key.lab, known=", ".join(lab.targets)))
    return lab


def check_quota(lab: Lab, runs: int, sent: int, size: int) -> None:
    """Raise `Refused` if a run of `size` bytes is too much after those `runs` and bytes that were taken today."""
    if runs >= lab.runs_per_day:
        raise Refused(texts.TOO_MANY_RUNS.format(runs=runs))
    if sent + size > lab.megabytes_per_day * 1_000_000:
        raise Refused(texts.TOO_MANY_BYTES_TODAY.format(megabytes=lab.megabytes_per_day))


class Admissions:
    """Decides which commits labs should test. It remembers accepted ones for some minutes, refused ones for one.

    `now` is in seconds.
    """

    def __init__(self, records: Records, now: Callable[[], float] = time.time) -> None:
        self._records = records
        self._known: TTLCache[tuple[str, str, int | None], Admission] = TTLCache(
            REMEMBERED, REMEMBERED_SECONDS, timer=now
        )
        self._refused: TTLCache[tuple[str, str, int | None], str] = TTLCache(REMEMBERED, REFUSED_SECONDS, timer=now)

    async def admit(
        self,
        github: GitHub,
        key: RunKey,
        repository_id: int,
        branches: Sequence[str],
        claimed: int | None,
        *,
        asked_for: int | None = None,
        afresh: bool = False,
    ) -> Admission:
        """Return the admission of a run's commit; `claimed` is the pull request that the manifest names.

        `branches` are those whose commits labs test. `asked_for` is the pull request for which the bot requested a test
        of this commit while it was the head; it counts even if the head has moved.

        `afresh` ignores a remembered refusal, because somebody has fixed the cause and asks again. Raises `Refused` for
        a commit that labs should not test, `TryAgain` or gidgethub's errors if GitHub does not answer.
        """
        if claimed is None:
            claimed = asked_for
        asked = (key.repository, key.sha, claimed)
        if not afresh and (reason := self._refused.get(asked)) is not None:
            raise Refused(reason)
        known = self._known.get(asked)
        if known is None:
            try:
                known = await self._ask(
                    github, key, repository_id, branches, claimed, is_head=claimed is not None and claimed == asked_for
                )
            except Refused as error:
                self._refused[asked] = str(error)
                raise
            self._known[asked] = known
        return known

    async def _ask(
        self,
        github: GitHub,
        key: RunKey,
        repository_id: int,
        branches: Sequence[str],
        claimed: int | None,
        *,
        is_head: bool,
    ) -> Admission:
        committed_at = await _committed_at(github, key)
        if claimed is not None and not is_head:
            await self._check_head(github, key, repository_id, claimed)
        for branch in branches:
            if await _is_on(github, key, branch):
                return Admission(committed_at, mainline=True, pull_request=claimed)
        number = claimed if claimed is not None else await _pull_request_of(github, key)
        if number is None:
            raise Refused(texts.NOT_TO_BE_TESTED.format(sha=key.sha, branches=" or ".join(branches)))
        return Admission(committed_at, mainline=False, pull_request=number)

    async def _check_head(self, github: GitHub, key: RunKey, repository_id: int, number: int) -> None:
        """Raise `Refused` unless the pull request has this head, by our own record or by GitHub's word."""
        known = await head_of(self._records, repository_id, number)
        if known is not None and known.sha == key.sha:
            return
        pull = await _found(github, "/repos/{+repo}/pulls/{number}", repo=key.repository, number=str(number))
        if pull is None:
            raise Refused(texts.NO_SUCH_PULL_REQUEST.format(number=number, repository=key.repository))
        head = pull.string("head", "sha")
        if head != key.sha:
            raise Refused(texts.OTHER_HEAD.format(number=number, head=head, sha=key.sha))


async def _committed_at(github: GitHub, key: RunKey) -> float:
    # This one, for `GET /repos/{owner}/{repo}/commits/{ref}` sends all that the commit changed with it.
    commit = await _found(github, "/repos/{+repo}/git/commits/{sha}", repo=key.repository, sha=key.sha)
    if commit is None:
        raise Refused(texts.UNKNOWN_COMMIT.format(sha=key.sha, repository=key.repository))
    return datetime.fromisoformat(commit.string("committer", "date")).timestamp()


async def _is_on(github: GitHub, key: RunKey, branch: str) -> bool:
    # The second page, for the first holds the difference file by file, which nobody here reads.
    url = "/repos/{+repo}/compare/{branch}...{sha}?per_page=1&page=2"
    compared = await _found(github, url, repo=key.repository, branch=branch, sha=key.sha)
    # `behind` describes the commit: the branch contains it, and more.
    return compared is not None and compared.string("status") in ("identical", "behind")


async def _pull_request_of(github: GitHub, key: RunKey) -> int | None:
    """Return the newest pull request, open ones first, that has this head; of those from forks GitHub does not tell."""
    url = f"/repos/{{+repo}}/commits/{{sha}}/pulls?per_page={PER_PAGE}"
    pulls = [Payload(item) for item in await github.getitem(url, url_vars={"repo": key.repository, "sha": key.sha})]
    heads = [
        (pull.string("state") == "open", pull.integer("number"))
        for pull in pulls
        if pull.string("head", "sha") == key.sha
    ]
    return max(heads)[1] if heads else None


async def _found(github: GitHub, url: str, **url_vars: str) -> Payload | None:
    try:
        return Payload(await github.getitem(url, url_vars=url_vars))
    except HTTPException as error:
        # GitHub answers 422 to a SHA that names nothing.
        if is_not_found(error) or is_unprocessable(error):
            return None
        raise
