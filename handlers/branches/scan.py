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
from handlers.branches.decide import UP_TO_DATE, Lag, ScannedCommit, TrackingRules, TrackingScan, to_scan
from handlers.branches.texts import NO_SOURCE_BRANCH

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.github.commits.ours import Ours


@dataclass(frozen=True, slots=True)
class ScanInProgress:
    """A scan of a branch, at a moment `at` in ISO 8601.

    `known` are verdicts of earlier scans on unfit commits, by SHA: with them, a scan covers more commits than it
    requests from GitHub.
    """

    github: GitHub
    repository: str
    rules: TrackingRules
    at: str
    ours: Ours
    known: Mapping[str, ScannedCommit] = field(default_factory=dict)

    async def scan(self) -> TrackingScan:
        """Read where the branch is, then the commits that it may move to, from the newest to the first fit one.

        Raises `UserError` if the source branch does not exist.
        """
        before = await branch_head(self.github, self.repository, self.rules.branch)
        chain = await self._source(before)
        relation, newer, lag = await self._behind(before, chain)
        if relation in (IDENTICAL, BEHIND):
            return TrackingScan(before, relation, (), lag=UP_TO_DATE)
        scanned = await self._verdicts(newer)
        if not scanned or scanned[-1].blockers:
            return TrackingScan(before, relation, tuple(scanned), lag=lag)
        position = chain.index(scanned[-1].commit)
        commits = len(newer) - position if before is not None else None
        if before is not None and len(newer) == len(chain):
            # The head is further back than the scan reads or on a side branch, so the chosen commit may be older.
            step = await compared(self.github, self.repository, before, scanned[-1].commit.sha)
            if step.status in (IDENTICAL, BEHIND):
                return TrackingScan(before, relation, tuple(scanned[:-1]), lag=lag)
            commits = step.ahead_by if step.status == AHEAD else None
        return TrackingScan(before, relation, tuple(scanned), commits, lag, _lag(chain[:position]))

    async def _source(self, before: str | None) -> list[Commit]:
        try:
            return await first_parents(self.github, self.repository, self.rules.source, until=before)
        except Exception as error:
            if is_not_found(error):
                raise UserError(NO_SOURCE_BRANCH.format(source=self.rules.source, branch=self.rules.branch)) from error
            raise

    async def _behind(self, before: str | None, chain: Sequence[Commit]) -> tuple[str, Sequence[Commit], Lag | None]:
        """Return the relation of the source to the branch, possibly newer commits, and how far the branch is behind."""
        if before is None:
            return AHEAD, chain, None
        shas = [commit.sha for commit in chain]
        if before in shas:
            newer = chain[: shas.index(before)]
            return (AHEAD if newer else IDENTICAL), newer, _lag(newer)
        # The branch is not among the first parents that were read, so only GitHub can distinguish ahead from diverged.
        whole = await compared(self.github, self.repository, before, shas[0])
        return whole.status, chain, Lag(whole.ahead_by, "")

    async def _verdicts(self, newer: Sequence[Commit]) -> list[ScannedCommit]:
        wanted = to_scan(newer, self.known)
        scanned: list[ScannedCommit] = []
        for commit in newer:
            if commit.sha in wanted:
                scanned.append(ScannedCommit(commit, await self._blockers(commit.sha), self.at))
            # A commit without a verdict is skipped: it neither ends the scan nor becomes a candidate.
            elif commit.sha in self.known:
                scanned.append(self.known[commit.sha])
            if scanned and not scanned[-1].blockers:
                break
        return scanned

    async def _blockers(self, sha: str) -> tuple[Signal, ...]:
        """Return what makes a commit unfit: three requests, more if it has over a hundred statuses, checks or runs."""
        require = self.rules.require
        if not require:
            return ()
        signals = await signals_of(self.github, self.repository, sha, self.ours.on(self.rules.source))
        return tuple(blockers(require, signals))


def _lag(newer: Sequence[Commit]) -> Lag:
    return Lag(len(newer), newer[-1].committed_at) if newer else UP_TO_DATE
