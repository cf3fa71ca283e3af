"""Write the section about skipped tests; the server does this in a separate process (`bot.core.untrusted`). Pure."""

from __future__ import annotations

from nightjar_formats.items import first_of

from bot.effects.section_words import moment, short
from bot.github.text.markdown import code
from bot.results.compare.renames import MAX_STEPS
from handlers.ci_tests import texts, words
from handlers.ci_tests.outcomes import HeadAndBase
from handlers.ci_tests.skips import NotRun, Required, Skips, not_run, skips

MOST_SUITES = 20


def describe_skips(
    tested: HeadAndBase, required: Required, path: str, branch: str, *, most_steps: int = MAX_STEPS
) -> str:
    """Return the section's text; `path` is the file of required tests, on the base branch.

    `most_steps` bounds the search for renamed tests in each suite.
    """
    found = {
        name: skips(here, tested.bases[name].suite, most_steps=most_steps)
        for name, here in tested.suites.items()
        if name in tested.bases
    }
    missing = not_run(required.tests, tested)
    where = {"path": code(path), "branch": code(branch)}
    lines = list(tested.troubles)
    if required.problem:
        lines.append(texts.REQUIRED_UNKNOWN.format(**where, why=code(required.problem)))
    if missing:
        lines.append(texts.REQUIRED.format(what=words.counted_tests(len(missing), *texts.REQUIRED_WHAT), **where))
    if not lines and not tested.vanished and _all_same(tested, found):
        base = first_of(tested.bases.values())
        message = moment(tested.at)
        return texts.SAME.format(base=words.link_to_commit(base), sha=short(tested.sha), at=message)
    lines += _suites(tested, found, most_steps)
    return "\n\n".join(
        part
        for part in (
            "\n".join([words.heading(texts.SKIPS_TITLE, tested), "", *(f"- {line}" for line in lines)]),
            words.listed_tests(texts.REQUIRED_TITLE, [_required_row(one) for one in missing]),
            words.listed_tests(texts.NEWLY_TITLE, _rows(found, "newly")),
            words.listed_tests(texts.AGAIN_TITLE, _rows(found, "again")),
        )
        if part
    )


def _all_same(tested: HeadAndBase, found: dict[str, Skips]) -> bool:
    """Say whether all suites are complete, have the same base, and do not differ from it."""
    whole = all(suite.complete for suite in tested.suites.values())
    one_base = len({base.sha for name, base in tested.bases.items() if name in tested.suites}) == 1
    return whole and one_base and found.keys() == tested.suites.keys() and not any(found.values())


def _suites(tested: HeadAndBase, found: dict[str, Skips], most_steps: int) -> list[str]:
    """Return the lines of each suite, those with differences first."""
    lines = [texts.SUITE_MISSING.format(suite=words.suite_name(suite)) for suite in tested.vanished]
    names = sorted(tested.suites, key=lambda name: (not found.get(name), name))
    lines += [line for name in names for line in _suite(tested, name, found.get(name), most_steps)]
    if len(lines) <= MOST_SUITES:
        return lines
    return [*lines[:MOST_SUITES], texts.MORE_SUITES.format(count=len(lines) - MOST_SUITES)]


def _suite(tested: HeadAndBase, name: str, found: Skips | None, most_steps: int) -> list[str]:
    shown = words.suite_name(name)
    note = [] if tested.suites[name].complete else [texts.INCOMPLETE.format(suite=shown)]
    if found is not None and found.unsearched and found.removed:
        note.append(texts.SKIPS_UNSEARCHED.format(suite=shown, most=most_steps))
    if found is None:
        return [*note, texts.NO_BASE_OF_SUITE.format(suite=shown)]
    base = words.link_to_commit(tested.bases[name])
    if not found:
        return [*note, texts.SAME_SUITE.format(suite=shown, base=base)]
    numbers = ((len(found.newly), texts.NEWLY), (len(found.again), texts.AGAIN), (found.removed, texts.REMOVED))
    what = ", ".join(words.counted_tests(number, *called) for number, called in numbers if number)
    return [*note, texts.DIFFERS.format(suite=shown, what=what, base=base)]


def _rows(found: dict[str, Skips], which: str) -> list[str]:
    several = len(found) > 1
    return [
        words.name_of_test(suite, test, several=several)
        for suite in sorted(found)
        for test in getattr(found[suite], which)
    ]


def _required_row(one: NotRun) -> str:
    if not one.test:
        return texts.NO_SUITE.format(suite=words.suite_name(one.suite))
    how = texts.WAS_SKIPPED if one.there else texts.NOT_THERE
    return f"{words.name_of_test(one.suite, one.test, several=True)}: {how}"
