"""What people read of the proposal of slow tests: the pull request, and the reasons in the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.github.text.markdown import code, escape, truncate

if TYPE_CHECKING:
    from bot.results.compare.owners import OwnersOf
    from bot.results.store.lists.function_costs import FunctionCost, FunctionCosts, FunctionName
    from handlers.slow_tests.slow_set.decide import SlowCandidate
    from handlers.slow_tests.slow_set.proposal import SlowSetProposal

TITLE = "Update which tests are slow"
MESSAGE = "{title}\n\nMarked: {marked}. No longer marked: {unmarked}."
DAYS = 90
INTRODUCTION = (
    "A pull request takes {before} for its tests, on average over {pulls} pull requests of the last {days} days. With "
    "this change it takes {after}. The budget is {budget} (`slow_tests: budget` in app.yaml)."
)
OVER_BUDGET = (
    "That is still more than the budget: the bot can mark no other tests. What it cannot mark is listed below by hand."
)
LATER = (
    "Of what the newly marked tests found on these pull requests, {misses} would have been found a day later, on the "
    "nightly branch."
)
MARKED, UNMARKED, BY_HAND, CUT_OFFS = (
    "### Marked as slow",
    "### No longer slow",
    "### By hand",
    "### What a cut-off would save",
)
TABLE = (
    "| Test | Time | Failed on pull requests | Broke the nightly branch | {later} | Owners |\n"
    "| --- | ---: | ---: | ---: | ---: | --- |"
)
FOUND_LATER, FOUND_SOONER = "Found a day later", "Found a day sooner"
ROW = "| {test} | {seconds} | {pulls} | {breaks} | {later} | {owners} |"
HAND_TABLE = "| Test | Time | Failed on pull requests | Why not here |\n| --- | ---: | ---: | --- |"
HAND_ROW = "| {test} | {seconds} | {pulls} | {problem} |"
CUT_OFF_TABLE = "| Tests that take longer than | Tests | Saved in each pull request |\n| ---: | ---: | ---: |"
CUT_OFF_ROW = "| {seconds} s | {tests:,} | {saved} |"
MORE = "… and {count} more, all in the files of this pull request."
END = (
    "Tests that catch least for their time are marked first. A time is that of all parameters of a test on all "
    "targets, each weighted by how many pull requests run on the target. The bot updates this pull request once a week "
    "and never merges it. Close it to reject it: the same proposal does not come back."
)
CLOSED = (
    "There is nothing left to propose: a pull request takes {seconds} for its tests, and the budget is {budget}. So "
    "the bot closed this pull request."
)
MOST_ROWS, LONGEST_TEST, MOST_OWNERS = 100, 120, 3

MARKED_ABOVE = "its class or file is marked"
MARK_NOT_ALONE = "its mark shares a line with something else"
NOT_ALONE = "it does not begin on a line of its own"
NO_IMPORT = "its file does not import pytest"
NOT_PYTHON = "it is not a Python function"
NOT_FOUND = "its function was not found, or its file is too large"
NOT_EDITED = "a mark would change more than the mark"

NO_RESULTS = "there are no results of labs: slow_tests: budget needs results"
NO_PULLS = "no pull request was tested in the last {days} days"
NO_BRANCH = "the default branch {branch} does not exist"
NOTHING_TO_PROPOSE = "nothing to mark or unmark: a pull request takes {seconds} for its tests, the budget is {budget}"
PROPOSED = (
    "to mark: {marked}, to unmark: {unmarked}; a pull request then takes {after} for its tests instead of {before}"
)


def time_text(seconds: float) -> str:
    """Return a time in seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:,.1f} min"


def proposal_text(proposal: SlowSetProposal, measured: FunctionCosts, budget: float, owners: OwnersOf) -> str:
    """Return the description of the pull request, in Markdown."""
    chosen, costs = proposal.chosen, measured.costs
    introduction = INTRODUCTION.format(
        before=time_text(chosen.seconds_before),
        after=time_text(chosen.seconds_after),
        pulls=measured.pulls,
        days=DAYS,
        budget=time_text(budget),
    )
    misses = sum(candidate.misses for candidate in chosen.marked)
    sections = [introduction, LATER.format(misses=misses) if chosen.marked else ""]
    if chosen.seconds_after > budget:
        sections.append(OVER_BUDGET)
    for title, later, functions, candidates in (
        (MARKED, FOUND_LATER, proposal.marked, chosen.marked),
        (UNMARKED, FOUND_SOONER, proposal.unmarked, chosen.unmarked),
    ):
        rows = [
            _row(function, candidate, costs[function], owners(str(function)))
            for function, candidate in zip(functions, candidates, strict=True)
        ]
        sections.append(_table(title, TABLE.format(later=later), rows))
    hand_rows = [
        HAND_ROW.format(
            test=_cell(item.function),
            seconds=time_text(costs[item.function].pull_seconds),
            pulls=len(costs[item.function].failed_pulls),
            problem=item.problem,
        )
        for item in proposal.by_hand
    ]
    cut_off_rows = [
        CUT_OFF_ROW.format(seconds=cut_off.seconds, tests=cut_off.tests, saved=time_text(cut_off.saved))
        for cut_off in proposal.cut_offs
    ]
    sections += [_table(BY_HAND, HAND_TABLE, hand_rows), _table(CUT_OFFS, CUT_OFF_TABLE, cut_off_rows), END]
    return "\n\n".join(filter(None, sections))


def _row(function: FunctionName, candidate: SlowCandidate, cost: FunctionCost, owners: Sequence[str]) -> str:
    return ROW.format(
        test=_cell(function),
        seconds=time_text(candidate.seconds),
        pulls=len(cost.failed_pulls),
        breaks=cost.breaks,
        later=candidate.misses,
        owners=", ".join(escape(owner.removeprefix("@")) for owner in owners[:MOST_OWNERS]),
    )


def _table(title: str, head: str, rows: Sequence[str]) -> str:
    """Return a table under a title, or an empty text if it has no rows."""
    if not rows:
        return ""
    remainder = [f"\n{MORE.format(count=len(rows) - MOST_ROWS)}"] if len(rows) > MOST_ROWS else []
    return "\n".join([title, "", head, *rows[:MOST_ROWS], *remainder])


def _cell(function: FunctionName) -> str:
    return code(truncate(str(function), LONGEST_TEST)).replace("|", "\\|")
