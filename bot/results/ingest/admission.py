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

from bot.core.events import Payload
from bot.core.listing import counted
from bot.github.errors import is_not_found, is_unprocessable
from bot.github.pull_heads import head_of
from bot.github.transport.pages import PER_PAGE
from bot.results.ingest import texts
from bot.results.ingest.commit_summaries import commit_summary
from bot.results.state import Admission

if TYPE_CHECKING:
    from bot.engine.records import Records
    from bot.github.client import GitHub
    from bot.results.settings.results import Lab, Results


REMEMBERED, REMEMBERED_SECONDS = 10_000, 600.0
"""A lab uploads many runs of one commit within minutes; the bot asks GitHub about the commit once."""
REFUSED_SECONDS = 60.0
"""How long a refusal is remembered: less, because a branch may move to the commit, or a pull request get it as head."""


def lab_of(key: RunKey, config: Results) -> Lab:
    """Return the lab that a run belongs to. Raises `Refused` if app.yaml has no such lab or target."""
    lab = config.labs.get(key.lab)
    if lab is None:
        raise Refused(texts.UNKNOWN_LAB.format(lab=key.lab, repository=key.repository))
    if key.target not in lab.targets:
        raise Refused(texts.UNKNOWN_TARGET.format(target=key.target, lab=key.lab, known=", ".join(lab.targets)))
    return lab


def check_case(key: RunKey, repository: str, prefix: str) -> None:
    """Raise `Refused` unless a run's repository is written as in app.yaml (`repository`)."""
    # GitHub ignores the letter case of a name, but folders don't: half of the runs would be in another history.
    if key.repository != repository:
        raise Refused(texts.OTHER_CASE.format(found=key.repository, repository=repository, prefix=prefix))


def check_quota(lab: Lab, runs: int, sent_bytes: int, size: int) -> None:
    """Raise `Refused` if a run of `size` bytes exceeds the lab's quota, after so many runs and bytes of today."""
    if runs >= lab.runs_per_day:
        raise Refused(texts.TOO_MANY_RUNS.format(runs=counted(runs, "run")))
    if sent_bytes + size > lab.megabytes_per_day * 1_000_000:
        raise Refused(texts.TOO_MANY_BYTES_TODAY.format(megabytes=lab.megabytes_per_day))


class Admissions:
    """Decides which commits labs should test. It remembers accepted ones for ten minutes, refused ones for one minute.

    `clock` returns the time in seconds.
    """

    def __init__(self, records: Records, clock: Callable[[], float] = time.time) -> None:
        self._records = records
        self._accepted: TTLCache[tuple[str, str, int | None], Admission] = TTLCache(
            REMEMBERED, REMEMBERED_SECONDS, timer=clock
        )
        self._refused: TTLCache[tuple[str, str, int | None], str] = TTLCache(REMEMBERED, REFUSED_SECONDS, timer=clock)

    async def admit(
        self,
        github: GitHub,
        key: RunKey,
        repository_id: int,
        branches: Sequence[str],
        claimed_pull: int | None,
        *,
        tested_pull: int | None = None,
        afresh: bool = False,
    ) -> Admission:
        """Return the admission of a run's commit; `claimed_pull` is the pull request that the manifest names.

        Labs test the commits of `branches`. `tested_pull` is the pull request for which the bot requested a test of
        this commit while it was the head; it counts even if the head has moved.

        `afresh` ignores a remembered refusal, because somebody has fixed the cause and asks again. Raises `Refused` for
        a commit that labs should not test, `TryAgain` or gidgethub's errors if GitHub does not answer.
        """
        if claimed_pull is None:
            claimed_pull = tested_pull
        question = (key.repository, key.sha, claimed_pull)
        if not afresh and (reason := self._refused.get(question)) is not None:
            raise Refused(reason)
        admission = self._accepted.get(question)
        if admission is None:
            try:
                admission = await self._ask(
                    github,
                    key,
                    repository_id,
                    branches,
                    claimed_pull,
                    is_head=claimed_pull is not None and claimed_pull == tested_pull,
                )
            except Refused as error:
                self._refused[question] = str(error)
                raise
            self._accepted[question] = admission
        return admission

    async def _ask(
        self,
        github: GitHub,
        key: RunKey,
        repository_id: int,
        branches: Sequence[str],
        claimed_pull: int | None,
        *,
        is_head: bool,
    ) -> Admission:
        commit = None
        if claimed_pull is not None and not is_head:
            commit = await _commit(github, key)
            await self._check_head(github, key, repository_id, claimed_pull)
        for branch in branches:
            if (commit_on_branch := await _commit_on(github, key, branch)) is not None:
                return _admission(commit_on_branch, claimed_pull, mainline=True)
        commit = commit or await _commit(github, key)
        number = claimed_pull if claimed_pull is not None else await _pull_request_of(github, key)
        if number is None:
            raise Refused(texts.NOT_TO_BE_TESTED.format(sha=key.sha, branches=" or ".join(branches)))
        return _admission(commit, number, mainline=False)

    async def _check_head(self, github: GitHub, key: RunKey, repository_id: int, number: int) -> None:
        """Raise `Refused` unless the pull request has this head, according to our own record or GitHub."""
        record = await head_of(self._records, repository_id, number)
        if record is not None and record.sha == key.sha:
            return
        pull = await _get_or_none(github, "/repos/{+repo}/pulls/{number}", repo=key.repository, number=str(number))
        if pull is None:
            raise Refused(texts.NO_SUCH_PULL_REQUEST.format(number=number, repository=key.repository))
        head = pull.string("head", "sha")
        if head != key.sha:
            raise Refused(texts.OTHER_HEAD.format(number=number, head=head, sha=key.sha))


async def _commit(github: GitHub, key: RunKey) -> Payload:
    # Not `GET /repos/{owner}/{repo}/commits/{ref}`, which also returns everything that the commit changed.
    commit = await _get_or_none(github, "/repos/{+repo}/git/commits/{sha}", repo=key.repository, sha=key.sha)
    if commit is None:
        raise Refused(texts.UNKNOWN_COMMIT.format(sha=key.sha, repository=key.repository))
    return commit


def _admission(commit: Payload, pull_request: int | None, *, mainline: bool) -> Admission:
    """Return the admission of a commit; `commit` is GitHub's `git-commit`."""
    committed_at = datetime.fromisoformat(commit.string("committer", "date")).timestamp()
    summary = commit_summary(commit.text("message"), commit.text("author", "name"), pull_request)
    return Admission(committed_at, mainline, pull_request, summary)


async def _commit_on(github: GitHub, key: RunKey, branch: str) -> Payload | None:
    """Return the commit if a branch contains it, otherwise None."""
    # The second page has no list of changed files, which is most of the first page.
    url = "/repos/{+repo}/compare/{branch}...{sha}?per_page=1&page=2"
    comparison = await _get_or_none(github, url, repo=key.repository, branch=branch, sha=key.sha)
    # `behind`: the branch contains the commit and newer ones. Then the commit itself is the merge base.
    if comparison is None or comparison.string("status") not in ("identical", "behind"):
        return None
    # The SHA of an annotated tag is that of no commit.
    if comparison.string("merge_base_commit", "sha") != key.sha:
        return None
    return comparison.at("merge_base_commit", "commit")


async def _pull_request_of(github: GitHub, key: RunKey) -> int | None:
    """Return the newest pull request with this head, open ones first. GitHub does not list pull requests from forks."""
    url = f"/repos/{{+repo}}/commits/{{sha}}/pulls?per_page={PER_PAGE}"
    pulls = [Payload(item) for item in await github.getitem(url, url_vars={"repo": key.repository, "sha": key.sha})]
    heads = [
        (pull.string("state") == "open", pull.integer("number"))
        for pull in pulls
        if pull.string("head", "sha") == key.sha
    ]
    return max(heads)[1] if heads else None


async def _get_or_none(github: GitHub, url: str, **url_vars: str) -> Payload | None:
    """Return GitHub's answer, or None if GitHub has no such object."""
    try:
        return Payload(await github.getitem(url, url_vars=url_vars))
    except HTTPException as error:
        # GitHub answers 422 for the SHA of no commit.
        if is_not_found(error) or is_unprocessable(error):
            return None
        raise
