"""The tables of a report: at most ten rows each, then how many more there are; text from labs stands in code alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from bot.core.docs import table
from bot.github.markdown import code
from bot.results.compare.renames import MAX_STEPS
from bot.results.report.findings import Baseline, Compared, Failure, Findings
from bot.results.report.sentences import happened
from bot.results.state import Run, RunState, SuiteState

MOST_ROWS = 10
SHOWN_ID, SHOWN_MESSAGE, SHOWN_CLAIM = 240, 160, 200
"""Characters of a cell."""
MORE = "and {count:,} more"
FIRST_RUN = "nothing earlier"
NOT_COME = "has not come"
UNUSABLE = "has come and cannot be used"
NOT_COUNTED = {RunState.WAITING: ", waits for its files", RunState.INCOMPLETE: ", cannot be used"}
NOT_CODE = "says nothing about the code"

CLAIMS = "What the lab says of its runs; nobody has checked it."
CONFIRMED = "by this run"
CONFIRM = (
    "A failure is confirmed by a second run in a row that sees it, none of them with a mass of failures, after a run "
    "in which the test ended well."
)
MOST_UNSEARCHED = 10
UNSEARCHED = (
    "{suites}: renamed tests were not searched for, as that would take more than {most:,} steps. "
    "A renamed test counts as one that is gone and one that is new."
)
RENAMED = "Taken for renamed, with their history: {count:,}, as {before}, now {now}."

_Rows = Iterable[Sequence[str]]


def middle_cut(text: str, limit: int) -> str:
    """Return at most `limit` characters: of a long test ID both ends tell something, file and parameters."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}…{text[head + 1 - limit :]}"


def commit_link(baseline: Baseline) -> str:
    """Return a link to a commit's page."""
    return f"[`{baseline.sha[:10]}`]({baseline.url})"


def counts(findings: Findings) -> str:
    """Return how the tests of each suite ended, beside what that was compared with."""
    header = ("suite", "passed", "failed", "errored", "skipped", "xfailed", "xpassed", "flaky")
    rows = [_counts_row(suite, told) for suite, told in findings.suites]
    return table((*header, "still failing", "compared with"), rows) if rows else ""


def _counts_row(suite: SuiteState, told: Compared) -> Sequence[str]:
    c, comparison = told.comparison.counts, told.comparison
    numbers = (c.passed, c.failed, c.errored, c.skipped, c.xfailed, c.xpassed, c.flaky)
    known = comparison.has_baseline and not comparison.infra
    still = f"{len(comparison.still_failing):,}" if known else ""
    return (code(suite.suite), *(f"{number:,}" for number in numbers), still, _beside(suite, told))


def _beside(suite: SuiteState, told: Compared) -> str:
    if not (suite.seen or suite.complete):
        return UNUSABLE if suite.broken else NOT_COME
    if told.comparison.infra:
        return NOT_CODE
    return commit_link(told.baseline) if told.baseline else FIRST_RUN


def new_failures(findings: Findings) -> str:
    """Return the new failures, those that tell most about the code first."""
    return _failures(findings, "New failures", findings.new_failures)


def ignored(findings: Findings) -> str:
    """Return the new failures that somebody chose to ignore, so that others see what that was."""
    tests = findings.ignored.tests if findings.ignored else frozenset()
    failures = [failure for failure in findings.all_new_failures if (failure.suite, failure.test) in tests]
    return _failures(findings, "Ignored", failures)


def _failures(findings: Findings, name: str, failures: Sequence[Failure]) -> str:
    rows = (_row(findings, f.suite, f.test, happened(f), _code(f.message, SHOWN_MESSAGE)) for f in failures[:MOST_ROWS])
    return _titled(findings, name, ("what happened", "message"), rows, len(failures))


def unjudged(findings: Findings) -> str:
    """Return the failing tests of suites that there is nothing to compare with."""
    alone = [(suite, told) for suite, told in findings.telling if not told.comparison.has_baseline]
    tests = [(suite, test) for suite, told in alone for test in told.comparison.failing]
    return _tests(findings, "Failing, with nothing earlier to compare with", tests, message=True)


def changed(findings: Findings, name: str, attribute: str, *, message: bool = False) -> str:
    """Return the tests of one attribute of the comparisons, perhaps with what each said."""
    tests = [(suite, test) for suite, told in findings.telling for test in getattr(told.comparison, attribute)]
    return _tests(findings, name, tests, message=message)


def _tests(findings: Findings, name: str, tests: Sequence[tuple[SuiteState, str]], *, message: bool) -> str:
    rows = (
        _row(findings, suite.suite, test, *([_said(suite, test)] if message else []))
        for suite, test in tests[:MOST_ROWS]
    )
    return _titled(findings, name, ("message",) if message else (), rows, len(tests))


def _said(suite: SuiteState, test: str) -> str:
    seen = suite.seen.get(test)
    return _code(seen.message if seen else "", SHOWN_MESSAGE)


def still_failing(findings: Findings) -> str:
    """Return the tests that failed before already, those first that are confirmed by this run."""
    tests = [(told, suite, test) for suite, told in findings.telling for test in told.comparison.still_failing]
    if not any(told.confirmed for told, _, _ in tests):
        return changed(findings, "Still failing", "still_failing", message=True)
    tests.sort(key=lambda known: known[2] not in known[0].confirmed)
    rows = (
        _row(findings, suite.suite, test, CONFIRMED if test in told.confirmed else "", _said(suite, test))
        for told, suite, test in tests[:MOST_ROWS]
    )
    return f"{_titled(findings, 'Still failing', ('confirmed', 'message'), rows, len(tests))}\n\n{CONFIRM}"


def renamed(findings: Findings) -> str:
    """Say how many tests are taken for renamed, with the first of them, and where none could be."""
    pairs = [pair for _, told in findings.telling for pair in told.comparison.renamed]
    unsearched = [code(suite.suite) for suite, told in findings.telling if told.comparison.unsearched]
    lines = []
    if pairs:
        before, now = (_code(name, SHOWN_ID) for name in pairs[0])
        lines.append(RENAMED.format(count=len(pairs), before=before, now=now))
    if unsearched:
        shown, more = unsearched[:MOST_UNSEARCHED], len(unsearched) - MOST_UNSEARCHED
        suites = ", ".join([*shown, *([MORE.format(count=more)] if more > 0 else [])])
        lines.append(UNSEARCHED.format(suites=suites, most=MAX_STEPS))
    return "\n\n".join(lines)


def runs(findings: Findings) -> str:
    """Return the runs that the check is made of, with what their lab claims."""
    told = [run for suite, _ in findings.suites for run in suite.runs]
    header = ("run", "suite", "attempt", "shard", "from", "to", "environment", "log")
    rows: _Rows = (_run_row(run) for run in told[:MOST_ROWS])
    return f"{CLAIMS}\n\n{table(header, _with_more(header, rows, len(told)))}" if told else ""


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
