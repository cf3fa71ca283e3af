"""A scan of a tracking branch, and of the commits that it may move to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.core.errors import UserError
from bot.github.commits.refs import AHEAD, BEHIND, IDENTICAL, Commit, branch_head, compared, first_parents
from bot.github.commits.required import Signal, blockers
from bot.github.commits.signals import signals_of
from bot.github.errors import is_not_found
from handlers.tracking_branches.decide import (
    UP_TO_DATE,
    Lag,
    ScannedCommit,
    TrackingRules,
    TrackingScan,
    commits_to_request,
)
from handlers.tracking_branches.texts import NO_SOURCE_BRANCH

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.github.commits.ours import Ours


@dataclass(frozen=True, slots=True)
class ScanInProgress:
    """A scan of a branch that was scheduled for `scanned_at`, in ISO 8601.

    `own_contexts` are the bot's own statuses and check runs, which do not count. `verdicts` are those of earlier scans
    on unfit commits, by SHA: with them, a scan covers more commits than it
    requests from GitHub.
    """

    github: GitHub
    repository: str
    rules: TrackingRules
    scanned_at: str
    own_contexts: Ours
    verdicts: Mapping[str, ScannedCommit] = field(default_factory=dict)

    async def scan(self) -> TrackingScan:
        """Read where the branch is, then the commits that it may move to, from the newest to the first fit one.

        Raises `UserError` if the source branch does not exist.
        """
        head = await branch_head(self.github, self.repository, self.rules.branch)
        # Mostly nothing is new. Two heads are a thousandth of a list of commits, so the answers of thousands of
        # repositories stay in the cache, and GitHub's 304 costs no quota.
        if head is not None and head == await branch_head(self.github, self.repository, self.rules.source):
            return TrackingScan(head, IDENTICAL, (), lag=UP_TO_DATE)
        chain = await self._read_source(head)
        relation, newer, lag = await self._compare(head, chain)
        if relation in (IDENTICAL, BEHIND):
            return TrackingScan(head, relation, (), lag=UP_TO_DATE)
        scanned = await self._scan_commits(newer)
        if not scanned or scanned[-1].blockers:
            return TrackingScan(head, relation, tuple(scanned), lag=lag)
        position = chain.index(scanned[-1].commit)
        commits = len(newer) - position if head is not None else None
        if head is not None and len(newer) == len(chain):
            # The head is further back than the scan reads or on a side branch, so the chosen commit may be older.
            step = await compared(self.github, self.repository, head, scanned[-1].commit.sha)
            if step.status in (IDENTICAL, BEHIND):
                return TrackingScan(head, relation, tuple(scanned[:-1]), lag=lag)
            commits = step.ahead_by if step.status == AHEAD else None
        return TrackingScan(head, relation, tuple(scanned), commits, lag, _lag(chain[:position]))

    async def _read_source(self, head: str | None) -> list[Commit]:
        try:
            return await first_parents(self.github, self.repository, self.rules.source, until=head)
        except Exception as error:
            if is_not_found(error):
                raise UserError(NO_SOURCE_BRANCH.format(source=self.rules.source, branch=self.rules.branch)) from error
            raise

    async def _compare(self, head: str | None, chain: Sequence[Commit]) -> tuple[str, Sequence[Commit], Lag | None]:
        """Return the relation of the source to the branch, possibly newer commits, and how far the branch is behind."""
        if head is None:
            return AHEAD, chain, None
        shas = [commit.sha for commit in chain]
        if head in shas:
            newer = chain[: shas.index(head)]
            return (AHEAD if newer else IDENTICAL), newer, _lag(newer)
        # The branch is not among the first parents that were read, so only GitHub can distinguish ahead from diverged.
        comparison = await compared(self.github, self.repository, head, shas[0])
        return comparison.status, chain, Lag(comparison.ahead_by, "")

    async def _scan_commits(self, newer: Sequence[Commit]) -> list[ScannedCommit]:
        requested = commits_to_request(newer, self.verdicts)
        scanned: list[ScannedCommit] = []
        for commit in newer:
            if commit.sha in requested:
                scanned.append(ScannedCommit(commit, await self._blockers(commit.sha), self.scanned_at))
            # A commit without a verdict is skipped: it neither ends the scan nor becomes a candidate.
            elif commit.sha in self.verdicts:
                scanned.append(self.verdicts[commit.sha])
            if scanned and not scanned[-1].blockers:
                break
        return scanned

    async def _blockers(self, sha: str) -> tuple[Signal, ...]:
        """Return what makes a commit unfit: three requests, more if it has over a hundred statuses, checks or runs."""
        require = self.rules.require
        if not require:
            return ()
        signals = await signals_of(self.github, self.repository, sha, self.own_contexts.on(self.rules.source))
        return tuple(blockers(require, signals))


def _lag(newer: Sequence[Commit]) -> Lag:
    return Lag(len(newer), newer[-1].committed_at) if newer else UP_TO_DATE
