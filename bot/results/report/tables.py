"""Write the tables of a check run: at most ten rows each, then the number of further rows. Text from labs is code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice
from typing import TYPE_CHECKING

from nightjar_formats.model import Counts

from bot.core.docs import table
from bot.core.listing import MORE, listed
from bot.github.text.markdown import code, escape
from bot.results.compare.context import FailureContext
from bot.results.compare.failure_class import FailureClass
from bot.results.compare.rename_rules import RenameKind, RenameRule, rules_of
from bot.results.compare.renames import MAX_STEPS
from bot.results.measurements.texts import number_text
from bot.results.report import texts
from bot.results.report.findings import Baseline, ComparedSuite, Findings, NewFailure
from bot.results.report.sentences import context_of, happened
from bot.results.state import Run, RunState, SuiteState

if TYPE_CHECKING:
    from bot.results.measurements.unexpected import UnexpectedNumber
    from bot.results.settings.quarantine import QuarantinedTest

MOST_ROWS = 10
SHOWN_ID, SHOWN_MESSAGE, SHOWN_CLAIM = 240, 160, 200
"""Characters of a cell."""
NOT_COUNTED = {RunState.WAITING: texts.WAITS, RunState.INCOMPLETE: texts.CANNOT_BE_USED}
MOST_UNSEARCHED = 10
MOST_RULES = 3

PASSED, STILL = "passed", "still failing"
COUNTED = (*(field.name for field in fields(Counts)), STILL)

QUARANTINE_COLUMNS = ("test", "suite", "what happened", "owner", "reason", "until")
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
    suites = [(suite, compared, _numbers(compared)) for suite, compared in findings.suites]
    kinds = [kind for kind in COUNTED if kind == PASSED or any(numbers[kind] for _, _, numbers in suites)]
    rows = [
        (code(suite.suite), *(_number(suite, numbers[kind]) for kind in kinds), _baseline_cell(suite, compared))
        for suite, compared, numbers in suites
    ]
    return table(("suite", *kinds, "compared with"), rows) if rows else ""


def _numbers(compared: ComparedSuite) -> dict[str, int]:
    comparison = compared.comparison
    is_compared = comparison.has_baseline and not comparison.infra
    return asdict(comparison.counts) | {STILL: len(comparison.still_failing) if is_compared else 0}


def _number(suite: SuiteState, number: int) -> str:
    return f"{number:,}" if suite.seen else ""


def _baseline_cell(suite: SuiteState, compared: ComparedSuite) -> str:
    if not (suite.seen or suite.complete):
        return texts.NOT_USABLE if suite.broken else texts.NOT_ARRIVED
    if compared.comparison.infra:
        return texts.NOT_USABLE
    return commit_link(compared.baseline) if compared.baseline else texts.FIRST_RUN


def new_failures(findings: Findings) -> str:
    """Return the new failures, the ones that say most about the code first."""
    return _failures(findings, texts.NEW_FAILURES, findings.new_failures)


def ignored(findings: Findings) -> str:
    """Return the new failures that somebody chose to ignore, so that others see them."""
    return _failures(findings, texts.IGNORED_FAILURES, _ignored(findings))


def _ignored(findings: Findings) -> list[NewFailure]:
    tests = findings.ignored.tests if findings.ignored else frozenset()
    return [failure for failure in findings.all_new_failures if (failure.suite, failure.test) in tests]


def _failures(findings: Findings, name: str, failures: Sequence[NewFailure]) -> str:
    first_failures = failures[:MOST_ROWS]
    column, histories = _histories(findings.contexts, [(failure.suite, failure.test) for failure in first_failures])
    rows = (
        _row(findings, f.suite, f.test, happened(f), _code(f.message, SHOWN_MESSAGE), *history)
        for f, history in zip(first_failures, histories, strict=True)
    )
    return _titled(findings, name, ("what happened", "message", *column), rows, len(failures))


def _histories(
    contexts: Mapping[tuple[str, str], FailureContext], tests: Sequence[tuple[str, str]]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Return the header of the column of earlier runs, and its cell for each test; no column if all cells are empty."""
    cells = [context_of(contexts.get(key)) for key in tests]
    return ((texts.HISTORY,), [(cell,) for cell in cells]) if any(cells) else ((), [()] * len(cells))


def listed_failures(findings: Findings) -> dict[str, list[str]]:
    """Return the failing tests that the tables list, by suite."""
    listed = [(failure.suite, failure.test) for failure in findings.new_failures[:MOST_ROWS]]
    listed += [(failure.suite, failure.test) for failure in _ignored(findings)[:MOST_ROWS]]
    listed += [(failure.suite, failure.test) for failure, _ in findings.known_flaky[:MOST_ROWS]]
    listed += [(suite.suite, test) for suite, test in _unjudged(findings)[:MOST_ROWS]]
    listed += [(suite.suite, test) for _, suite, test in _still_failing(findings)[:MOST_ROWS]]
    tests_by_suite: dict[str, list[str]] = {}
    for suite, test in listed:
        tests_by_suite.setdefault(suite, []).append(test)
    return tests_by_suite


def known_flaky(findings: Findings) -> str:
    """Return the failures that the known flakiness of their tests explains, with their rates."""
    failures = findings.known_flaky
    first_failures = failures[:MOST_ROWS]
    # The column `flakiness` says already how often the test failed.
    contexts = {key: replace(context, failed=0) for key, context in findings.contexts.items()}
    column, histories = _histories(contexts, [(failure.suite, failure.test) for failure, _ in first_failures])
    rows = (
        _row(
            findings,
            failure.suite,
            failure.test,
            texts.how_flaky(flakiness),
            _code(failure.message, SHOWN_MESSAGE),
            *history,
        )
        for (failure, flakiness), history in zip(first_failures, histories, strict=True)
    )
    listed = _titled(findings, texts.KNOWN_FLAKY, ("flakiness", "message", *column), rows, len(failures))
    return f"{listed}\n\n{texts.KNOWN_FLAKY_MEANS}" if listed else ""


def measurements(findings: Findings) -> str:
    """Return the numbers that are outside of what the nightly runs lead to expect; those of quarantined tests are not.

    If all are as expected, one sentence says so.
    """
    unexpected = findings.unexpected_numbers
    count = findings.numbers.compared - (len(findings.numbers.unexpected) - len(unexpected))
    compared = texts.counted(count, "measurement")
    if not unexpected:
        return texts.EXPECTED_ALL.format(measurements=compared, are="is" if count == 1 else "are") if count else ""
    rows = (_row(findings, number.suite, number.test, *_unexpected(number)) for number in unexpected[:MOST_ROWS])
    listed_numbers = _titled(findings, texts.MEASUREMENTS, ("measurement", "value", "expected"), rows, len(unexpected))
    means = texts.UNEXPECTED_MEANS.format(measurements=compared)
    next_step = texts.TO_COMPARE.format(command=code(findings.benchmark)) if findings.benchmark else ""
    return "\n\n".join(filter(None, (listed_numbers, means, next_step)))


def _unexpected(number: UnexpectedNumber) -> tuple[str, str, str]:
    """Return the cells of a number: its name, its value, and the expected ones."""
    unit = number.unit and f" {number.unit}"
    template = texts.MEASURED_WORSE if number.is_worse else texts.MEASURED
    value, low, high = (number_text(bound) for bound in (number.value, number.low, number.high))
    expected = texts.MEASURED.format(value=low, unit=unit)
    if number.low != number.high:
        expected = texts.EXPECTED.format(low=low, high=high, unit=unit)
    # A unit is any text of the lab.
    return code(number.name), code(template.format(value=value, unit=unit)), code(expected)


def unjudged(findings: Findings) -> str:
    """Return the failing tests of suites without a baseline."""
    return _tests(findings, texts.FAILING, _unjudged(findings), message=True)


def _unjudged(findings: Findings) -> list[tuple[SuiteState, str]]:
    return [
        (suite, test)
        for suite, compared in findings.reported
        for test in compared.comparison.failing
        if findings.failure_classes[suite.suite, test] is FailureClass.UNJUDGED
    ]


def changed(findings: Findings, name: str, attribute: str, *, message: bool = False) -> str:
    """Return the tests of one attribute of the comparisons, with the message of each if `message` is true."""
    tests = [(suite, test) for suite, compared in findings.reported for test in getattr(compared.comparison, attribute)]
    return _tests(findings, name, tests, message=message)


def _tests(findings: Findings, name: str, tests: Sequence[tuple[SuiteState, str]], *, message: bool) -> str:
    first_tests = tests[:MOST_ROWS]
    column, histories = _histories(findings.contexts, [(suite.suite, test) for suite, test in first_tests])
    rows = (
        _row(findings, suite.suite, test, *([_message_of(suite, test)] if message else []), *history)
        for (suite, test), history in zip(first_tests, histories, strict=True)
    )
    return _titled(findings, name, (*(("message",) if message else ()), *column), rows, len(tests))


def _message_of(suite: SuiteState, test: str) -> str:
    seen = suite.seen.get(test)
    return _code(seen.message if seen else "", SHOWN_MESSAGE)


def still_failing(findings: Findings) -> str:
    """Return the tests that fail in the baseline too; the failures that this run confirms come first."""
    tests = _still_failing(findings)
    if not any(compared.confirmed for compared, _, _ in tests):
        return _tests(findings, texts.STILL_FAILING, [(suite, test) for _, suite, test in tests], message=True)
    first_tests = tests[:MOST_ROWS]
    column, histories = _histories(findings.contexts, [(suite.suite, test) for _, suite, test in first_tests])
    rows = (
        _row(findings, suite.suite, test, _confirmed(compared, test), _message_of(suite, test), *history)
        for (compared, suite, test), history in zip(first_tests, histories, strict=True)
    )
    columns = ("confirmed", "message", *column)
    return f"{_titled(findings, texts.STILL_FAILING, columns, rows, len(tests))}\n\n{texts.CONFIRM}"


def _still_failing(findings: Findings) -> list[tuple[ComparedSuite, SuiteState, str]]:
    tests = [
        (compared, suite, test)
        for suite, compared in findings.reported
        for test in compared.comparison.still_failing
        if findings.failure_classes[suite.suite, test] is FailureClass.STILL_FAILING
    ]
    return sorted(tests, key=lambda row: row[2] not in row[0].confirmed)


def _confirmed(compared: ComparedSuite, test: str) -> str:
    return texts.CONFIRMED if test in compared.confirmed else ""


def renamed(findings: Findings) -> str:
    """Say how many tests count as renamed, with the first pair, and in which suites the search was skipped."""
    pairs = [pair for _, compared in findings.reported for pair in compared.comparison.renamed]
    unsearched = [code(suite.suite) for suite, compared in findings.reported if compared.comparison.unsearched]
    lines = []
    if pairs:
        old_name, new_name = (_code(name, SHOWN_ID) for name in pairs[0])
        renamed_text = texts.RENAMED_ONE if len(pairs) == 1 else texts.RENAMED
        lines.append(renamed_text.format(count=len(pairs), rules=_rename_rules(pairs), before=old_name, now=new_name))
    if unsearched:
        lines.append(texts.UNSEARCHED.format(suites=listed(unsearched, MOST_UNSEARCHED), most=MAX_STEPS))
    return "\n\n".join(lines)


def _rename_rules(pairs: Sequence[tuple[str, str]]) -> str:
    """Say by which rules tests were renamed: the largest rules of each kind."""
    kinds: dict[RenameKind, list[tuple[RenameRule, int]]] = {}
    for rule, count in rules_of(pairs):
        kinds.setdefault(rule.kind, []).append((rule, count))
    of_kinds = sorted(
        ((sum(count for _, count in rules), kind, rules) for kind, rules in kinds.items()),
        key=lambda of_kind: (-of_kind[0], of_kind[1].value),
    )
    return "; ".join(
        sentence if len(of_kinds) == 1 else texts.RENAMED_OF.format(rule=sentence, count=total)
        for total, kind, rules in of_kinds
        for sentence in [_rules_of_kind(kind, rules)]
    )


def _rules_of_kind(kind: RenameKind, rules: Sequence[tuple[RenameRule, int]]) -> str:
    singular, several = texts.RENAMED_BY[kind]
    names = [(_renamed_part(rule), count) for rule, count in rules]
    if len(names) == 1:
        return singular.format(name=names[0][0])
    listed_names = [texts.RENAMED_OF.format(rule=name, count=count) for name, count in names[:MOST_RULES]]
    unlisted = [MORE.format(count=len(names) - MOST_RULES)] if len(names) > MOST_RULES else []
    return f"{several}: {', '.join([*listed_names, *unlisted])}"


def _renamed_part(rule: RenameRule) -> str:
    old, new = _code(rule.old, SHOWN_CLAIM), _code(rule.new, SHOWN_CLAIM)
    return texts.REPLACED_BY.format(before=old, after=new) if old and new else old or new


def quarantined(findings: Findings) -> str:
    """List the quarantined tests that fail: what happened, the owner, the reason, and the last day."""
    return _quarantine_table(texts.QUARANTINED, findings.quarantined)


def quarantine_ended(findings: Findings) -> str:
    """List the tests that fail and whose quarantine has ended, so that their owners extend it or fix them."""
    listed = _quarantine_table(texts.QUARANTINE_ENDED, findings.released)
    return f"{listed}\n\n{texts.QUARANTINE_ENDED_MEANS}" if listed else ""


def _quarantine_table(name: str, tests: Sequence[tuple[NewFailure, QuarantinedTest]]) -> str:
    if not tests:
        return ""
    rows: list[Sequence[str]] = [
        (
            code(middle_cut(failure.test, SHOWN_ID)),
            code(failure.suite),
            happened(failure),
            code(item.owner),
            f"[{escape(item.reason)}]({item.issue})",
            item.until,
        )
        for failure, item in tests[:MOST_ROWS]
    ]
    if (unlisted := len(tests) - MOST_ROWS) > 0:
        rows.append((MORE.format(count=unlisted), *[""] * (len(QUARANTINE_COLUMNS) - 1)))
    return f"### {name}: {len(tests):,}\n\n{table(QUARANTINE_COLUMNS, rows)}"


def runs(findings: Findings) -> str:
    """Return the runs of the check run, with their lab's claims; empty columns are left out."""
    all_runs = [run for suite, _ in findings.suites for run in suite.runs]
    cells = [_run_row(run) for run in all_runs[:MOST_ROWS]]
    filled = [column for column in zip(RUN_HEADER, *cells, strict=True) if any(column[1:])]
    if not filled:
        return ""
    header, *rows = zip(*filled, strict=True)
    return f"{texts.CLAIMS}\n\n{table(header, _with_more(header, rows, len(all_runs)))}"


def _run_row(run: Run) -> Sequence[str]:
    identity, claims = _code(run.key.run_id, SHOWN_CLAIM) + NOT_COUNTED.get(run.state, ""), run.claims
    if claims is None:
        return (identity, *[""] * 7)
    environment = ", ".join(f"{key}={value}" for key, value in islice(claims.environment.items(), MOST_ROWS))
    shard = f"{claims.shard_index:,} of {claims.shard_total:,}"
    reported = (claims.started_at, claims.finished_at, environment, claims.log_url)
    suite = _code(claims.suite, SHOWN_CLAIM)
    return (identity, suite, f"{claims.attempt:,}", shard, *(_code(text, SHOWN_CLAIM) for text in reported))


def _row(findings: Findings, suite: str, test: str, *cells: str) -> Sequence[str]:
    several = (code(suite),) if len(findings.suites) > 1 else ()
    return (_code(test, SHOWN_ID), *several, *cells)


def _titled(findings: Findings, name: str, columns: Sequence[str], rows: _Rows, total: int) -> str:
    if not total:
        return ""
    header = ("test", *(("suite",) if len(findings.suites) > 1 else ()), *columns)
    return f"### {name}: {total:,}\n\n{table(header, _with_more(header, rows, total))}"


def _with_more(header: Sequence[str], rows: _Rows, total: int) -> list[Sequence[str]]:
    unlisted = total - MOST_ROWS
    last = [(MORE.format(count=unlisted), *[""] * (len(header) - 1))] if unlisted > 0 else []
    return [*rows, *last]


def _code(text: str, limit: int) -> str:
    return code(middle_cut(text, limit)) if text else ""
