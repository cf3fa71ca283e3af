"""The tables of a check run: at most ten rows each, then how many more there are; text from labs is always code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice

from nightjar_formats.model import Counts

from bot.core.docs import table
from bot.core.listing import MORE, listed
from bot.github.text.markdown import code
from bot.results.compare.context import FailureContext
from bot.results.compare.rename_rules import RenameKind, RenameRule, rules_of
from bot.results.compare.renames import MAX_STEPS
from bot.results.report import texts
from bot.results.report.findings import Baseline, ComparedSuite, Findings, NewFailure
from bot.results.report.sentences import context_of, happened
from bot.results.state import Run, RunState, SuiteState

MOST_ROWS = 10
SHOWN_ID, SHOWN_MESSAGE, SHOWN_CLAIM = 240, 160, 200
"""Characters of a cell."""
NOT_COUNTED = {RunState.WAITING: texts.WAITS, RunState.INCOMPLETE: texts.CANNOT_BE_USED}
MOST_UNSEARCHED = 10
MOST_RULES = 3

PASSED, STILL = "passed", "still failing"
COUNTED = (*(field.name for field in fields(Counts)), STILL)

RUN_HEADER = ("run", "suite", "attempt", "shard", "from", "to", "environment", "log")
"""The columns of the table of runs."""

_Rows = Iterable[Sequence[str]]


def middle_cut(text: str, limit: int) -> str:
    """Return at most `limit` characters. Of a long test ID both ends matter: the file and the parameters."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}…{text[head + 1 - limit :]}"


def commit_link(baseline: Baseline) -> str:
    """Return a link to a commit's page."""
    return f"[`{baseline.sha[:10]}`]({baseline.url})"


def counts(findings: Findings) -> str:
    """Return the counts of each suite with its baseline; columns of zeros are left out."""
    suites = [(suite, comparison_, _numbers(comparison_)) for suite, comparison_ in findings.suites]
    kinds = [kind for kind in COUNTED if kind == PASSED or any(numbers[kind] for _, _, numbers in suites)]
    rows = [
        (code(suite.suite), *(_number(suite, numbers[kind]) for kind in kinds), _beside(suite, comparison_))
        for suite, comparison_, numbers in suites
    ]
    return table(("suite", *kinds, "compared with"), rows) if rows else ""


def _numbers(comparison_: ComparedSuite) -> dict[str, int]:
    comparison = comparison_.comparison
    known = comparison.has_baseline and not comparison.infra
    return asdict(comparison.counts) | {STILL: len(comparison.still_failing) if known else 0}


def _number(suite: SuiteState, number: int) -> str:
    return f"{number:,}" if suite.seen else ""


def _beside(suite: SuiteState, comparison_: ComparedSuite) -> str:
    if not (suite.seen or suite.complete):
        return texts.NOT_USABLE if suite.broken else texts.NOT_ARRIVED
    if comparison_.comparison.infra:
        return texts.NOT_USABLE
    return commit_link(comparison_.baseline) if comparison_.baseline else texts.FIRST_RUN


def new_failures(findings: Findings) -> str:
    """Return the new failures, those that say most about the code first."""
    return _failures(findings, texts.NEW_FAILURES, findings.new_failures)


def ignored(findings: Findings) -> str:
    """Return the new failures that somebody chose to ignore, so that others see what that was."""
    return _failures(findings, texts.IGNORED_FAILURES, _ignored(findings))


def _ignored(findings: Findings) -> list[NewFailure]:
    tests = findings.ignored.tests if findings.ignored else frozenset()
    return [failure for failure in findings.all_new_failures if (failure.suite, failure.test) in tests]


def _failures(findings: Findings, name: str, failures: Sequence[NewFailure]) -> str:
    shown = failures[:MOST_ROWS]
    column, histories = _histories(findings.contexts, [(failure.suite, failure.test) for failure in shown])
    rows = (
        _row(findings, f.suite, f.test, happened(f), _code(f.message, SHOWN_MESSAGE), *history)
        for f, history in zip(shown, histories, strict=True)
    )
    return _titled(findings, name, ("what happened", "message", *column), rows, len(failures))


def _histories(
    contexts: Mapping[tuple[str, str], FailureContext], tests: Sequence[tuple[str, str]]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the name of the column about earlier runs, and its cell for each test; none if nothing is known."""
    cells = [context_of(contexts.get(key)) for key in tests]
    return ((texts.HISTORY,), [(cell,) for cell in cells]) if any(cells) else ((), [()] * len(cells))


def listed_failures(findings: Findings) -> dict[str, list[str]]:
    """Return the failing tests that the tables list, by suite."""
    listed = [(failure.suite, failure.test) for failure in findings.new_failures[:MOST_ROWS]]
    listed += [(failure.suite, failure.test) for failure in _ignored(findings)[:MOST_ROWS]]
    listed += [(failure.suite, failure.test) for failure, _ in findings.known_flaky[:MOST_ROWS]]
    listed += [(suite.suite, test) for suite, test in _unjudged(findings)[:MOST_ROWS]]
    listed += [(suite.suite, test) for _, suite, test in _still_failing(findings)[:MOST_ROWS]]
    found: dict[str, list[str]] = {}
    for suite, test in listed:
        found.setdefault(suite, []).append(test)
    return found


def known_flaky(findings: Findings) -> str:
    """Return the failures that the known flakiness of their tests explains, with how often they fail."""
    every = findings.known_flaky
    shown = every[:MOST_ROWS]
    # How often the test failed is in the column before.
    contexts = {key: replace(context, failed=0) for key, context in findings.contexts.items()}
    column, histories = _histories(contexts, [(one.suite, one.test) for one, _ in shown])
    rows = (
        _row(findings, one.suite, one.test, texts.how_flaky(flakiness), _code(one.message, SHOWN_MESSAGE), *history)
        for (one, flakiness), history in zip(shown, histories, strict=True)
    )
    listed = _titled(findings, texts.KNOWN_FLAKY, ("flakiness", "message", *column), rows, len(every))
    return f"{listed}\n\n{texts.KNOWN_FLAKY_MEANS}" if listed else ""


def unjudged(findings: Findings) -> str:
    """Return the failing tests of suites that there is nothing to compare with."""
    return _tests(findings, texts.FAILING, _unjudged(findings), message=True)


def _unjudged(findings: Findings) -> list[tuple[SuiteState, str]]:
    alone = [
        (suite, comparison_) for suite, comparison_ in findings.reported if not comparison_.comparison.has_baseline
    ]
    return [(suite, test) for suite, comparison_ in alone for test in comparison_.comparison.failing]


def changed(findings: Findings, name: str, attribute: str, *, message: bool = False) -> str:
    """Return the tests of one attribute of the comparisons, perhaps with what each said."""
    tests = [
        (suite, test) for suite, comparison_ in findings.reported for test in getattr(comparison_.comparison, attribute)
    ]
    return _tests(findings, name, tests, message=message)


def _tests(findings: Findings, name: str, tests: Sequence[tuple[SuiteState, str]], *, message: bool) -> str:
    shown = tests[:MOST_ROWS]
    column, histories = _histories(findings.contexts, [(suite.suite, test) for suite, test in shown])
    rows = (
        _row(findings, suite.suite, test, *([_said(suite, test)] if message else []), *history)
        for (suite, test), history in zip(shown, histories, strict=True)
    )
    return _titled(findings, name, (*(("message",) if message else ()), *column), rows, len(tests))


def _said(suite: SuiteState, test: str) -> str:
    seen = suite.seen.get(test)
    return _code(seen.message if seen else "", SHOWN_MESSAGE)


def still_failing(findings: Findings) -> str:
    """Return the tests that failed before already, those first that are confirmed by this run."""
    tests = _still_failing(findings)
    if not any(comparison_.confirmed for comparison_, _, _ in tests):
        return _tests(findings, texts.STILL_FAILING, [(suite, test) for _, suite, test in tests], message=True)
    shown = tests[:MOST_ROWS]
    column, histories = _histories(findings.contexts, [(suite.suite, test) for _, suite, test in shown])
    rows = (
        _row(findings, suite.suite, test, _confirmed(comparison_, test), _said(suite, test), *history)
        for (comparison_, suite, test), history in zip(shown, histories, strict=True)
    )
    columns = ("confirmed", "message", *column)
    return f"{_titled(findings, texts.STILL_FAILING, columns, rows, len(tests))}\n\n{texts.CONFIRM}"


def _still_failing(findings: Findings) -> list[tuple[ComparedSuite, SuiteState, str]]:
    tests = [
        (comparison_, suite, test)
        for suite, comparison_ in findings.reported
        for test in comparison_.comparison.still_failing
    ]
    return sorted(tests, key=lambda known: known[2] not in known[0].confirmed)


def _confirmed(comparison_: ComparedSuite, test: str) -> str:
    return texts.CONFIRMED if test in comparison_.confirmed else ""


def renamed(findings: Findings) -> str:
    """List how many tests count as renamed, with the first of them, and the suites that could not be searched."""
    pairs = [pair for _, comparison_ in findings.reported for pair in comparison_.comparison.renamed]
    unsearched = [code(suite.suite) for suite, comparison_ in findings.reported if comparison_.comparison.unsearched]
    lines = []
    if pairs:
        before, now = (_code(name, SHOWN_ID) for name in pairs[0])
        renamed_text = texts.RENAMED_ONE if len(pairs) == 1 else texts.RENAMED
        lines.append(renamed_text.format(count=len(pairs), rules=_rename_rules(pairs), before=before, now=now))
    if unsearched:
        lines.append(texts.UNSEARCHED.format(suites=listed(unsearched, MOST_UNSEARCHED), most=MAX_STEPS))
    return "\n\n".join(lines)


def _rename_rules(pairs: Sequence[tuple[str, str]]) -> str:
    """Say by which rules tests were renamed: the largest of each kind, however many there are."""
    kinds: dict[RenameKind, list[tuple[RenameRule, int]]] = {}
    for rule, count in rules_of(pairs):
        kinds.setdefault(rule.kind, []).append((rule, count))
    of_kinds = sorted(
        ((sum(count for _, count in rules), kind, rules) for kind, rules in kinds.items()),
        key=lambda of_kind: (-of_kind[0], of_kind[1].value),
    )
    return "; ".join(
        said if len(of_kinds) == 1 else texts.RENAMED_OF.format(rule=said, count=total)
        for total, kind, rules in of_kinds
        for said in [_rules_of_kind(kind, rules)]
    )


def _rules_of_kind(kind: RenameKind, rules: Sequence[tuple[RenameRule, int]]) -> str:
    one, several = texts.RENAMED_BY[kind]
    names = [(_renamed_part(rule), count) for rule, count in rules]
    if len(names) == 1:
        return one.format(name=names[0][0])
    shown = [texts.RENAMED_OF.format(rule=name, count=count) for name, count in names[:MOST_RULES]]
    more = [MORE.format(count=len(names) - MOST_RULES)] if len(names) > MOST_RULES else []
    return f"{several}: {', '.join([*shown, *more])}"


def _renamed_part(rule: RenameRule) -> str:
    before, after = _code(rule.before, SHOWN_CLAIM), _code(rule.after, SHOWN_CLAIM)
    return texts.REPLACED_BY.format(before=before, after=after) if before and after else before or after


def runs(findings: Findings) -> str:
    """Return the runs of the check run, with their lab's claims; empty columns are left out."""
    every = [run for suite, _ in findings.suites for run in suite.runs]
    cells = [_run_row(run) for run in every[:MOST_ROWS]]
    filled = [column for column in zip(RUN_HEADER, *cells, strict=True) if any(column[1:])]
    if not filled:
        return ""
    header, *rows = zip(*filled, strict=True)
    return f"{texts.CLAIMS}\n\n{table(header, _with_more(header, rows, len(every)))}"


def _run_row(run: Run) -> Sequence[str]:
    identity, claims = _code(run.key.run_id, SHOWN_CLAIM) + NOT_COUNTED.get(run.state, ""), run.claims
    if claims is None:
        return (identity, *[""] * 7)
    environment = ", ".join(f"{key}={value}" for key, value in islice(claims.environment.items(), MOST_ROWS))
    shard = f"{claims.shard_index:,} of {claims.shard_total:,}"
    said = (claims.started_at, claims.finished_at, environment, claims.log_url)
    suite = _code(claims.suite, SHOWN_CLAIM)
    return (identity, suite, f"{claims.attempt:,}", shard, *(_code(text, SHOWN_CLAIM) for text in said))


def _row(findings: Findings, suite: str, test: str, *cells: str) -> Sequence[str]:
    several = (code(suite),) if len(findings.suites) > 1 else ()
    return (_code(test, SHOWN_ID), *several, *cells)


def _titled(findings: Findings, name: str, columns: Sequence[str], rows: _Rows, total: int) -> str:
    if not total:
        return ""
    header = ("test", *(("suite",) if len(findings.suites) > 1 else ()), *columns)
    return f"### {name}: {total:,}\n\n{table(header, _with_more(header, rows, total))}"


def _with_more(header: Sequence[str], rows: _Rows, total: int) -> list[Sequence[str]]:
    more = total - MOST_ROWS
    last = [(MORE.format(count=more), *[""] * (len(header) - 1))] if more > 0 else []
    return [*rows, *last]


def _code(text: str, limit: int) -> str:
    return code(middle_cut(text, limit)) if text else ""
