"""`/r/{owner}/{repo}/runs/…`: one run, what the bot read of it, and why its check run has its conclusion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import RunKey, TargetKey

from bot.results.compare.failure_class import FailureClass
from bot.results.compare.owners import OwnersOf
from bot.results.compare.quarantine import quarantine_at
from bot.results.report import sentences
from bot.results.report.baseline import compared_suites
from bot.results.report.check_run import listed_failures
from bot.results.report.findings import ComparedSuite, Findings, NewFailure
from bot.results.report.reproduce import command, template_of
from bot.results.state import CommitSummary, Run, SuiteState, TargetState
from bot.results.store.commit import commit_state
from bot.results.store.failures.contexts import ContextQuery, failure_contexts
from bot.results.store.history.health import unreliable_suites
from bot.results.store.lists.commits_with_results import commit_times, runs_of_commit
from bot.results.store.lists.run_lists import run_with_artifacts
from bot.results.store.tables.commits import summaries_of
from bot.web.openapi import Parameter
from bot.web.page_routes import Page, PageRequest
from handlers.dashboard.measurements.numbers import TestNumber, numbers_of_run
from handlers.dashboard.run.answer import run_answer, run_steps
from handlers.dashboard.run.artifacts import seen_artifacts
from handlers.dashboard.run.causes import causes_of
from handlers.dashboard.run.model import CheckSummary, ClaimedFact, RunDetails, SeenRun, SuiteSummary
from handlers.dashboard.searches.links import searches_of
from handlers.dashboard.shared.content import content_of_results_and_records
from handlers.dashboard.shared.settings import results_of
from handlers.dashboard.shared.wiring import DashboardParts
from handlers.results.config import QUARANTINE, RENAMES, labs_of
from handlers.results.owners import owners_in_force

if TYPE_CHECKING:
    import sqlalchemy as sa
    from nightjar_formats.runs.manifest import ArtifactEntry

    from bot.config.model import RepositoryConfig
    from bot.core.aliases import Aliases
    from bot.results.compare.context import FailureContext
    from bot.results.compare.health import SuiteHealth

MOST_SUITES = 4
"""The most suites with failures for which the page says since when they fail: each costs a few statements."""
MOST_CLAIMS = 50
"""The most entries of an environment that the page shows."""
LONGEST_CLAIM = 500
"""The most characters that the page shows of the name or the value of an entry."""
PARTS = tuple(
    Parameter(name, words, {"type": "string"})
    for name, words in (
        ("lab", "The lab."),
        ("target", "The target."),
        ("sha", "The commit."),
        ("run_id", "The run's ID."),
    )
)


def run_page(parts: DashboardParts) -> Page:
    """Return the page of one run."""

    async def load(request: PageRequest) -> RunDetails:
        name, settings, lab_results = results_of(parts, request.repository)
        settings = await parts.in_force(name, settings)
        key = RunKey(name, request.path["lab"], request.path["target"], request.path["sha"], request.path["run_id"])
        results = parts.results.running_in(request.pages.run)
        run, entries, runs, state, unreliable = await results.read(_read_commit, key)
        # No client is passed, so relations between commits that are not stored yet stay unknown: a page must not spend
        # GitHub's quota.
        compared = await compared_suites(results, None, name, state, settings.of(RENAMES).aliases)
        findings = replace(_findings(settings, key.about, state, compared, parts.moment()), unreliable=unreliable)
        contexts, times, summaries, numbers = await results.read(
            _read_contexts, key, findings, settings.of(RENAMES).aliases
        )
        owners = await owners_in_force(parts.records, name, settings)
        page = await request.pages.run(_page_of, run, runs, replace(findings, contexts=contexts), times, owners)
        page.known_commits = summaries
        listed = [test for cause in page.causes for test in cause.tests]
        searches = await searches_of(
            parts.records, name, {(key.about.full_name, test.suite, test.test) for test in listed}
        )
        for test in listed:
            test.search = searches.get((key.about.full_name, test.suite, test.test))
        page.numbers, page.more_numbers = numbers
        page.answer = run_answer(page, name, "" if state.complete else sentences.missing_results(findings))
        page.next_steps = run_steps(page, name, parts.github)
        page.files = seen_artifacts(run, entries, lab_results, parts.moment()) if entries else None
        return page

    return Page(
        path="/r/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}",
        api_path="/api/v1/repos/{owner}/{repo}/runs/{lab}/{target}/{sha}/{run_id}",
        summary="One run of a lab, and why its check run has its conclusion",
        template="run.html",
        model=RunDetails,
        parts=PARTS,
        load=load,
        content=content_of_results_and_records(parts),
    )


def _findings(
    settings: RepositoryConfig, target: TargetKey, state: TargetState, compared: dict[str, ComparedSuite], moment: float
) -> Findings:
    quarantine, ended = quarantine_at(settings.of(QUARANTINE), target, moment)
    lab = labs_of(settings).get(target.lab)
    return Findings(
        state,
        compared,
        reproduce=(lab.reproduce if lab else None) or "",
        reproduce_suites=lab.reproduce_suites if lab else {},
        quarantine=quarantine,
        ended=ended,
    )


def _context_queries(findings: Findings) -> dict[str, ContextQuery]:
    """Return the failures whose contexts the page shows, by suite: those that a check run lists, of a few suites."""
    queries = {}
    for suite, tests in list(listed_failures(findings).items())[:MOST_SUITES]:
        baseline = findings.compared[suite].baseline
        queries[suite] = ContextQuery(baseline.sha if baseline else "", tests)
    return queries


def _read_commit(
    connection: sa.Connection, key: RunKey
) -> tuple[Run, list[ArtifactEntry], list[Run], TargetState, dict[str, SuiteHealth]]:
    """Return a run with its files, all runs of its commit, their results, and the suites with unreliable results.

    Raises LookupError if the run is not stored.
    """
    run, entries = run_with_artifacts(connection, key)
    if run is None:
        raise LookupError(key.folder)
    return (
        run,
        entries,
        runs_of_commit(connection, key.about, key.sha),
        commit_state(connection, key.about, key.sha),
        unreliable_suites(connection, key.about, key.sha),
    )


def _read_contexts(
    connection: sa.Connection, key: RunKey, findings: Findings, aliases: Aliases
) -> tuple[
    dict[tuple[str, str], FailureContext], dict[str, float], dict[str, CommitSummary], tuple[list[TestNumber], bool]
]:
    """Return the contexts of failures, the times of the commits since which they fail, and summaries of commits.

    After these comes what `numbers_of_run` returns.
    """
    queries = _context_queries(findings)
    contexts = failure_contexts(connection, key.about, key.sha, queries, aliases)
    shas = {context.since for context in contexts.values() if context.since}
    page_shas = {key.sha, *shas, *(query.baseline for query in queries.values() if query.baseline)}
    summaries = summaries_of(connection, key.repository, page_shas)
    return contexts, commit_times(connection, key.about, shas), summaries, numbers_of_run(connection, key)


def _page_of(
    run: Run, runs_of_commit: Sequence[Run], findings: Findings, times: Mapping[str, float], owners: OwnersOf
) -> RunDetails:
    """Return the page; it blocks, because it reads the outputs of failures from the store."""
    key, state = run.key, findings.state
    admission = run.admission
    grouped = causes_of(findings, lambda failure: _command(findings, failure), times, owners)
    return RunDetails(
        lab=key.lab,
        target=key.target,
        sha=key.sha,
        committed_at=datetime.fromtimestamp(admission.committed_at, UTC) if admission else None,
        pull_request=admission.pull_request if admission else None,
        run=_summarize_run(run),
        claims=_claims(run),
        environment=_environment(run),
        others=[_summarize_run(other_run) for other_run in runs_of_commit if other_run.key != key],
        check=_check(findings) if state.suites else None,
        suites=sorted((_suite(suite, compared, findings) for suite, compared in findings.suites), key=_worst_first),
        missing_suites=list(state.missing_suites),
        failures=grouped.counts,
        causes=grouped.causes,
        more_causes=grouped.unlisted,
        unlisted=grouped.ungrouped,
    )


def _check(findings: Findings) -> CheckSummary:
    conclusion, reason = sentences.conclusion(findings)
    name = findings.state.target.check_name
    return CheckSummary(name=name, title=sentences.title(findings), conclusion=conclusion, why=reason)


def _suite(suite: SuiteState, compared: ComparedSuite, findings: Findings) -> SuiteSummary:
    comparison, counts = compared.comparison, compared.comparison.counts
    missing = [f"shard {number} of {suite.shard_total}" for number in suite.missing_shards[:20]]
    missing += [f"run {run.key.run_id}" for run in (*suite.waiting, *suite.broken)][:20]
    return SuiteSummary(
        suite=suite.suite,
        passed=counts.passed + counts.xfailed + counts.xpassed,
        failed=counts.failed + counts.errored,
        skipped=counts.skipped,
        flaky=counts.flaky,
        new_failures=findings.count(FailureClass.NEW, suite.suite),
        still_failing=findings.count(FailureClass.STILL_FAILING, suite.suite),
        known_flaky=findings.count(FailureClass.KNOWN_FLAKY, suite.suite),
        quarantined=findings.count(FailureClass.QUARANTINED, suite.suite),
        unjudged=findings.count(FailureClass.UNJUDGED, suite.suite),
        fixed=len(comparison.fixed),
        removed=len(comparison.removed),
        baseline=compared.baseline.sha if compared.baseline else None,
        infra=comparison.infra,
        missing=", ".join(missing),
    )


def _worst_first(suite: SuiteSummary) -> tuple[int, bool, int]:
    """Return the sort key of a suite: most new failures first, then unusable ones, then most failures."""
    return -suite.new_failures, not suite.infra, -suite.failed


def _command(findings: Findings, failure: NewFailure) -> str:
    target = findings.state.target
    template = template_of(findings, failure)
    return command(template, failure, target.target, findings.state.sha) if template else ""


def _summarize_run(run: Run) -> SeenRun:
    claims = run.claims
    shards = claims.shard_total if claims else 1
    return SeenRun(
        run_id=run.key.run_id,
        suite=claims.suite if claims else None,
        attempt=claims.attempt if claims else None,
        shard=f"{claims.shard_index}/{shards}" if claims and shards > 1 else "",
        state=run.state,
        reason=run.reason,
        received_at=datetime.fromtimestamp(run.received_at, UTC),
        bytes=run.bytes,
    )


def _claims(run: Run) -> list[ClaimedFact]:
    claims = run.claims
    if claims is None:
        return []
    facts = {
        "started": claims.started_at,
        "finished": claims.finished_at,
        "exit status": "" if claims.exit_status is None else str(claims.exit_status),
        "log": claims.log_url,
    }
    return _facts(facts.items())


def _environment(run: Run) -> list[ClaimedFact]:
    return (
        _facts(sorted((str(name), str(value)) for name, value in run.claims.environment.items())) if run.claims else []
    )


def _facts(pairs: Iterable[tuple[str, str]]) -> list[ClaimedFact]:
    facts = [(name, value) for name, value in pairs if value][:MOST_CLAIMS]
    return [ClaimedFact(name=name[:LONGEST_CLAIM], value=value[:LONGEST_CLAIM]) for name, value in facts]
