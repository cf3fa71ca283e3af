"""Write a hardware check run: from findings to the content for GitHub. Pure.

Failures come first, then the reason of the conclusion; boilerplate comes last. Tables have at most ten rows each, then
the number of further rows. Annotations are new failures in the files where they are. Text from labs is code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields, replace
from itertools import islice
from typing import TYPE_CHECKING

from nightjar_formats.model import Counts

from bot.core.docs import table
from bot.core.listing import MORE, counted, listed, middle_cut
from bot.github.check_runs import (
    MOST_ANNOTATIONS,
    Action,
    Annotation,
    Block,
    CheckContent,
    joined_blocks,
    shortened,
)
from bot.github.text.markdown import code, escape, fenced, lines_of, plain, truncate
from bot.results.compare.context import FailureContext
from bot.results.compare.failure_class import FailureClass
from bot.results.compare.rename_rules import RenameKind, RenameRule, rules_of
from bot.results.compare.renames import MAX_STEPS
from bot.results.measurements.texts import number_text
from bot.results.report import sentences, texts
from bot.results.report.findings import Baseline, ComparedSuite, Findings, NewFailure
from bot.results.report.reproduce import reproduce
from bot.results.report.sentences import context_of, happened
from bot.results.state import Run, RunState, SuiteState

if TYPE_CHECKING:
    from bot.results.measurements.unexpected import UnexpectedNumber
    from bot.results.settings.quarantine import QuarantinedTest

RECHECK = Action(texts.RECHECK_LABEL, texts.RECHECK_DESCRIPTION, "re-check")
IGNORE = Action(texts.IGNORE_LABEL, texts.IGNORE_DESCRIPTION, "ignore")

FAILURE_CHARACTERS = 3_000
MOST_CONTACTS = 10
MOST_TEXTS = 10
MOST_ROWS = 10
SHOWN_ID, SHOWN_MESSAGE, SHOWN_CLAIM = 240, 160, 200
"""Characters of a cell."""
NOT_COUNTED = {RunState.WAITING: texts.WAITS, RunState.INCOMPLETE: texts.CANNOT_BE_USED}
MOST_REASON = 300
"""Characters of the reason why a run waits or is unusable."""
MOST_REPAIRED = 1_000
"""Characters of the text about repairs in the files of one run, at most."""
MOST_UNSEARCHED = 10
MOST_RULES = 3

PASSED, STILL = "passed", "still failing"
COUNTED = (*(field.name for field in fields(Counts)), STILL)

QUARANTINE_COLUMNS = ("test", "suite", "what happened", "owner", "reason", "until")
RUN_HEADER = ("run", "suite", "attempt", "shard", "from", "to", "environment", "log")
"""The columns of the table of runs."""

_Rows = Iterable[Sequence[str]]

MESSAGE_BYTES = 2_000
DETAILS_CHARACTERS = 6_000
"""Of the end of a failure's text: at most 24 kB for one annotation, and 1.3 MB in one request with fifty of them."""
MOST_READ = 500
"""New failures that are read, at most: reading the text of one may take a query, and nobody misses later ones."""
TOP = 1
"""The line of an annotation if only the file is known: pytest's current JUnit form has no lines."""


def results_report(findings: Findings) -> CheckContent:
    """Return the content of a target's check run on a commit, within GitHub's limits for any input."""
    conclusion, reason = sentences.conclusion(findings)
    return CheckContent(
        conclusion=conclusion,
        title=sentences.title(findings),
        summary=joined_blocks(_summary(findings, reason)),
        text=joined_blocks(_text(findings)),
        annotations=annotations_of(findings),
        actions=_actions(findings),
    )


def _summary(findings: Findings, reason: str) -> list[Block]:
    return [
        Block("the answer to a button", findings.notice),
        Block("that the target is degraded", findings.degraded),
        Block("unreliable results", _unreliable(findings)),
        Block("a warning", _mass_warning(findings)),
        Block("new failures", _new_failures_table(findings)),
        Block("differences between simulator and device", _paired_differences(findings)),
        Block("known flaky tests", _known_flaky_table(findings)),
        Block("failing tests", _unjudged_table(findings)),
        Block("quarantined tests", _quarantined_table(findings)),
        Block("tests whose quarantine has ended", _quarantine_ended_table(findings)),
        Block("measurements", _measurements_table(findings)),
        Block("how to reproduce", reproduce(findings)),
        Block("why", reason),
        Block("unusable suites", _unusable_suites(findings)),
        Block("what is missing", _incomplete(findings)),
        Block("what was ignored", _ignored_sentence(findings)),
        Block("what it is compared with", _compared(findings)),
        Block("counts", _counts_table(findings)),
        Block("what was repaired", _repaired(findings)),
        Block("the lab's contacts", _contacts(findings)),
        Block("what advisory means", texts.ADVISORY),
    ]


def _text(findings: Findings) -> list[Block]:
    return [
        Block("ignored failures", _ignored_table(findings)),
        Block("tests that still fail", _still_failing_table(findings)),
        Block("fixed tests", _changed_table(findings, texts.FIXED, "fixed")),
        Block("newly skipped tests", _changed_table(findings, texts.NEWLY_SKIPPED, "newly_skipped", message=True)),
        Block("flaky tests", _changed_table(findings, texts.FLAKY, "flaky", message=True)),
        Block("removed tests", _changed_table(findings, texts.REMOVED, "removed")),
        Block("tests that did not run", _changed_table(findings, texts.PRECLUDED, "precluded")),
        Block("renamed tests", _renamed(findings)),
        Block("runs", _runs_table(findings)),
        *(Block("output of new failures", _output(failure)) for failure in findings.new_failures[:MOST_TEXTS]),
    ]


def _compared(findings: Findings) -> str:
    baselines = {compared.baseline for _, compared in findings.reported if compared.baseline}
    if len(baselines) > 1:
        return texts.COMPARED_EACH
    if not baselines:
        return texts.COMPARED_NONE if findings.reported else ""
    without_baseline = [code(suite.suite) for suite, compared in findings.reported if not compared.baseline]
    sentence = texts.COMPARED.format(commit=_commit_link(baselines.pop()))
    return (
        f"{sentence} {texts.COMPARED_BUT.format(suites=listed(without_baseline, sentences.MOST_LINES))}"
        if without_baseline
        else sentence
    )


def _ignored_sentence(findings: Findings) -> str:
    if findings.ignored is None or not findings.ignored_failures:
        return ""
    failures = counted(findings.ignored_failures, "new failure is", "new failures are")
    login, sha = code(findings.ignored.by), code(findings.ignored.sha[:10])
    return texts.IGNORED.format(failures=failures, pull=sentences.pull_request(findings), login=login, sha=sha)


def _contacts(findings: Findings) -> str:
    if not findings.contacts:
        return ""
    return texts.CONTACTS.format(contacts=", ".join(code(contact) for contact in findings.contacts[:MOST_CONTACTS]))


def _unreliable(findings: Findings) -> str:
    """Say for each suite with unreliable results why they are unreliable, since when, and until when."""
    suites = sentences.unreliable_suites_of_commit(findings)
    lines = [texts.unreliable(code(suite), health) for suite, health in suites.items()]
    return f"{_lines(lines)}\n\n{texts.unreliable_means()}" if lines else ""


def _paired_differences(findings: Findings) -> str:
    """Say how many of the new failures pass on a paired target; empty for none."""
    shown = [findings.contexts.get((failure.suite, failure.test)) for failure in findings.new_failures]
    on_simulator = sum(context is not None and bool(context.passes_on_simulators) for context in shown)
    on_device = sum(context is not None and bool(context.passes_on_device) for context in shown)
    lines = []
    if on_simulator:
        lines.append(texts.ONLY_ON_DEVICE.format(failures=counted(on_simulator, "new failure")))
    if on_device:
        lines.append(texts.ONLY_ON_SIMULATOR.format(failures=counted(on_device, "new failure")))
    return "\n".join(lines)


def _unusable_suites(findings: Findings) -> str:
    """List the suites without usable results, and why."""
    return _lines(
        [texts.UNUSABLE_WHY.format(suite=code(suite), why=escape(reason)) for suite, reason in findings.infra]
    )


def _incomplete(findings: Findings) -> str:
    """List what is missing, waiting or unusable, and since when."""
    missing = [code(suite) for suite in findings.state.missing_suites]
    lines = [texts.missing_suites(missing)] if missing else []
    lines += [line for suite, _ in findings.suites for line in _incomplete_lines(suite)]
    return "\n\n".join([_lines(lines), *([texts.OVER] if findings.over else [])]) if lines else ""


def _incomplete_lines(suite: SuiteState) -> Iterator[str]:
    if suite.missing_shards:
        missing = texts.missing_shards(code(suite.suite), suite.missing_shards, suite.shard_total)
        first = min((run.received_at for run in (*suite.runs, *suite.waiting, *suite.broken)), default=None)
        yield missing if first is None else f"{missing} {texts.FIRST_RUN_AT.format(since=texts.format_moment(first))}"
    yield from (_run_line(texts.WAITING, suite, run) for run in suite.waiting)
    yield from (_run_line(texts.BROKEN, suite, run) for run in suite.broken)


def _repaired(findings: Findings) -> str:
    """List the repairs in the files of the lab."""
    runs = [(code(suite.suite), run) for suite, _ in findings.suites for run in suite.runs]
    lines = [
        texts.REPAIRED.format(suite=name, run=code(run.key.run_id), reason=escape(truncate(run.reason, MOST_REPAIRED)))
        for name, run in runs
        if run.state is RunState.STORED and run.reason
    ]
    return f"{texts.REPAIRED_FILES}\n\n{_lines(lines)}" if lines else ""


def _run_line(template: str, suite: SuiteState, run: Run) -> str:
    reason = escape(truncate(run.reason, MOST_REASON)) or texts.NO_REASON
    return template.format(
        suite=code(suite.suite), run=code(run.key.run_id), since=texts.format_moment(run.received_at), reason=reason
    )


def _lines(lines: Sequence[str]) -> str:
    unlisted = len(lines) - sentences.MOST_LINES
    listed_lines = [*lines[: sentences.MOST_LINES], *([MORE.format(count=unlisted)] if unlisted > 0 else [])]
    return "\n".join(f"- {line}" for line in listed_lines)


def _mass_warning(findings: Findings) -> str:
    names = [code(suite.suite) for suite, compared in findings.reported if compared.comparison.mass]
    return texts.MASS.format(suites=listed(names, sentences.MOST_LINES)) if names else ""


def _output(failure: NewFailure) -> str:
    output = failure.detail.text.strip()
    if not output or output == failure.seen.message.strip():
        return ""
    text = fenced(_output_end(output, FAILURE_CHARACTERS))
    return f"{texts.OUTPUT_OF.format(test=_code(failure.test, SHOWN_ID))}\n\n{text}" if text else ""


def _actions(findings: Findings) -> tuple[Action, ...]:
    can_ignore = findings.state.pull_request is not None and bool(findings.new_failures)
    return (RECHECK, IGNORE) if can_ignore else (RECHECK,)


def _commit_link(baseline: Baseline) -> str:
    """Return a link to a commit's page."""
    return f"[`{baseline.sha[:10]}`]({baseline.url})"


def _counts_table(findings: Findings) -> str:
    """Return the counts of each suite with its baseline; columns of zeros are left out."""
    suites = [(suite, compared, _numbers(compared)) for suite, compared in findings.suites]
    kinds = [kind for kind in COUNTED if kind == PASSED or any(numbers[kind] for _, _, numbers in suites)]
    rows = [
        (
            code(suite.suite),
            *(f"{numbers[kind]:,}" if suite.seen else "" for kind in kinds),
            _baseline_cell(suite, compared),
        )
        for suite, compared, numbers in suites
    ]
    return table(("suite", *kinds, "compared with"), rows) if rows else ""


def _numbers(compared: ComparedSuite) -> dict[str, int]:
    comparison = compared.comparison
    is_compared = comparison.has_baseline and not comparison.infra
    return asdict(comparison.counts) | {STILL: len(comparison.still_failing) if is_compared else 0}


def _baseline_cell(suite: SuiteState, compared: ComparedSuite) -> str:
    if not (suite.seen or suite.complete):
        return texts.NOT_USABLE if suite.broken else texts.NOT_ARRIVED
    if compared.comparison.infra:
        return texts.NOT_USABLE
    return _commit_link(compared.baseline) if compared.baseline else texts.FIRST_RUN


def _new_failures_table(findings: Findings) -> str:
    """Return the new failures, the ones that say most about the code first."""
    return _failures(findings, texts.NEW_FAILURES, findings.new_failures)


def _ignored_table(findings: Findings) -> str:
    """Return the new failures that somebody chose to ignore, so that others see them."""
    return _failures(findings, texts.IGNORED_FAILURES, _ignored_failures(findings))


def _ignored_failures(findings: Findings) -> list[NewFailure]:
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
    keys = [(failure.suite, failure.test) for failure in findings.new_failures[:MOST_ROWS]]
    keys += [(failure.suite, failure.test) for failure in _ignored_failures(findings)[:MOST_ROWS]]
    keys += [(failure.suite, failure.test) for failure, _ in findings.known_flaky[:MOST_ROWS]]
    keys += [(suite.suite, test) for suite, test in _unjudged(findings)[:MOST_ROWS]]
    keys += [(suite.suite, test) for _, suite, test in _still_failing(findings)[:MOST_ROWS]]
    tests_by_suite: dict[str, list[str]] = {}
    for suite, test in keys:
        tests_by_suite.setdefault(suite, []).append(test)
    return tests_by_suite


def _known_flaky_table(findings: Findings) -> str:
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
    known_flaky = _titled(findings, texts.KNOWN_FLAKY, ("flakiness", "message", *column), rows, len(failures))
    return f"{known_flaky}\n\n{texts.KNOWN_FLAKY_MEANS}" if known_flaky else ""


def _measurements_table(findings: Findings) -> str:
    """Return the numbers that are outside of what the nightly runs lead to expect; those of quarantined tests are not.

    If all are as expected, one sentence says so.
    """
    unexpected = findings.unexpected_numbers
    count = findings.numbers.compared - (len(findings.numbers.unexpected) - len(unexpected))
    if not (unexpected or count):
        return ""
    compared = counted(count, "measurement")
    if not unexpected:
        return texts.EXPECTED_ALL.format(measurements=compared, are="is" if count == 1 else "are")
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


def _unjudged_table(findings: Findings) -> str:
    """Return the failing tests of suites without a baseline."""
    return _tests(findings, texts.FAILING, _unjudged(findings), message=True)


def _unjudged(findings: Findings) -> list[tuple[SuiteState, str]]:
    return [
        (suite, test)
        for suite, compared in findings.reported
        for test in compared.comparison.failing
        if findings.failure_classes[suite.suite, test] is FailureClass.UNJUDGED
    ]


def _changed_table(findings: Findings, name: str, attribute: str, *, message: bool = False) -> str:
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


def _still_failing_table(findings: Findings) -> str:
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


def _renamed(findings: Findings) -> str:
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


def _quarantined_table(findings: Findings) -> str:
    """List the quarantined tests that fail: what happened, the owner, the reason, and the last day."""
    return _quarantine_table(texts.QUARANTINED, findings.quarantined)


def _quarantine_ended_table(findings: Findings) -> str:
    """List the tests that fail and whose quarantine has ended, so that their owners extend it or fix them."""
    ended = _quarantine_table(texts.QUARANTINE_ENDED, findings.released)
    return f"{ended}\n\n{texts.QUARANTINE_ENDED_MEANS}" if ended else ""


def _quarantine_table(name: str, tests: Sequence[tuple[NewFailure, QuarantinedTest]]) -> str:
    if not tests:
        return ""
    rows: list[Sequence[str]] = [
        (
            _code(failure.test, SHOWN_ID),
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


def _runs_table(findings: Findings) -> str:
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


def annotations_of(findings: Findings) -> tuple[Annotation, ...]:
    """Return the annotations of at most fifty new failures, those that say most about the code first."""
    target = findings.state.target
    title = plain(texts.ANNOTATION_TITLE.format(lab=target.lab, target=target.target))
    annotations = []
    for failure in findings.new_failures[:MOST_READ]:
        # None where the path does not exist at the commit: no annotation is better than a wrong one.
        if (path := failure.path) in (findings.files or ()):
            line = failure.line
            annotations.append(
                Annotation(path, line or TOP, title, _annotation_message(failure, line), _details(failure))
            )
        if len(annotations) == MOST_ANNOTATIONS:
            break
    return tuple(annotations)


def _annotation_message(failure: NewFailure, line: int | None) -> str:
    message = f": {failure.message}" if failure.message else ""
    line_note = "" if line is not None else f" ({texts.UNKNOWN_LINE})"
    return shortened(f"{plain(failure.test)}{line_note}\n{happened(failure)}{plain(message)}", MESSAGE_BYTES)


def _details(failure: NewFailure) -> str:
    return lines_of(_output_end(failure.detail.text.strip(), DETAILS_CHARACTERS))


def _output_end(text: str, limit: int) -> str:
    """Return at most `limit` characters from the end of a text, where the reason of a failure is."""
    if len(text) <= limit:
        return text
    _, _, lines = text[1 - limit :].partition("\n")
    return f"…{lines or text[1 - limit :]}"
