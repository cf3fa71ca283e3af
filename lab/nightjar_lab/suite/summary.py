"""Write the summary of a run as Markdown, for a job's summary page or a comment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from nightjar_formats.items import counted
from nightjar_formats.terminal import escape_controls
from nightjar_lab.suite import texts
from nightjar_lab.suite.outcome import SuiteOutcome
from nightjar_lab.suite.result import SuiteResult

MOST_ROWS = 100
"""The most failures that the summary lists; GitHub shows 1 MiB of a summary, and people read far less."""
MOST_CELL = 300
MOST_PARAMS = 30

_SHOWN = (SuiteOutcome.UNEXPECTED_PASS, SuiteOutcome.CASE_INVALID, SuiteOutcome.REFERENCE_FAILED)


def summary_text(
    results: Sequence[SuiteResult], *, flow: str, suite: str, missing: int = 0, notices: Iterable[str] = ()
) -> str:
    """Return the summary. `missing` is the number of cases without a result; `notices` are warnings on the run."""
    outcomes = Counter(result.outcome for result in results)
    parts = [
        texts.SUMMARY_TITLE.format(suite=code_span(suite), flow=code_span(flow)),
        *_warnings(outcomes, missing, notices),
    ]
    parts += [_counts(results, outcomes), *_by_params(results), *_breakdown(outcomes)]
    parts += _listed(texts.SUMMARY_FAILED, [result for result in results if result.outcome.is_failure])
    for outcome in _SHOWN:
        parts += _listed(outcome.detail, [result for result in results if result.outcome is outcome])
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True)
class MatrixRow:
    """The results of a suite on a flow, for the summary of a matrix."""

    backend: str
    quantization: str
    flow: str
    suite: str
    results: Sequence[SuiteResult]
    missing: int = 0


def matrix_summary(rows: Sequence[MatrixRow], unavailable: Iterable[tuple[str, str]] = ()) -> str:
    """Return the summary of several runs; `unavailable` are the flows and suites that did not run, and why."""
    all_results = [result for row in rows for result in row.results]
    outcomes = Counter(result.outcome for result in all_results)
    headers = ["Backend", "Quantization", "Suite", "Flow", "Pass", "Fail", "Skip", "Pass %", "Delegated"]
    parts = [texts.SUMMARY_MATRIX, *_warnings(outcomes, sum(row.missing for row in rows), ())]
    parts += [_table(headers, map(_matrix_cells, rows)), *_breakdown(outcomes)]
    reasons = [[code_span(name), code_span(reason)] for name, reason in unavailable]
    if reasons:
        parts += [f"## {texts.SUMMARY_NOT_RUN}", _table(["Name", "Reason"], reasons)]
    parts += _listed(texts.SUMMARY_FAILED, [result for result in all_results if result.outcome.is_failure])
    return "\n\n".join(parts) + "\n"


def _matrix_cells(row: MatrixRow) -> list[str]:
    words = Counter(result.outcome.result for result in row.results)
    passes = [result for result in row.results if result.outcome.is_pass]
    reported = [result for result in passes if result.delegated_nodes is not None]
    return [
        *(code_span(text) for text in (row.backend, row.quantization, row.suite, row.flow)),
        *(str(words[word]) for word in ("Pass", "Fail", "Skip")),
        percentage(words["Pass"], words["Pass"] + words["Fail"]),
        f"{sum(result.delegated for result in reported)}/{len(reported)}" if reported else "",
    ]


def code_span(text: str) -> str:
    """Return text from outside as code in a cell of a table: on one line, and without any effect as Markdown."""
    line = escape_controls(" ".join(text.split())).strip()
    line = f"{line[:MOST_CELL]}…" if len(line) > MOST_CELL else line
    if not line:
        return ""
    longest = run = 0
    for character in line:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    marks = "`" * (longest + 1)
    # A backslash before a bar would be read as one that escapes the bar's own.
    line = line.replace("\\|", "\\ |").replace("|", "\\|")
    return f"{marks} {line} {marks}"


def percentage(count: int, total: int) -> str:
    """Return a percentage with one decimal; a dash if the total is 0."""
    return f"{100 * count / total:.1f} %" if total else "-"


def _warnings(outcomes: Mapping[SuiteOutcome, int], missing: int, notices: Iterable[str]) -> list[str]:
    lines = [texts.SUMMARY_MISSING.format(cases=counted(missing, texts.CASE))] if missing else []
    lines += [
        text.format(cases=counted(outcomes[outcome], texts.CASE))
        for outcome, text in (
            (SuiteOutcome.CRASH, texts.SUMMARY_CRASHES),
            (SuiteOutcome.TIMEOUT, texts.SUMMARY_TIMEOUTS),
            (SuiteOutcome.OUT_OF_MEMORY, texts.SUMMARY_MEMORY),
        )
        if outcomes.get(outcome)
    ]
    lines += [f"{code_span(text)} ({count})" for text, count in Counter(notices).items()]
    return ["> [!WARNING]\n" + "\n".join(f"> - {line}" for line in lines)] if lines else []


def _counts(results: Sequence[SuiteResult], outcomes: Mapping[SuiteOutcome, int]) -> str:
    passed = sum(result.outcome.is_pass for result in results)
    failed = sum(result.outcome.is_failure for result in results)
    delegated = sum(result.delegated for result in results if result.outcome.is_pass)
    reported = sum(result.delegated_nodes is not None for result in results if result.outcome.is_pass)
    tried = passed + failed
    lines = [
        f"- **Pass**: {passed}/{tried} ({percentage(passed, tried)})",
        f"- **Fail**: {failed}/{tried} ({percentage(failed, tried)})",
    ]
    lines += [
        f"- **{label}**: {outcomes[outcome]}"
        for outcome, label in (
            (SuiteOutcome.SKIP, "Skip"),
            (SuiteOutcome.KNOWN_FAILURE, SuiteOutcome.KNOWN_FAILURE.detail),
            (SuiteOutcome.CASE_INVALID, SuiteOutcome.CASE_INVALID.detail),
            (SuiteOutcome.REFERENCE_FAILED, SuiteOutcome.REFERENCE_FAILED.detail),
        )
        if outcomes.get(outcome)
    ]
    if reported:
        lines.append(texts.SUMMARY_DELEGATED.format(count=delegated, total=reported))
    return "\n".join(lines)


def _by_params(results: Sequence[SuiteResult]) -> list[str]:
    names = sorted({name for result in results for name in result.params})
    parts = []
    for name in names[:MOST_PARAMS]:
        counts: dict[str, Counter[str]] = {}
        for result in results:
            if name in result.params:
                counts.setdefault(result.params[name], Counter())[result.outcome.result] += 1
        rows = [
            [
                code_span(value),
                *(str(results_by_word[word]) for word in ("Pass", "Fail", "Skip")),
                percentage(results_by_word["Pass"], results_by_word["Pass"] + results_by_word["Fail"]),
            ]
            for value, results_by_word in sorted(counts.items())[:MOST_ROWS]
        ]
        parts.append(_table([code_span(name), "Pass", "Fail", "Skip", "Pass %"], rows))
    return parts


def _breakdown(outcomes: Mapping[SuiteOutcome, int]) -> list[str]:
    failures = [(outcome, count) for outcome, count in outcomes.items() if outcome.is_failure]
    total = sum(count for _, count in failures)
    rows = [
        [outcome.detail, str(count), percentage(count, total)] for outcome, count in sorted(failures, key=_most_first)
    ]
    return [f"## {texts.SUMMARY_STAGES}", _table(["Stage", "Failures", "Share"], rows)] if rows else []


def _most_first(outcome_and_count: tuple[SuiteOutcome, int]) -> tuple[int, str]:
    return -outcome_and_count[1], outcome_and_count[0].value


def _listed(title: str, results: Sequence[SuiteResult]) -> list[str]:
    if not results:
        return []
    rows = [
        [
            code_span(result.test_id),
            result.outcome.detail,
            result.stage.value if result.stage else "",
            code_span(result.error),
        ]
        for result in results[:MOST_ROWS]
    ]
    parts = [f"## {title}", _table(["Test", "Result", "Stage", "Error"], rows)]
    remainder = len(results) - len(rows)
    return [*parts, texts.SUMMARY_MORE.format(count=remainder)] if remainder else parts


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
