"""Compare a suite with its baseline, in a separate process (`bot.core.untrusted`). No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nightjar_formats.model import SeenTest
from nightjar_formats.runs.shared_outcomes import only_in

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.diff import compare, unusable
from bot.results.compare.flaky import Flakiness
from bot.results.compare.lasting import newly_confirmed
from bot.results.compare.texts import BASE_UNUSABLE
from bot.results.report.findings import Baseline, ComparedSuite
from bot.results.state import SuiteState


def compared_with(
    suite: SuiteState,
    baseline: Baseline | None,
    baseline_tests: Mapping[str, SeenTest] | None,
    aliases: Aliases = NO_ALIASES,
) -> ComparedSuite:
    """Compare a suite with its baseline. Tests that may still arrive are not reported as removed."""
    comparison = compare(suite.seen, baseline_tests, exit_status=exit_status(suite), aliases=aliases)
    if not suite.complete:
        comparison = replace(comparison, removed=())
    return ComparedSuite(comparison, baseline)


def compared_with_any(
    suite: SuiteState, baseline: Baseline, baseline_tests: Mapping[str, SeenTest], aliases: Aliases = NO_ALIASES
) -> ComparedSuite:
    """Compare a suite with a commit that a person chose, and whose results may be unusable."""
    reason = unusable(baseline_tests) if baseline_tests else ""
    if reason:
        return ComparedSuite(
            replace(compare(suite.seen, None, exit_status=None), infra=BASE_UNUSABLE.format(why=reason))
        )
    return compared_with(suite, baseline if baseline_tests else None, baseline_tests or None, aliases)


def with_flaky(compared: ComparedSuite, flakiness: Mapping[str, Flakiness]) -> ComparedSuite:
    """Count the failures that the flakiness of their tests explains as known flaky."""
    explained = {test: of_test for test, of_test in flakiness.items() if of_test.explains}
    if not explained:
        return compared
    comparison = compared.comparison
    new_failures = tuple(test for test in comparison.new_failures if test not in explained)
    still_failing = tuple(test for test in comparison.still_failing if test not in explained)
    known_flaky = {*comparison.known_flaky, *(explained.keys() & {*comparison.new_failures, *comparison.still_failing})}
    return replace(
        compared,
        comparison=replace(
            comparison,
            new_failures=new_failures,
            still_failing=still_failing,
            known_flaky=tuple(sorted(known_flaky)),
        ),
        confirmed=compared.confirmed - explained.keys(),
        flakiness=explained,
    )


def with_confirmed(
    suite: SuiteState,
    compared: ComparedSuite,
    baseline_tests: Mapping[str, SeenTest],
    earlier: Mapping[str, SeenTest],
    aliases: Aliases = NO_ALIASES,
) -> ComparedSuite:
    """Add the failures that this run confirms. `earlier` are the tests of the baseline's own baseline."""
    # Otherwise no test was renamed.
    if only_in(baseline_tests, earlier) or only_in(earlier, baseline_tests):
        earlier_comparison = compare(baseline_tests, earlier, exit_status=None, aliases=aliases)
        earlier = _renamed(earlier, dict(earlier_comparison.renamed))
    new_names = dict(compared.comparison.renamed)
    earlier = _renamed(earlier, new_names)
    return replace(compared, confirmed=newly_confirmed(suite.seen, _renamed(baseline_tests, new_names), earlier))


def _renamed(seen: Mapping[str, SeenTest], names: Mapping[str, str]) -> Mapping[str, SeenTest]:
    return {names.get(test, test): verdict for test, verdict in seen.items()} if names else seen


def exit_status(suite: SuiteState) -> int | None:
    """Return the worst exit status of a suite's shards, each from its last run; None if no run has one.

    A negative status stands for a signal, and is worse than any other.
    """
    last = {run.claims.shard_index: run.claims.exit_status for run in suite.runs if run.claims is not None}
    statuses = [status for status in last.values() if status is not None]
    return max(statuses, key=lambda status: (status < 0, status), default=None)
