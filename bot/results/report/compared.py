"""Compare a suite with its baseline, in a separate process (`bot.core.untrusted`). No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nightjar_formats.model import SeenTest
from nightjar_formats.runs.infra import infra

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.diff import compare, untested
from bot.results.compare.flaky import Flakiness
from bot.results.compare.lasting import newly_confirmed
from bot.results.compare.texts import BASE_UNUSABLE
from bot.results.report.findings import Baseline, ComparedSuite
from bot.results.state import SuiteState


def compared_with(
    suite: SuiteState, baseline: Baseline | None, before: Mapping[str, SeenTest] | None, aliases: Aliases = NO_ALIASES
) -> ComparedSuite:
    """Compare a suite with its baseline. Tests that may still arrive are not reported as removed."""
    comparison = compare(suite.seen, before, exit_status=exit_status(suite), aliases=aliases)
    if not suite.complete:
        comparison = replace(comparison, removed=())
    return ComparedSuite(comparison, baseline)


def compared_with_any(
    suite: SuiteState, baseline: Baseline, before: Mapping[str, SeenTest], aliases: Aliases = NO_ALIASES
) -> ComparedSuite:
    """Compare a suite with a commit that somebody chose, and whose results may themselves be unusable."""
    why = infra(before, None, exit_status=None) or untested(before) if before else ""
    if why:
        return ComparedSuite(replace(compare(suite.seen, None, exit_status=None), infra=BASE_UNUSABLE.format(why=why)))
    return compared_with(suite, baseline if before else None, before or None, aliases)


def with_flaky(comparison_: ComparedSuite, flakiness: Mapping[str, Flakiness]) -> ComparedSuite:
    """Take the failures that the flakiness of their tests explains out of the new and the confirmed ones."""
    explained = {test: one for test, one in flakiness.items() if one.explains}
    if not explained:
        return comparison_
    comparison = comparison_.comparison
    known = tuple(test for test in comparison.new_failures if test in explained)
    new_failures = tuple(test for test in comparison.new_failures if test not in explained)
    return replace(
        comparison_,
        comparison=replace(comparison, new_failures=new_failures, known_flaky=known),
        confirmed=comparison_.confirmed - explained.keys(),
        flakiness=explained,
    )


def with_confirmed(
    suite: SuiteState,
    comparison_: ComparedSuite,
    before: Mapping[str, SeenTest],
    earlier: Mapping[str, SeenTest],
    aliases: Aliases = NO_ALIASES,
) -> ComparedSuite:
    """Add which failures are confirmed by this run, its baseline (`before`) and the baseline's own (`earlier`)."""
    if before.keys() != earlier.keys():  # only then a test may have been renamed
        first = compare(before, earlier, exit_status=None, aliases=aliases)
        earlier = _renamed(earlier, dict(first.renamed))
    now = dict(comparison_.comparison.renamed)
    earlier = _renamed(earlier, now)
    return replace(comparison_, confirmed=newly_confirmed(suite.seen, _renamed(before, now), earlier))


def _renamed(seen: Mapping[str, SeenTest], names: Mapping[str, str]) -> Mapping[str, SeenTest]:
    return {names.get(test, test): one for test, one in seen.items()} if names else seen


def exit_status(suite: SuiteState) -> int | None:
    """Return the worst exit status of a suite's shards, each from its last run; None if no run has one.

    A negative one stands for a signal, and is worse than any other.
    """
    last = {run.claims.shard_index: run.claims.exit_status for run in suite.runs if run.claims is not None}
    comparison_ = [status for status in last.values() if status is not None]
    return max(comparison_, key=lambda status: (status < 0, status), default=None)
