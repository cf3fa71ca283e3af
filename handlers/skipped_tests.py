"""Tests that ran at the merge base and are skipped at a pull request's head, and the other way round, suite by suite.

So that nobody skips a suite in silence. Differs from the predecessor on purpose: a test that the base does not have did
not run there; a suite that the base does not have is no crash; a file of required tests that is missing is said, not
taken for an empty one; and the base is the nearest ancestor that was tested, not whatever `main` is (TVM #13368).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from bot.ci import reports, words
from bot.ci.outcomes import Outcomes
from bot.ci.skips import NotRun, Required, Skips, not_run, read_required, skips
from bot.effects.sections import HandOverSection
from bot.errors import UserError
from bot.github.contents import FILE, found_at
from bot.github.markdown import code
from bot.plan import NOTHING, Context, Plan, Router
from bot.results.events import CHECK_DUE
from bot.sections import SECTION_DUE, Due, moment, short

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.config.ci_tests import SkippedTests
    from bot.events import Delivery

NAME = "skipped-tests"
FEATURE = "skipped_tests"
TITLE = "Skipped tests"

SAME = "**Skipped tests:** nothing differs from {base} at {sha} ({at})."
SAME_SUITE = "{suite}: nothing differs from {base}."
DIFFERS = "{suite}: {what}, compared with {base}."
NEWLY, AGAIN = ("test is newly skipped", "tests are newly skipped"), ("test runs again", "tests run again")
GONE = ("test that ran there is gone", "tests that ran there are gone")
NO_BASE = "{suite}: no earlier results on the base branch to compare with."
VANISHED = "{suite}: **no results**, and it was tested at the base."
INCOMPLETE = "{suite}: not all of its results have come, or could be read."
MORE_SUITES = "and {count:,} more suites"
MOST_SUITES = 20

REQUIRED = "**{what} did not run**: those that {path} on {branch} lists have to."
REQUIRED_WHAT = ("required test", "required tests")
WAS_SKIPPED, NOT_THERE, NO_SUITE = "skipped", "not there", "{suite}: no results of the whole suite"
NOT_KNOWN = "Which tests are required is not known: {path} on {branch}: {why}."
NO_FILE, NO_PLAIN_FILE, TOO_LARGE = "it is not there", "it is no file", "it has more than 1 MB"

NEWLY_TITLE, AGAIN_TITLE, REQUIRED_TITLE = "Newly skipped", "Running again", "Required, and did not run"
TROUBLE = "**Skipped tests:** what is skipped at {sha} could not be found out: {why}"

router = Router()


@router.on(CHECK_DUE, name="skipped-tests-results", feature=FEATURE)
async def ask_after_results(context: Context) -> Plan:
    """Have the section computed for results that CI uploaded."""
    return await reports.ask_after_results(context, context.config.skipped_tests, NAME)


def concerns(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether a workflow run is one of those that run the tests."""
    return reports.is_of_tests(delivery, config.skipped_tests)


@router.on(reports.WORKFLOW_RUN, reports.COMPLETED, name="skipped-tests-run", feature=FEATURE, concerns=concerns)
async def ask_after_run(context: Context) -> Plan:
    """Have the section computed for a workflow run that has ended."""
    return await reports.ask_after_run(context, context.config.skipped_tests, NAME)


async def tell_of_failure(context: Context, told: str) -> Plan:
    """Show in the section that nothing could be found out, and why."""
    return reports.trouble(context, NAME, TROUBLE, told, why="what is skipped could not be found out")


@router.on(SECTION_DUE, NAME, name=NAME, feature=FEATURE, on_failure=tell_of_failure)
async def show(context: Context) -> Plan:
    """Say what is skipped at a head, if it is the head still."""
    config, due = context.config.skipped_tests, Due.of(context.delivery.payload)
    if config is None:
        return NOTHING
    found = await reports.find(context, config, due)
    if isinstance(found, str):
        return Plan(why=found)
    required = await _required(context, config, found.branch)
    text = await asyncio.to_thread(decide, found.tested, required, config.required or "", found.branch)
    return Plan((HandOverSection(NAME, due.number, due.sha, text, found.as_of),), why=f"results of {due.sha}")


async def _required(context: Context, config: SkippedTests, branch: str) -> Required:
    """Read which tests are required at the base branch; one request, and none where app.yaml names no file."""
    if config.required is None:
        return Required()
    found = await found_at(context.github, context.repository.full_name, config.required, branch)
    if found is None:
        return Required(problem=NO_FILE)
    if found.kind != FILE:
        return Required(problem=NO_PLAIN_FILE)
    if found.size and not found.raw:
        return Required(problem=TOO_LARGE)
    try:
        return Required(read_required(found.raw))
    except UserError as error:
        return Required(problem=str(error))


def decide(tested: Outcomes, required: Required, path: str, branch: str) -> str:
    """Return the section's text; `path` is the file of required tests, on the base branch."""
    found = {
        name: skips(here, tested.bases[name].suite) for name, here in tested.suites.items() if name in tested.bases
    }
    missing = not_run(required.tests, tested)
    where = {"path": code(path), "branch": code(branch)}
    lines = list(tested.troubles)
    if required.problem:
        lines.append(NOT_KNOWN.format(**where, why=code(required.problem)))
    if missing:
        lines.append(REQUIRED.format(what=words.counted(len(missing), *REQUIRED_WHAT), **where))
    if not lines and not tested.vanished and _all_same(tested, found):
        base = next(iter(tested.bases.values()))
        told = moment(tested.at)
        return SAME.format(base=words.commit_link(base), sha=short(tested.sha), at=told)
    lines += _suites(tested, found)
    return "\n\n".join(
        part
        for part in (
            "\n".join([words.heading(TITLE, tested), "", *(f"- {line}" for line in lines)]),
            words.listed(REQUIRED_TITLE, [_required_row(one) for one in missing]),
            words.listed(NEWLY_TITLE, _rows(found, "newly")),
            words.listed(AGAIN_TITLE, _rows(found, "again")),
        )
        if part
    )


def _all_same(tested: Outcomes, found: dict[str, Skips]) -> bool:
    """Tell whether there is one base of all suites, all of which are complete, and nothing differs from it."""
    whole = all(suite.complete for suite in tested.suites.values())
    one_base = len({base.sha for name, base in tested.bases.items() if name in tested.suites}) == 1
    return whole and one_base and found.keys() == tested.suites.keys() and not any(found.values())


def _suites(tested: Outcomes, found: dict[str, Skips]) -> list[str]:
    """Return a line for each suite, those first of which there is most to be told."""
    lines = [VANISHED.format(suite=words.suite_name(suite)) for suite in tested.vanished]
    names = sorted(tested.suites, key=lambda name: (not found.get(name), name))
    lines += [line for name in names for line in _suite(tested, name, found.get(name))]
    if len(lines) <= MOST_SUITES:
        return lines
    return [*lines[:MOST_SUITES], MORE_SUITES.format(count=len(lines) - MOST_SUITES)]


def _suite(tested: Outcomes, name: str, found: Skips | None) -> list[str]:
    shown = words.suite_name(name)
    note = [] if tested.suites[name].complete else [INCOMPLETE.format(suite=shown)]
    if found is None:
        return [*note, NO_BASE.format(suite=shown)]
    base = words.commit_link(tested.bases[name])
    if not found:
        return [*note, SAME_SUITE.format(suite=shown, base=base)]
    numbers = ((len(found.newly), NEWLY), (len(found.again), AGAIN), (found.gone, GONE))
    what = ", ".join(words.counted(number, *called) for number, called in numbers if number)
    return [*note, DIFFERS.format(suite=shown, what=what, base=base)]


def _rows(found: dict[str, Skips], which: str) -> list[str]:
    several = len(found) > 1
    return [
        words.name_of_test(suite, test, several=several)
        for suite in sorted(found)
        for test in getattr(found[suite], which)
    ]


def _required_row(one: NotRun) -> str:
    if not one.test:
        return NO_SUITE.format(suite=words.suite_name(one.suite))
    how = WAS_SKIPPED if one.there else NOT_THERE
    return f"{words.name_of_test(one.suite, one.test, several=True)}: {how}"
