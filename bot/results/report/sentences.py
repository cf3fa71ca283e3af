"""The sentences of a report: its title, what it concludes and why. Text from labs goes in through `code` or `plain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from bot.github.check_runs import NEUTRAL, SUCCESS, TITLE_LIMIT, shortened
from bot.github.markdown import code, escape, plain, truncate
from bot.results.model import Status, Trouble
from bot.results.report.findings import Failure, Findings
from bot.results.state import Run, SuiteState

HAPPENED = {
    Trouble.COLLECTION: "could not be collected",
    Trouble.CRASH: "the process died",
    Trouble.INTERNAL: "the test runner failed",
    Trouble.SETUP: "errored in setup",
    Trouble.TEARDOWN: "errored in teardown",
    Trouble.TIMEOUT: "ran out of time",
    Trouble.QUANTIZE: "failed to quantize",
    Trouble.LOWER: "failed to lower",
    Trouble.LOAD: "failed to load",
    Trouble.RUN: "failed to run",
    Trouble.OUTPUT: "wrong output",
}
ADVISORY = (
    "This check is advisory: it ends as `success` or as `neutral`, never as `failure`, so that nothing a lab sends "
    "can block a merge."
)
NOTHING_CAME = "nothing has come that could be counted"
MEANT = "`neutral` only asks for a look."

TITLE_INCOMPLETE = "Incomplete: {what}"
TITLE_INFRA = "The lab's run says nothing about the code: {why}"
TITLE_SOME_INFRA = "{suite} says nothing about the code"
TITLE_FIRST = "First run, nothing to compare with"
TITLE_NOTHING = "Nothing has come that could be counted"
TITLE_UNTESTED = "Nothing was tested: {skipped:,} skipped"
TITLE_SAME = "Nothing changed"
TITLE_IGNORED = "{failures} ignored by {login}"
TITLE_CONFIRMED = "{failures} confirmed"

NEW = "{tests} here and did not at the commit that was compared with"
INCOMPLETE = "not everything has come that is expected"
INFRA = "the results of {suites} say nothing about the code"
UNJUDGED = "{tests}, and there are no earlier results that would tell whether that is new"
UNTESTED = "nothing was tested: {tests} skipped"
NOTHING_NEW = "nothing fails that did not fail before"
NOTHING_FAILS = "nothing fails"
ALL_IGNORED = "{failures} ignored for {pull} by {login}, and nothing else fails that did not fail before"

VANISHED = "{suite} has not come"
VANISHED_MANY = "{suite} and {more:,} more have not come"
SHARDS = "{have} of {total} shards of {suite}"
WAITING = "{suite}: the run {run} waits for its files since {since}: {reason}"
BROKEN = "{suite}: the run {run}, announced on {since}, cannot be used: {reason}"
MISSING = (
    "{suite}: no run of it has come, and the commit before on the nightly branch has one. Where the lab has given the "
    "suite up, the next commit is not asked for it any more."
)
OVER = "It is waited for no longer; what is uploaded later still counts."
MOST_NUMBERS = 20
MOST_LINES = 10


def counted(number: int, one: str, many: str = "") -> str:
    """Return `1 new failure` or `1,267 new failures`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def happened(failure: Failure) -> str:
    """Say in a few words what happened to a test."""
    ended = "errored" if failure.seen.status is Status.ERRORED else "failed"
    return HAPPENED.get(failure.seen.trouble, ended)


def ending(text: str, limit: int) -> str:
    """Return at most `limit` characters from the end of a text, which is where a failure says what went wrong."""
    if len(text) <= limit:
        return text
    _, _, lines = text[1 - limit :].partition("\n")
    return f"…{lines or text[1 - limit :]}"


def since(seconds: float) -> str:
    """Write a moment, given in seconds since 1970."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"


def title(findings: Findings) -> str:
    """Say in one line of plain text what changed, and how many tests ended how."""
    parts = [TITLE_INCOMPLETE.format(what=_lacking(findings))] if not findings.state.complete else []
    if findings.telling:
        parts.append(_changes(findings))
        parts += [TITLE_SOME_INFRA.format(suite=plain(suite)) for suite, _ in findings.infra[:1]]
        parts.append(_totals(findings))
    elif findings.infra:
        # That a suite of it has not come is the lesser news, and often has the same cause.
        parts.insert(0, TITLE_INFRA.format(why=plain(findings.infra[0][1])))
    return shortened(" · ".join(part for part in parts if part) or TITLE_NOTHING, TITLE_LIMIT)


def _changes(findings: Findings) -> str:
    if findings.untested:
        return TITLE_UNTESTED.format(skipped=findings.untested)
    compared = [told.comparison for _, told in findings.telling if told.comparison.has_baseline]
    if not compared:
        failing = f", {findings.unjudged:,} failing" if findings.unjudged else ""
        return TITLE_FIRST + failing
    new_failures, ignored = len(findings.new_failures), findings.ignored_failures
    changes = [counted(new_failures, "new failure")] if new_failures else []
    if ignored and findings.ignored:
        failures = counted(ignored, "new failure")
        changes.append(TITLE_IGNORED.format(failures=failures, login=plain(findings.ignored.by)))
    if confirmed := sum(len(told.confirmed) for _, told in findings.telling):
        changes.append(TITLE_CONFIRMED.format(failures=counted(confirmed, "failure")))
    fixed = sum(len(c.fixed) for c in compared)
    skipped = sum(len(c.newly_skipped) for c in compared)
    flaky = sum(len(c.newly_flaky) for c in compared)
    gone = sum(len(c.gone) for c in compared)
    precluded = sum(len(c.precluded) for c in compared)
    added = sum(len(set(c.new) - set(c.new_failures)) for c in compared)
    changes += [f"{fixed:,} fixed"] if fixed else []
    changes += [f"{skipped:,} newly skipped"] if skipped else []
    changes += [f"{flaky:,} newly flaky"] if flaky else []
    changes += [f"{gone:,} gone"] if gone else []
    changes += [f"{precluded:,} did not run"] if precluded else []
    changes += [counted(added, "new test")] if added else []
    still = sum(len(c.still_failing) for c in compared)
    return ", ".join([*(changes or [TITLE_SAME]), *([f"{still:,} still failing"] if still else [])])


def _totals(findings: Findings) -> str:
    counts = [told.comparison.counts for _, told in findings.suites]
    passed, skipped = sum(c.passed for c in counts), sum(c.skipped for c in counts)
    if findings.untested:
        return ""
    return f"{passed:,} passed, {skipped:,} skipped" if skipped else f"{passed:,} passed"


def _lacking(findings: Findings) -> str:
    lacking = _vanished(findings.state.missing_suites)
    lacking += [what for suite, _ in findings.suites for what in _lacks(suite)]
    more = len(lacking) - 1
    return (lacking or [NOTHING_CAME])[0] + (f" and {more} more" if more > 0 else "")


def _vanished(suites: Sequence[str]) -> list[str]:
    if not suites:
        return []
    more = len(suites) - 1
    text = VANISHED_MANY if more else VANISHED
    return [text.format(suite=plain(suites[0]), more=more)]


def _lacks(suite: SuiteState) -> Iterator[str]:
    name = plain(suite.suite)
    if suite.missing_shards:
        have = suite.shard_total - len(suite.missing_shards)
        yield SHARDS.format(have=f"{have:,}", total=f"{suite.shard_total:,}", suite=name)
    if suite.waiting:
        yield f"{counted(len(suite.waiting), 'run')} of {name} without all files"
    if suite.broken:
        yield f"{counted(len(suite.broken), 'unusable run')} of {name}"


def conclusion(findings: Findings) -> tuple[str, str]:
    """Return the conclusion, and why it is that in one sentence of Markdown."""
    reasons = list(_doubts(findings))
    if reasons:
        return NEUTRAL, f"**Neutral**, because {'; and because '.join(reasons)}. {MEANT}"
    compared = [told.comparison for _, told in findings.telling]
    if findings.ignored_failures and findings.ignored:
        failures = counted(findings.ignored_failures, "new failure was", "new failures were")
        login, pull = code(findings.ignored.by), pull_request(findings)
        why = ALL_IGNORED.format(failures=failures, pull=pull, login=login)
    else:
        why = NOTHING_NEW if any(comparison.still_failing for comparison in compared) else NOTHING_FAILS
    return SUCCESS, f"**Success**, because {why}."


def _doubts(findings: Findings) -> Iterator[str]:
    if findings.new_failures:
        yield NEW.format(tests=counted(len(findings.new_failures), "test fails", "tests fail"))
    if findings.unjudged:
        yield UNJUDGED.format(tests=counted(findings.unjudged, "test fails", "tests fail"))
    if findings.untested:
        yield UNTESTED.format(tests=counted(findings.untested, "test was", "tests were"))
    if findings.infra:
        names = [code(suite) for suite, _ in findings.infra[:MOST_LINES]]
        more = len(findings.infra) - len(names)
        yield INFRA.format(suites=", ".join(names) + (f" and {more} more" if more else ""))
    if not findings.state.complete:
        yield INCOMPLETE
    elif not findings.suites:
        yield NOTHING_CAME


def pull_request(findings: Findings) -> str:
    """Name the pull request for which failures are ignored; another one of the same head is not meant."""
    return code(f"#{findings.state.pull_request}")


def infra_reasons(findings: Findings) -> str:
    """Say of each suite that says nothing about the code why, as a list."""
    return _listed([f"{code(suite)} says nothing about the code: {escape(why)}" for suite, why in findings.infra])


def lacking(findings: Findings) -> str:
    """Say what is missing, waiting or broken and since when, as a list."""
    lines = [MISSING.format(suite=code(suite)) for suite in findings.state.missing_suites]
    lines += [line for suite, _ in findings.suites for line in _lacking_of(suite)]
    return "\n\n".join([_listed(lines), *([OVER] if findings.over else [])]) if lines else ""


def _lacking_of(suite: SuiteState) -> Iterator[str]:
    name = code(suite.suite)
    if suite.missing_shards:
        numbers = [str(number) for number in suite.missing_shards[:MOST_NUMBERS]]
        more = len(suite.missing_shards) - len(numbers)
        shown = ", ".join(numbers) + (f" and {more:,} more" if more else "")
        word = "shard" if len(suite.missing_shards) == 1 else "shards"
        has = "has" if len(suite.missing_shards) == 1 else "have"
        first = min((run.received_at for run in (*suite.runs, *suite.waiting, *suite.broken)), default=None)
        told = f" The first run was announced on {since(first)}." if first is not None else ""
        yield f"{name}: {word} {shown} of {suite.shard_total:,} {has} not come.{told}"
    yield from (_run_line(WAITING, name, run) for run in suite.waiting)
    yield from (_run_line(BROKEN, name, run) for run in suite.broken)


def _run_line(template: str, suite: str, run: Run) -> str:
    reason = escape(truncate(run.reason, 300)) or "no reason is known"
    return template.format(suite=suite, run=code(run.key.run_id), since=since(run.received_at), reason=reason)


def _listed(lines: list[str]) -> str:
    more = len(lines) - MOST_LINES
    shown = [*lines[:MOST_LINES], *([f"and {more:,} more"] if more > 0 else [])]
    return "\n".join(f"- {line}" for line in shown)
