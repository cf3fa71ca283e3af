"""Write the title of a hardware check run, its conclusion and the reason, for the check run and for pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from nightjar_formats.model import Status

from bot.core.listing import counted, listed
from bot.github.check_runs import NEUTRAL, SUCCESS, TITLE_LIMIT, shortened
from bot.github.text.markdown import code, plain
from bot.results.compare.context import FailureContext
from bot.results.compare.failure_class import FailureClass
from bot.results.compare.health import SuiteHealth
from bot.results.report import texts
from bot.results.report.findings import Findings, NewFailure
from bot.results.state import SuiteState

MOST_LINES = 10
MOST_ALSO_ON = 3
"""Other targets that a failure names, at most."""
SHORT = 10
"""Characters of a commit's SHA."""


def happened(failure: NewFailure) -> str:
    """Say in a few words how a test failed."""
    default = texts.ERRORED if failure.seen.status is Status.ERRORED else texts.FAILED
    return texts.HAPPENED.get(failure.seen.trouble, default)


def context_of(context: FailureContext | None) -> str:
    """Say since when a test fails, when it last passed, how often it failed before, and where else it fails."""
    if context is None:
        return ""
    parts = []
    if context.since:
        since = texts.SINCE_OLDER if context.older and not context.good else texts.SINCE
        parts.append(since.format(since=code(context.since[:SHORT])))
    if context.good:
        parts.append(texts.LAST_PASSED.format(good=code(context.good[:SHORT])))
    elif context.since and not context.older:
        parts.append(texts.NEVER_PASSED)
    if context.failed:
        parts.append(texts.FAILED_BEFORE.format(failed=context.failed, runs=counted(context.runs, "earlier run")))
    if context.also_on:
        parts.append(texts.ALSO_ON.format(targets=listed([code(target) for target in context.also_on], MOST_ALSO_ON)))
    return "; ".join([*parts, *passes_elsewhere([context])])


def passes_elsewhere(contexts: Sequence[FailureContext], show: Callable[[str], str] = code) -> list[str]:
    """Say that failing tests pass on a paired target, all on the same one: a simulator, or the simulated device.

    `show` writes the name of a target.
    """
    phrases = []
    simulators = [context.passes_on_simulators for context in contexts]
    if common := [name for name in simulators[0] if all(name in others for others in simulators)]:
        phrases.append(texts.PASSES_ON_SIMULATOR.format(targets=listed([show(name) for name in common], MOST_ALSO_ON)))
    devices = {context.passes_on_device for context in contexts}
    if len(devices) == 1 and (device := devices.pop()):
        phrases.append(texts.PASSES_ON_DEVICE.format(target=show(device)))
    return phrases


def title(findings: Findings) -> str:
    """Say in one line of plain text what changed, and how many tests passed and were skipped."""
    parts = [texts.TITLE_INCOMPLETE.format(what=missing_results(findings))] if not findings.state.complete else []
    for health in islice(unreliable_suites_of_commit(findings).values(), 1):
        parts.append(texts.TITLE_UNRELIABLE.format(since=texts.since_commit(health)))
    if findings.reported:
        parts.append(_changes(findings))
        parts += [texts.TITLE_SUITE_UNUSABLE.format(suite=plain(suite)) for suite, _ in findings.infra[:1]]
        parts.append(_totals(findings))
    elif findings.infra:
        # The lab's problem comes first: a missing suite is less important, and often has the same cause.
        parts.insert(0, texts.TITLE_UNUSABLE.format(why=plain(findings.infra[0][1])))
    return shortened(" · ".join(part for part in parts if part) or texts.TITLE_NOTHING, TITLE_LIMIT)


def _changes(findings: Findings) -> str:
    if findings.untested:
        return texts.TITLE_UNTESTED.format(skipped=findings.untested)
    comparisons = [compared.comparison for _, compared in findings.reported if compared.comparison.has_baseline]
    if not comparisons:
        failing = f", {findings.unjudged:,} failing" if findings.unjudged else ""
        quarantined = f", {_quarantined_words(findings)}" if findings.quarantined else ""
        return texts.TITLE_FIRST + failing + quarantined
    new_failures, ignored = len(findings.new_failures), findings.ignored_failures
    changes = [counted(new_failures, "new failure")] if new_failures else []
    if ignored and findings.ignored:
        failures = counted(ignored, "new failure")
        changes.append(texts.TITLE_IGNORED.format(failures=failures, login=plain(findings.ignored.by)))
    if findings.quarantined:
        changes.append(_quarantined_words(findings))
    # Each failing test is counted once: as new, quarantined, known flaky, confirmed, or still failing.
    confirmed = sum(
        findings.failure_classes[suite.suite, test] is FailureClass.STILL_FAILING
        for suite, compared in findings.reported
        for test in compared.confirmed
    )
    if confirmed:
        changes.append(texts.TITLE_CONFIRMED.format(failures=counted(confirmed, "failure")))
    kinds = {
        "known flaky": len(findings.known_flaky),
        "fixed": sum(len(comparison.fixed) for comparison in comparisons),
        "newly skipped": sum(len(comparison.newly_skipped) for comparison in comparisons),
        "newly flaky": sum(len(comparison.newly_flaky) for comparison in comparisons),
        "renamed": sum(len(comparison.renamed) for comparison in comparisons),
        "removed": sum(len(comparison.removed) for comparison in comparisons),
        "did not run": sum(len(comparison.precluded) for comparison in comparisons),
    }
    changes += [f"{number:,} {kind}" for kind, number in kinds.items() if number]
    added = sum(
        len(set(comparison.new) - {*comparison.new_failures, *comparison.known_flaky}) for comparison in comparisons
    )
    changes += [counted(added, "new test")] if added else []
    still_failing = findings.count(FailureClass.STILL_FAILING) - confirmed
    return ", ".join(
        [*(changes or [texts.TITLE_SAME]), *([f"{still_failing:,} still failing"] if still_failing else [])]
    )


def _quarantined_words(findings: Findings) -> str:
    return texts.TITLE_QUARANTINED.format(failures=counted(len(findings.quarantined), "failure"))


def _totals(findings: Findings) -> str:
    counts = [compared.comparison.counts for _, compared in findings.suites]
    passed, skipped = sum(c.passed for c in counts), sum(c.skipped for c in counts)
    if findings.untested:
        return ""
    return f"{passed:,} passed, {skipped:,} skipped" if skipped else f"{passed:,} passed"


def missing_results(findings: Findings) -> str:
    """Name the first thing that is missing, and how many more problems there are; all missing suites are one."""
    missing = [plain(suite) for suite in findings.state.missing_suites]
    problems = [texts.missing_suites_title(missing)] if missing else []
    problems += [problem for suite, _ in findings.suites for problem in _problems(suite)]
    further = len(problems) - 1
    return (problems or [texts.NOTHING_CAME])[0] + (f", {counted(further, 'more problem')}" if further > 0 else "")


def _problems(suite: SuiteState) -> Iterator[str]:
    name = plain(suite.suite)
    if suite.missing_shards:
        have = suite.shard_total - len(suite.missing_shards)
        yield texts.TITLE_SHARDS.format(have=have, total=suite.shard_total, suite=name)
    if suite.waiting:
        yield texts.TITLE_WAITING.format(runs=counted(len(suite.waiting), "run"), suite=name)
    if suite.broken:
        yield texts.TITLE_BROKEN.format(runs=counted(len(suite.broken), texts.UNUSABLE_RUN), suite=name)


def conclusion(findings: Findings) -> tuple[str, str]:
    """Return the conclusion, and its reason in one sentence of Markdown."""
    if reasons := list(_reasons(findings)):
        return NEUTRAL, texts.NEUTRAL_BECAUSE.format(reasons="; ".join(reasons))
    comparisons = [compared.comparison for _, compared in findings.reported]
    if findings.ignored_failures and findings.ignored:
        failures = counted(findings.ignored_failures, "new failure was", "new failures were")
        login, pull = code(findings.ignored.by), pull_request(findings)
        reason = texts.ALL_IGNORED.format(failures=failures, pull=pull, login=login)
    elif findings.known_flaky:
        reason = texts.ONLY_FLAKY.format(failures=counted(len(findings.known_flaky), "failure"))
    else:
        any_failing = any(comparison.still_failing for comparison in comparisons)
        reason = texts.NO_NEW_FAILURES if any_failing else texts.NO_FAILURES
    return SUCCESS, texts.SUCCESS_BECAUSE.format(reason=reason)


def _reasons(findings: Findings) -> Iterator[str]:
    if findings.new_failures:
        yield counted(len(findings.new_failures), "new failure")
    newly_quarantined, uncompared_quarantined = findings.quarantined_counts
    if newly_quarantined:
        yield texts.NEWLY_QUARANTINED.format(failures=counted(newly_quarantined, "new failure"))
    if uncompared_quarantined:
        yield texts.UNCOMPARED_QUARANTINED.format(failures=counted(uncompared_quarantined, "failure"))
    if findings.unjudged:
        yield texts.UNJUDGED.format(tests=counted(findings.unjudged, "test fails", "tests fail"))
    if findings.untested:
        yield texts.UNTESTED.format(tests=counted(findings.untested, "test was", "tests were"))
    if findings.infra:
        yield texts.UNUSABLE.format(suites=listed([code(suite) for suite, _ in findings.infra], MOST_LINES))
    if not findings.state.complete:
        yield texts.INCOMPLETE
    elif not findings.suites:
        yield texts.NOTHING_CAME


def pull_request(findings: Findings) -> str:
    """Name the pull request for which failures are ignored; other pull requests may have the same head."""
    return code(f"#{findings.state.pull_request}")


def unreliable_suites_of_commit(findings: Findings) -> dict[str, SuiteHealth]:
    """Return the suites of the commit whose results are unreliable, in their order."""
    return {suite: health for suite, health in sorted(findings.unreliable.items()) if suite in findings.state.suites}
