"""The nightly branch: once a day it moves to the newest commit that is fit, so that all labs test one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from bot.effects.nightly import ConcludeNightly, nightly_key
from bot.effects.refs import MoveBranch
from bot.errors import UserError
from bot.github.errors import is_not_found
from bot.github.refs import AHEAD, BEHIND, IDENTICAL, Commit, branch_head, compared, first_parents
from bot.github.signals import signals_of
from bot.heads import repository_id_of
from bot.plan import Context, Plan, Router
from bot.required import Signal, blockers
from bot.timers import TIMER_DUE, moment_of

if TYPE_CHECKING:
    from bot.config import Config
    from bot.config.nightly import Nightly
    from bot.engine.records import Records
    from bot.github.client import GitHub

NAME = "nightly"
MOST_COMMITS = 30
"""Commits whose statuses and checks are read in one look: two requests each, and more where there are many."""

NO_SOURCE = "there is no branch {source}; name the one that the commits come from in app.yaml, below nightly.from"
MAKE = "{branch} is made at {sha}"
MOVE = "{branch} moves to {sha}, {commits}"
ONE_COMMIT, COMMITS, SOME_COMMITS = "one commit on", "{count} commits on", "some commits on"
NOT_NEWEST = "; what is newer is not fit: {newest}"
NOTHING_NEW = "nothing new: {branch} is at the head of {source}"
IS_AHEAD = "nothing new: {branch} is ahead of {source}"
NONE_FIT = "none of the {count} newest commits of {source} that were looked at is fit: {newest}"
ONE_NOT_FIT = "the one new commit of {source} is not fit: {newest}"
BLOCKED = "{sha}: {blockers}"
MOST_NAMED = 3
"""Blockers that a sentence names."""

router = Router()


@dataclass(frozen=True, slots=True)
class Looked:
    """A commit that was looked at, and what keeps it from being chosen: nothing, for the last one."""

    commit: Commit
    blockers: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen: where the branch is (None: nowhere), how its source lies to it, and the commits looked at.

    `commits` is how many it would move by, None where that is not known.
    """

    before: str | None
    relation: str
    looked: tuple[Looked, ...]
    commits: int | None

    @property
    def chosen(self) -> Commit | None:
        """Return the newest commit that is fit, None where there is none."""
        last = self.looked[-1] if self.looked else None
        return last.commit if last is not None and not last.blockers else None


@router.on(TIMER_DUE, NAME, name=NAME, feature="nightly")
async def move_nightly(context: Context) -> Plan:
    """Look at the branch and the commits that it may move to, and decide."""
    nightly = context.config.nightly
    assert nightly is not None, "the handler is asked where the feature is on"
    look = await _look(context.github, context.repository.full_name, nightly)
    return decide(look, nightly, moment_of(context.delivery.payload))


def decide(look: Look, nightly: Nightly, at: float) -> Plan:
    """Return what is to be done at a moment, in seconds since 1970.

    Where the branch has diverged, its move is planned all the same: it is refused, and told in one way.
    """
    chosen = look.chosen
    why = _why(look, nightly)
    conclude = ConcludeNightly(
        branch=nightly.branch,
        source=nightly.source,
        chosen=chosen.sha if chosen else "",
        before=look.before or "",
        commits=look.commits,
        fine=chosen is not None or look.relation in (IDENTICAL, BEHIND),
        at=datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        day=datetime.fromtimestamp(at, ZoneInfo(nightly.timezone)).date().isoformat(),
        why=why,
        why_not_newer=tuple(map(_told, look.looked)),
    )
    return Plan((MoveBranch(nightly.branch, chosen.sha),) if chosen else (), why=why, closing=conclude)


async def _look(github: GitHub, repository: str, nightly: Nightly) -> Look:
    before = await branch_head(github, repository, nightly.branch)
    try:
        chain = await first_parents(github, repository, nightly.source)
    except Exception as error:
        if is_not_found(error):
            raise UserError(NO_SOURCE.format(source=nightly.source)) from error
        raise
    shas = [commit.sha for commit in chain]
    relation = AHEAD
    if before in shas:
        chain = chain[: shas.index(before)]
        relation = AHEAD if chain else IDENTICAL
    elif before is not None:
        relation = (await compared(github, repository, before, shas[0])).status
    if relation in (IDENTICAL, BEHIND):
        return Look(before, relation, (), None)
    looked = await _looked(github, repository, nightly.require, chain[:MOST_COMMITS])
    commits = None
    if before in shas:
        commits = len(chain) - len(looked) + 1
    elif before is not None and relation == AHEAD and looked and not looked[-1].blockers:
        # The branch is further back than one page, or on a side branch: the chosen commit may be behind it.
        chosen = await compared(github, repository, before, looked[-1].commit.sha)
        if chosen.status != AHEAD:
            return Look(before, relation, tuple(looked[:-1]), None)
        commits = chosen.ahead_by
    return Look(before, relation, tuple(looked), commits)


async def _looked(
    github: GitHub, repository: str, require: Sequence[str], candidates: Sequence[Commit]
) -> list[Looked]:
    """Look at commits, the newest first, up to the first that is fit."""
    looked: list[Looked] = []
    for commit in candidates:
        signals = await signals_of(github, repository, commit.sha) if require else []
        looked.append(Looked(commit, tuple(blockers(require, signals))))
        if not looked[-1].blockers:
            break
    return looked


def _why(look: Look, nightly: Nightly) -> str:
    names = {"branch": nightly.branch, "source": nightly.source, "count": len(look.looked)}
    newest = _blocked(look.looked[0]) if look.looked and look.looked[0].blockers else ""
    if look.chosen is not None:
        moves = MAKE if look.before is None else MOVE
        told = moves.format(**names, sha=look.chosen.sha[:7], commits=_count(look.commits))
        return told + (NOT_NEWEST.format(newest=newest) if newest else "")
    if not look.looked:
        return (NOTHING_NEW if look.relation == IDENTICAL else IS_AHEAD).format(**names)
    return (ONE_NOT_FIT if len(look.looked) == 1 else NONE_FIT).format(**names, newest=newest)


def _count(commits: int | None) -> str:
    if commits is None:
        return SOME_COMMITS
    return ONE_COMMIT if commits == 1 else COMMITS.format(count=commits)


def _blocked(looked: Looked) -> str:
    named = [f"{signal.name} is {signal.state}" for signal in looked.blockers[:MOST_NAMED]]
    more = len(looked.blockers) - len(named)
    told = ", ".join([*named, *([f"and {more} more"] if more else [])])
    return BLOCKED.format(sha=looked.commit.sha[:7], blockers=told)


def _told(looked: Looked) -> dict[str, Any]:
    """Return a verdict as the API tells it."""
    return {
        "sha": looked.commit.sha,
        "title": looked.commit.title,
        "verdict": looked.blockers[0].state.value if looked.blockers else "chosen",
        "blockers": [{"name": signal.name, "state": signal.state.value} for signal in looked.blockers],
    }


class Nightlies:
    """What the API tells of nightly branches."""

    def __init__(self, config: Config, records: Records) -> None:
        self._config = config
        self._records = records

    async def __call__(self, repository: str) -> Mapping[str, Any]:
        """Return what is known of a repository's branch; raises LookupError where none is moved or was looked at."""
        config = self._config.repository(repository)
        if config is None or config.nightly is None:
            raise LookupError(repository)
        repository_id = await repository_id_of(self._records, repository)
        record = await self._records.get(nightly_key(repository_id)) if repository_id is not None else None
        if record is None:
            raise LookupError(repository)
        return record
