"""Looking at a branch that follows another, and at the commits that it may move to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from bot.errors import UserError
from bot.following.decide import UP_TO_DATE, Lag, Look, Looked, Rules, due
from bot.github.errors import is_not_found
from bot.github.refs import AHEAD, BEHIND, IDENTICAL, Commit, branch_head, compared, first_parents
from bot.github.signals import signals_of
from bot.required import blockers

if TYPE_CHECKING:
    from bot.github.client import GitHub

MOST_ASKED = 30
"""Commits whose statuses and checks are read in one look: two requests each, and more where there are many."""

NO_SOURCE = "there is no branch {source}; name the one that the commits come from in app.yaml, as `from` of {branch}"

NOTHING_KNOWN: Mapping[str, Looked] = MappingProxyType({})


async def look_for(
    github: GitHub, repository: str, rules: Rules, at: str, known: Mapping[str, Looked] = NOTHING_KNOWN
) -> Look:
    """Look where a branch is and, the newest first, at the commits that it may move to, up to the first that is fit.

    `known` are verdicts of earlier looks, by SHA, on commits that were not fit: with them it is looked further back
    than MOST_ASKED commits. Raises `UserError` where there is no source.
    """
    before = await branch_head(github, repository, rules.branch)
    chain = await _source(github, repository, rules)
    shas = [commit.sha for commit in chain]
    relation, lag, newer = AHEAD, None, chain
    if before in shas:
        newer = chain[: shas.index(before)]
        relation, lag = (AHEAD if newer else IDENTICAL), _lag(newer)
    elif before is not None:
        whole = await compared(github, repository, before, shas[0])
        relation, lag = whole.status, Lag(whole.ahead_by, "")
    if relation in (IDENTICAL, BEHIND):
        return Look(before, relation, (), lag=UP_TO_DATE)
    looked = await _looked(github, repository, rules.require, newer, known, at)
    if not looked or looked[-1].blockers:
        return Look(before, relation, tuple(looked), lag=lag)
    chosen = looked[-1].commit
    position = shas.index(chosen.sha)
    commits = None
    if before in shas:
        commits = len(newer) - position
    elif before is not None and relation == AHEAD:
        # The branch is further back than one page, or on a side branch: the chosen commit may be behind it.
        step = await compared(github, repository, before, chosen.sha)
        if step.status != AHEAD:
            return Look(before, relation, tuple(looked[:-1]), lag=lag)
        commits = step.ahead_by
    return Look(before, relation, tuple(looked), commits, lag, _lag(chain[:position]))


async def _source(github: GitHub, repository: str, rules: Rules) -> list[Commit]:
    try:
        return await first_parents(github, repository, rules.source)
    except Exception as error:
        if is_not_found(error):
            raise UserError(NO_SOURCE.format(source=rules.source, branch=rules.branch)) from error
        raise


async def _looked(
    github: GitHub,
    repository: str,
    require: Sequence[str],
    candidates: Sequence[Commit],
    known: Mapping[str, Looked],
    at: str,
) -> list[Looked]:
    looked: list[Looked] = []
    wanted = due(candidates, known, MOST_ASKED)
    for commit in candidates:
        if commit.sha in wanted:
            signals = await signals_of(github, repository, commit.sha) if require else []
            looked.append(Looked(commit, tuple(blockers(require, signals)), at))
        elif commit.sha in known:
            looked.append(known[commit.sha])
        if looked and not looked[-1].blockers:
            break
    return looked


def _lag(newer: Sequence[Commit]) -> Lag:
    return Lag(len(newer), newer[-1].committed_at) if newer else UP_TO_DATE
