"""What the section about skipped tests says: what a process of its own does (`bot.core.untrusted`). Pure."""

from __future__ import annotations

from bot.effects.section_state import moment, short
from bot.github.markdown import code
from bot.results.compare.renames import MAX_STEPS
from handlers.ci_tests import words
from handlers.ci_tests.outcomes import Outcomes
from handlers.ci_tests.skips import NotRun, Required, Skips, not_run, skips

TITLE = "Skipped tests"

SAME = "**Skipped tests:** nothing differs from {base} at {sha} ({at})."
SAME_SUITE = "{suite}: nothing differs from {base}."
DIFFERS = "{suite}: {what}, compared with {base}."
NEWLY, AGAIN = ("test is newly skipped", "tests are newly skipped"), ("test runs again", "tests run again")
GONE = ("test that ran there is gone", "tests that ran there are gone")
NO_BASE = "{suite}: no earlier results on the base branch to compare with."
VANISHED = "{suite}: **no results**, and it was tested at the base."
INCOMPLETE = "{suite}: not all of its results have come, or could be read."
UNSEARCHED = (
    "{suite}: renamed tests were not searched for, as that would take more than {most:,} steps; they count as gone."
)
MORE_SUITES = "and {count:,} more suites"
MOST_SUITES = 20

REQUIRED = "**{what} did not run**: those that {path} on {branch} lists have to."
REQUIRED_WHAT = ("required test", "required tests")
WAS_SKIPPED, NOT_THERE, NO_SUITE = "skipped", "not there", "{suite}: no results of the whole suite"
NOT_KNOWN = "Which tests are required is not known: {path} on {branch}: {why}."

NEWLY_TITLE, AGAIN_TITLE, REQUIRED_TITLE = "Newly skipped", "Running again", "Required, and did not run"


def describe_skips(tested: Outcomes, required: Required, path: str, branch: str) -> str:
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
    if found is not None and found.unsearched and found.gone:
        note.append(UNSEARCHED.format(suite=shown, most=MAX_STEPS))
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
