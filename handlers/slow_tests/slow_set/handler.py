"""Propose once a week which tests are slow, as a pull request that people review and merge.

What is marked is in the files of the default branch, so a proposal that is merged, rejected or overtaken needs no
record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.config.types import seconds
from bot.core.errors import UserError
from bot.core.events import Payload
from bot.core.line_edits import LineEdits
from bot.core.patterns import Pattern
from bot.core.untrusted.limits import OverLimit
from bot.core.untrusted.pool import POOL
from bot.core.untrusted.queue import Owner
from bot.core.utc import iso_utc
from bot.effects.pulls import EnsurePull
from bot.github.commits.contents import FILE, found_at
from bot.github.commits.refs import branch_head
from bot.github.limits.ranks import Rank, ranked
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.results.service import RESULTS
from bot.results.store.lists.function_costs import FunctionName, function_costs
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.results.config import LAB_RESULTS, RENAMES
from handlers.results.owners import owners_in_force
from handlers.slow_tests.config import BRANCH, SLOW_TESTS, TIMER
from handlers.slow_tests.slow_set import texts
from handlers.slow_tests.slow_set.proposal import files_to_read, propose
from handlers.slow_tests.slow_set.source import FunctionSource, edit_functions, read_functions

if TYPE_CHECKING:
    from bot.results.compare.owners import OwnersOf
    from bot.results.store.lists.function_costs import FunctionCosts
    from handlers.slow_tests.slow_set.proposal import SlowSetProposal

NAME = "slow-set"
WINDOW = texts.DAYS * 86_400.0
"""Seconds before the proposal in which failures count."""
MOST_REVIEWERS = 10
_REVIEWER = Pattern(r"@?([A-Za-z0-9][A-Za-z0-9-]{0,38}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99})?)")

router = Router()


@dataclass(frozen=True, slots=True)
class _Base:
    """The commit that the proposal begins at, and the files of the tests that may change, by path."""

    branch: str
    sha: str
    files: Mapping[str, bytes]


@router.on(TIMER_EVENT.name, TIMER, name=NAME, feature=SLOW_TESTS.name)
async def propose_slow_set(context: Context) -> Plan:
    """Measure what the tests cost and catch, and ensure the pull request that marks those that catch least."""
    config, moment = context.config.of(SLOW_TESTS), moment_of(context.delivery.payload)
    if config is None or config.budget is None:
        return NOTHING
    if context.config.of(LAB_RESULTS) is None:
        return Plan(why=texts.NO_RESULTS)
    budget, results = seconds(config.budget), context.part(RESULTS)
    repository = results.canonical_name(context.repository.full_name)
    aliases = context.config.of(RENAMES).aliases
    measured = await results.read(function_costs, repository, moment - WINDOW, aliases)
    if not measured.pulls:
        return Plan(why=texts.NO_PULLS.format(days=texts.DAYS))
    with ranked(Rank.SWEEP):
        base = await _read_base(context, measured)
    proposal, edits = await _edited_proposal(context, measured, base, budget)
    time_after = texts.time_text(proposal.chosen.seconds_after)
    if not edits:
        times = {"seconds": time_after, "budget": texts.time_text(budget)}
        close = EnsurePull(BRANCH, base.branch, iso_utc(moment), body=texts.CLOSED.format(**times))
        return Plan((close,), why=texts.NOTHING_TO_PROPOSE.format(**times))
    owners = await owners_in_force(context.records, repository, context.config)
    marked, unmarked = proposal.marked, proposal.unmarked
    names = "\n".join(
        [*sorted(f"+{function}" for function in marked), *sorted(f"-{function}" for function in unmarked)]
    )
    ensure = EnsurePull(
        branch=BRANCH,
        base=base.branch,
        at=iso_utc(moment),
        base_sha=base.sha,
        # With the same tests it is the same proposal, whatever their times are this week.
        key=hashlib.sha256(names.encode(errors="replace")).hexdigest()[:24],
        title=texts.TITLE,
        body=texts.proposal_text(proposal, measured, budget, owners),
        message=texts.MESSAGE.format(title=texts.TITLE, marked=len(marked), unmarked=len(unmarked)),
        edits=edits,
        reviewers=reviewers_of((*marked, *unmarked), owners),
    )
    reason = texts.PROPOSED.format(
        marked=len(marked),
        unmarked=len(unmarked),
        after=time_after,
        before=texts.time_text(proposal.chosen.seconds_before),
    )
    return Plan((ensure,), why=reason)


def reviewers_of(functions: Iterable[FunctionName], owners: OwnersOf) -> tuple[str, ...]:
    """Return the owners of functions whom GitHub can ask, those of the first functions first; teams are `org/team`."""
    names = (_REVIEWER.fullmatch(owner) for function in functions for owner in owners(str(function)))
    return tuple(dict.fromkeys(match[1] for match in names if match))[:MOST_REVIEWERS]


async def _read_base(context: Context, measured: FunctionCosts) -> _Base:
    """Read the files of the tests that take longest, at the head of the default branch. Raises `UserError`."""
    github, repository = context.github, context.repository.full_name
    payload = Payload(await github.getitem("/repos/{+repo}", url_vars={"repo": repository}), "repository")
    branch = payload.string("default_branch")
    sha = await branch_head(github, repository, branch)
    if sha is None:
        raise UserError(texts.NO_BRANCH.format(branch=branch))
    listed = await context.part(RESULTS).file_lists.read(github, repository, sha)
    files = dict[str, bytes]()
    for path in files_to_read(measured, listed.paths - listed.special):
        file = await found_at(github, repository, path, sha)
        if file is not None and file.kind == FILE:
            files[path] = file.raw
    return _Base(branch, sha, files)


async def _edited_proposal(
    context: Context, measured: FunctionCosts, base: _Base, budget: float
) -> tuple[SlowSetProposal, tuple[LineEdits, ...]]:
    """Return the proposal and its edits. Tests of a file that cannot be edited are left by hand."""
    pool, owner = context.part(POOL), Owner(context.repository.full_name.lower(), NAME)
    sources = dict[FunctionName, FunctionSource]()
    for path, names in files_to_read(measured, base.files.keys()).items():
        try:
            read = await pool.run(owner, pool.limits.source, read_functions, base.files[path], names)
        except OverLimit:
            continue
        sources |= {FunctionName(path, name): source for name, source in read.items()}
    while True:
        proposal, edits, refused = propose(measured, sources, budget), list[LineEdits](), set[str]()
        for path in sorted({function.path for function in (*proposal.marked, *proposal.unmarked)}):
            marked, unmarked = (
                sorted(function.name for function in functions if function.path == path)
                for functions in (proposal.marked, proposal.unmarked)
            )
            try:
                edit = await pool.run(
                    owner, pool.limits.source, edit_functions, path, base.files[path], marked, unmarked
                )
            except OverLimit:
                edit = None
            if edit is None:
                refused.add(path)
            else:
                edits.append(edit)
        if not refused:
            return proposal, tuple(edits)
        sources = {
            function: replace(source, problem=texts.NOT_EDITED) if function.path in refused else source
            for function, source in sources.items()
        }
