"""Write the section about skipped tests; the server does this in a separate process (`bot.core.untrusted`). Pure."""

from __future__ import annotations

from nightjar_formats.items import first_of

from bot.core.listing import counted
from bot.effects.section_words import moment, short
from bot.github.text.markdown import code
from bot.results.compare.renames import MAX_STEPS
from handlers.ci_reports import wording
from handlers.ci_reports.outcomes import HeadAndBase
from handlers.skipped_tests import texts
from handlers.skipped_tests.decide import NotRun, Required, SkipChanges, compare_skips, not_run

MOST_SUITES = 20


def describe_skips(
    tested: HeadAndBase, required: Required, path: str, branch: str, *, most_steps: int = MAX_STEPS
) -> str:
    """Return the section's text; `path` is the file of required tests, on the base branch.

    `most_steps` bounds the search for renamed tests in each suite.
    """
    differences = {
        name: compare_skips(suite, tested.bases[name].suite, most_steps=most_steps)
        for name, suite in tested.suites.items()
        if name in tested.bases
    }
    missing = not_run(required.tests, tested)
    file = {"path": code(path), "branch": code(branch)}
    lines = list(tested.troubles)
    if required.problem:
        lines.append(texts.REQUIRED_UNKNOWN.format(**file, why=code(required.problem)))
    if missing:
        lines.append(texts.REQUIRED.format(what=counted(len(missing), *texts.REQUIRED_WHAT), **file))
    if not lines and not tested.vanished and _all_same(tested, differences):
        base = first_of(tested.bases.values())
        link, sha, tested_at = wording.link_to_commit(base), short(tested.sha), moment(tested.tested_at)
        return texts.SAME.format(base=link, sha=sha, at=tested_at)
    lines += _suites(tested, differences, most_steps)
    return "\n\n".join(
        paragraph
        for paragraph in (
            "\n".join([wording.heading(texts.SKIPS_TITLE, tested), "", *(f"- {line}" for line in lines)]),
            wording.listed_tests(texts.REQUIRED_TITLE, [_required_row(test) for test in missing]),
            wording.listed_tests(texts.NEWLY_TITLE, _rows(differences, "newly_skipped")),
            wording.listed_tests(texts.AGAIN_TITLE, _rows(differences, "running_again")),
        )
        if paragraph
    )


def _all_same(tested: HeadAndBase, differences: dict[str, SkipChanges]) -> bool:
    """Say whether all suites are complete, have the same base, and do not differ from it."""
    all_complete = all(suite.complete for suite in tested.suites.values())
    one_base = len({base.sha for name, base in tested.bases.items() if name in tested.suites}) == 1
    return all_complete and one_base and differences.keys() == tested.suites.keys() and not any(differences.values())


def _suites(tested: HeadAndBase, differences: dict[str, SkipChanges], most_steps: int) -> list[str]:
    """Return the lines of each suite, those with differences first."""
    lines = [texts.SUITE_MISSING.format(suite=wording.suite_name(suite)) for suite in tested.vanished]
    names = sorted(tested.suites, key=lambda name: (not differences.get(name), name))
    lines += [line for name in names for line in _suite(tested, name, differences.get(name), most_steps)]
    if len(lines) <= MOST_SUITES:
        return lines
    return [*lines[:MOST_SUITES], texts.MORE_SUITES.format(suites=counted(len(lines) - MOST_SUITES, "more suite"))]


def _suite(tested: HeadAndBase, name: str, difference: SkipChanges | None, most_steps: int) -> list[str]:
    quoted = wording.suite_name(name)
    notes = [] if tested.suites[name].complete else [texts.INCOMPLETE.format(suite=quoted)]
    if difference is not None and difference.unsearched and difference.removed:
        notes.append(texts.SKIPS_UNSEARCHED.format(suite=quoted, most=most_steps))
    if difference is None:
        return [*notes, texts.NO_BASE_OF_SUITE.format(suite=quoted)]
    base = wording.link_to_commit(tested.bases[name])
    if not difference:
        return [*notes, texts.SAME_SUITE.format(suite=quoted, base=base)]
    numbers = (
        (len(difference.newly_skipped), texts.NEWLY),
        (len(difference.running_again), texts.AGAIN),
        (difference.removed, texts.REMOVED),
    )
    changes = ", ".join(counted(number, *words) for number, words in numbers if number)
    return [*notes, texts.DIFFERS.format(suite=quoted, what=changes, base=base)]


def _rows(differences: dict[str, SkipChanges], field: str) -> list[str]:
    several = len(differences) > 1
    return [
        wording.name_of_test(suite, test, several=several)
        for suite in sorted(differences)
        for test in getattr(differences[suite], field)
    ]


def _required_row(test: NotRun) -> str:
    if not test.test:
        return texts.NO_SUITE.format(suite=wording.suite_name(test.suite))
    reason = texts.WAS_SKIPPED if test.was_skipped else texts.NOT_THERE
    return f"{wording.name_of_test(test.suite, test.test, several=True)}: {reason}"
