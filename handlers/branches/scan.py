"""Looking at a branch that follows another, and at the commits that it may move to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bot.core.errors import UserError
from bot.github.errors import is_not_found
from bot.github.refs import AHEAD, BEHIND, IDENTICAL, Commit, branch_head, compared, first_parents
from bot.github.required import Signal, blockers
from bot.github.signals import signals_of
from handlers.branches.decide import UP_TO_DATE, Lag, Looked, Rules, TrackingScan, due
from handlers.branches.texts import NO_SOURCE_BRANCH

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.github.ours import Ours


@dataclass(frozen=True, slots=True)
class Looking:
    """A look at a branch, at a moment `at` in ISO 8601.

    `known` are verdicts of earlier looks, by SHA, on commits that were not fit: with them it is looked further back
    than is asked about at once.
    """

    github: GitHub
    repository: str
    rules: Rules
    at: str
    ours: Ours
    known: Mapping[str, Looked] = field(default_factory=dict)

    async def look(self) -> TrackingScan:
        """Look where the branch is and, the newest first, at the commits that it may move to, up to one that is fit.

        Raises `UserError` where there is no branch that they come from.
        """
        before = await branch_head(self.github, self.repository, self.rules.branch)
        chain = await self._source()
        relation, newer, lag = await self._behind(before, chain)
        if relation in (IDENTICAL, BEHIND):
            return TrackingScan(before, relation, (), lag=UP_TO_DATE)
        looked = await self._verdicts(newer)
        if not looked or looked[-1].blockers:
            return TrackingScan(before, relation, tuple(looked), lag=lag)
        position = chain.index(looked[-1].commit)
        commits = len(newer) - position if before is not None else None
        if before is not None and len(newer) == len(chain):
            # The branch is further back than one page, or on a side branch: the chosen commit may be behind it.
            step = await compared(self.github, self.repository, before, looked[-1].commit.sha)
            if step.status in (IDENTICAL, BEHIND):
                return TrackingScan(before, relation, tuple(looked[:-1]), lag=lag)
            commits = step.ahead_by if step.status == AHEAD else None
        return TrackingScan(before, relation, tuple(looked), commits, lag, _lag(chain[:position]))

    async def _source(self) -> list[Commit]:
        try:
            return await first_parents(self.github, self.repository, self.rules.source)
        except Exception as error:
            if is_not_found(error):
                raise UserError(NO_SOURCE_BRANCH.format(source=self.rules.source, branch=self.rules.branch)) from error
            raise

    async def _behind(self, before: str | None, chain: Sequence[Commit]) -> tuple[str, Sequence[Commit], Lag | None]:
        """Return how the source lies to the branch, its commits that may be newer, and how far the branch is behind."""
        if before is None:
            return AHEAD, chain, None
        shas = [commit.sha for commit in chain]
        if before in shas:
            newer = chain[: shas.index(before)]
            return (AHEAD if newer else IDENTICAL), newer, _lag(newer)
        whole = await compared(self.github, self.repository, before, shas[0])
        return whole.status, chain, Lag(whole.ahead_by, "")

    async def _verdicts(self, newer: Sequence[Commit]) -> list[Looked]:
        wanted = due(newer, self.known)
        looked: list[Looked] = []
        for commit in newer:
            if commit.sha in wanted:
                looked.append(Looked(commit, await self._blockers(commit.sha), self.at))
            elif commit.sha in self.known:
                looked.append(self.known[commit.sha])
            if looked and not looked[-1].blockers:
                break
        return looked

    async def _blockers(self, sha: str) -> tuple[Signal, ...]:
        """Ask what keeps a commit from being fit: two requests, more where it has over a hundred statuses or checks."""
        require = self.rules.require
        if not require:
            return ()
        signals = await signals_of(self.github, self.repository, sha, self.ours.on(self.rules.source))
        return tuple(blockers(require, signals))


def _lag(newer: Sequence[Commit]) -> Lag:
    return Lag(len(newer), newer[-1].committed_at) if newer else UP_TO_DATE
