"""Advisory check runs of hardware labs: one for each target and commit, over all suites of the target.

A check run is computed again from the stored results whenever they change, and whenever somebody presses one of its
buttons (https://docs.github.com/rest/guides/using-the-rest-api-to-interact-with-checks#check-runs-and-requested-actions).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.config.types import seconds
from bot.core.events import CHECK_BUTTON_ACTIONS, Person, person_or_ghost
from bot.core.page_paths import run_path
from bot.effects.checks import PutCheckRun
from bot.effects.remember import StoreRecord
from bot.engine.records import Key
from bot.github.repositories.permissions import ROLES, Permissions
from bot.github.text.markdown import code
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import page_url
from bot.results.compare.paired import paired_targets
from bot.results.compare.quarantine import quarantine_at
from bot.results.deliveries import CHECK_EVENT
from bot.results.measurements.unexpected import NOT_COMPARED
from bot.results.report import sentences
from bot.results.report.baseline import compared_suites
from bot.results.report.check_run import IGNORE, listed_failures, results_report
from bot.results.report.findings import Findings, IgnoredFailures
from bot.results.service import RESULTS
from bot.results.state import TargetState
from bot.results.store.commit import commit_state
from bot.results.store.failures.contexts import ContextQuery, failure_contexts
from bot.results.store.history.health import unreliable_suites
from bot.results.store.lists.run_lists import targets_of_commit
from bot.results.store.measurements.pull_numbers import numbers_of_pull
from handlers.results import texts
from handlers.results.config import LAB_RESULTS, QUARANTINE, RENAMES
from handlers.results.effects import RequestCheckRun
from handlers.results.owners import store_code_owners
from handlers.results.records import IGNORED, REFUSED_PRESS, RefusedPress
from handlers.results.requested_tests import REQUESTED_TESTS

if TYPE_CHECKING:
    import sqlalchemy as sa

    from bot.core.aliases import Aliases
    from bot.core.events import Delivery
    from bot.results.ingest.files import CommitFiles
    from bot.results.settings.results import Lab, Results

NAME, ALL_NAME = "hardware-results", "hardware-results-all"
KEY = "results"
CHECK_RUN, CHECK_SUITE = "check_run", "check_suite"
MOST_IGNORED = 2_000
"""Tests that are stored as ignored for one pull request and target."""


router = Router()


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """Somebody pressed a button of a check run: `button` is its identifier, empty for GitHub's own *Re-run*.

    `pressed_at` is the time in ISO 8601. `seen` are the title and the external ID of the check run that they saw.
    """

    button: str
    person: Person
    pressed_at: str
    seen: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class RequestedCheck:
    """A check run that must be written, because somebody pressed a button or results changed.

    `is_over`: the bot no longer waits for missing results. `even_if_same`: it is written even if its text is unchanged.
    """

    target: TargetKey
    sha: str
    press: ButtonPress | None = None
    is_over: bool = False
    even_if_same: bool = False


@router.on(CHECK_SUITE, "rerequested", name=ALL_NAME, feature=KEY)
async def request_all_check_runs(context: Context) -> Plan:
    """Request all of our check runs on a commit again: somebody pressed *Re-run all checks*.

    This delivery has the lock of the commit, but check runs are written under locks of their own. If both wrote at the
    same time, older content could become the newest check run. So this only requests each check run under its lock.
    """
    suite = context.delivery.payload.at("check_suite")
    # Check runs of other Apps are theirs to write.
    if suite.integer("app", "id") != context.me.app_id:
        return NOTHING
    sha = suite.string("head_sha")
    results = context.part(RESULTS)
    targets = await results.read(targets_of_commit, results.canonical_name(context.repository.full_name), sha)
    return Plan(
        tuple(RequestCheckRun(target.lab, target.target, sha) for target in targets),
        why=texts.ALL_REQUESTED.format(count=len(targets)),
    )


@router.on(CHECK_EVENT.name, name=NAME, feature=KEY)
@router.on(CHECK_RUN, *CHECK_BUTTON_ACTIONS, name=NAME, feature=KEY)
async def write_check_run(context: Context) -> Plan:
    """Plan the check run of a target on a commit."""
    # The clock is read before the results: an older plan must not overwrite the check run of a newer one
    # (docs/decisions/when-a-check-run-is-written.md).
    as_of = time.time()
    results, request = context.config.of(LAB_RESULTS), read_request(context.delivery, context.me.app_id)
    if results is None or request is None:
        return NOTHING
    lab = results.labs.get(request.target.lab)
    if lab is None or request.target.target not in lab.targets:
        return Plan(why=texts.TARGET_REMOVED.format(target=request.target.target, lab=request.target.lab))
    # Results are stored under the name in app.yaml; the letter case of GitHub's name may differ.
    request = replace(request, target=context.part(RESULTS).canonical(request.target))
    state = await context.part(RESULTS).read(commit_state, request.target, request.sha)
    if not state.suites:
        return Plan(why=texts.NO_RESULTS_OF_TARGET.format(target=request.target.check_name, sha=request.sha))
    key = ignored_key(context.repository.id, state)
    ignored = await context.records.get(key) if key else None
    findings, files = await _load_findings(context, results, lab, request, state, ignored)
    may_ignore = False
    if request.press and request.press.button == IGNORE.identifier:
        role = await Permissions().role(context.github, context.repository.full_name, request.press.person)
        may_ignore = ROLES.index(role) >= ROLES.index("write")
    head_since = await _head_since(context, state)
    owners = await store_code_owners(context, files) if state.mainline and files is not None else []
    # In a thread, as it reads details from the database; linear in the tests of the runs (tests/test_handler_work.py).
    target = request.target
    page = page_url(context, run_path(target.repository, target.full_name, request.sha, findings.external_id))
    plan = await asyncio.to_thread(
        decide_check_run, findings, request, key, as_of, page, may_ignore=may_ignore, head_since=head_since
    )
    return replace(plan, effects=(*owners, *plan.effects))


async def _head_since(context: Context, state: TargetState) -> float:
    """Return when the commit appeared, as far as the bot knows: the first test request, or the first results."""
    moments = [run.received_at for suite in state.suites.values() for run in (*suite.runs, *suite.waiting)]
    if state.pull_request is not None:
        requested_tests = context.part(REQUESTED_TESTS)
        moments += await requested_tests.requested_at(context.repository.id, state.pull_request, state.sha)
    return min(moments, default=context.delivery.received_at)


def decide_check_run(
    findings: Findings,
    request: RequestedCheck,
    key: Key[IgnoredFailures] | None,
    as_of: float,
    page: str,
    *,
    may_ignore: bool,
    head_since: float | None = None,
) -> Plan:
    """Return the plan that writes the check run, and before it the record of failures that somebody ignores.

    `key` is the key of that record, None without a pull request. `as_of` is when the findings were read, `page` the
    address of the newest run's page, and `head_since` when the commit appeared. `may_ignore` says whether the person
    who pressed the button has write access.
    """
    press, records = request.press, list[Effect]()
    if press and press.button == IGNORE.identifier:
        findings, records = _ignore(findings, press, key, may_ignore=may_ignore)
    content = results_report(findings)
    name, run_id = request.target.check_name, findings.external_id
    check = PutCheckRun(name, request.sha, run_id, content, as_of, request.even_if_same, page, head_since)
    return Plan((*records, check), why=content.title)


def _ignore(
    findings: Findings, press: ButtonPress, key: Key[IgnoredFailures] | None, *, may_ignore: bool
) -> tuple[Findings, list[Effect]]:
    """Return the findings with all new failures ignored, and the record of that.

    If the failures cannot be ignored, the findings have a notice, and the record says who tried.
    """
    ignored_tests = findings.ignored.tests if findings.ignored else frozenset()
    tests = ignored_tests | {(failure.suite, failure.test) for failure in findings.new_failures}
    refusal = _refusal(findings, press, tests, may_ignore=may_ignore, has_pull=key is not None)
    sha, by = findings.state.sha, press.person.login
    if key is None or refusal:
        refused = RefusedPress(by, sha, press.pressed_at, refusal)
        records = [StoreRecord.of(refused_key(key), refused)] if key is not None else []
        return replace(findings, notice=texts.NOTICE.format(text=refusal)), [*records]
    ignored = IgnoredFailures(by, sha, press.pressed_at, tests)
    records = [StoreRecord.of(key, ignored), StoreRecord.of(refused_key(key), None)]
    return replace(findings, ignored=ignored), [*records]


def _refusal(
    findings: Findings, press: ButtonPress, tests: Collection[tuple[str, str]], *, may_ignore: bool, has_pull: bool
) -> str:
    """Say why failures cannot be ignored; empty if they can."""
    login = code(press.person.login)
    if not may_ignore:
        return texts.IGNORE_NEEDS_WRITE.format(login=login, pull=sentences.pull_request(findings))
    if not has_pull or not findings.new_failures:
        return texts.NOTHING_TO_IGNORE.format(login=login)
    # The check run has changed since the page was loaded: the person has not seen some of the failures.
    if press.seen != (sentences.title(findings), findings.external_id):
        return texts.IGNORE_CHANGED.format(login=login)
    return texts.TOO_MANY_TO_IGNORE.format(login=login, most=MOST_IGNORED) if len(tests) > MOST_IGNORED else ""


def read_request(delivery: Delivery, app_id: int) -> RequestedCheck | None:
    """Return which check run a delivery requests; None for a check run that is not a lab's, or is another App's."""
    payload = delivery.payload
    if delivery.event != CHECK_RUN:
        event = CHECK_EVENT.read(payload)
        return RequestedCheck(event.target_in(payload), event.sha, is_over=event.over, even_if_same=event.again)
    run = payload.at("check_run")
    # People and other Apps may create check runs of any name: ours is `hardware/LAB/TARGET`, and of our App.
    segments = run.string("name").split("/")
    if len(segments) != 3 or run.integer("app", "id") != app_id:
        return None
    target = TargetKey(payload.string("repository", "full_name"), segments[1], segments[2])
    if run.string("name") != target.check_name:
        return None
    pressed_at = f"{datetime.fromtimestamp(delivery.received_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    seen = (run.text("output", "title"), run.text("external_id"))
    button = payload.text("requested_action", "identifier")
    press = ButtonPress(button, person_or_ghost(payload, "sender"), pressed_at, seen)
    # After *Re-run*, GitHub has reset the check's suite, so it needs a new run; after *Ignore* it has not.
    return RequestedCheck(target, run.string("head_sha"), press, even_if_same=button != IGNORE.identifier)


def refused_key(ignored: Key[IgnoredFailures]) -> Key[RefusedPress]:
    """Return the key of the record of a refused press, for the same pull request and target."""
    return REFUSED_PRESS.of(ignored.name.removeprefix(IGNORED.of("").name))


def ignored_key(repository_id: int, state: TargetState) -> Key[IgnoredFailures] | None:
    """Return the key of the record of ignored failures; None if the commit is not the head of a pull request."""
    if state.pull_request is None:
        return None
    return IGNORED.of(repository_id, state.pull_request, state.target.lab, state.target.target)


async def _load_findings(
    context: Context,
    results: Results,
    lab: Lab,
    request: RequestedCheck,
    state: TargetState,
    ignored: IgnoredFailures | None,
) -> tuple[Findings, CommitFiles | None]:
    """Return the findings, and the files of the commit if it has new failures."""
    compared = await compared_suites(
        context.part(RESULTS), context.github, context.repository.full_name, state, context.config.of(RENAMES).aliases
    )
    # Only annotations need the list of files, and only new failures have annotations.
    files = None
    if any(compared_suite.comparison.new_failures for compared_suite in compared.values()):
        files = await context.part(RESULTS).file_lists.read(context.github, context.repository.full_name, request.sha)
    target, moment = request.target, time.time()
    quarantine, ended = quarantine_at(context.config.of(QUARANTINE), target, moment)
    findings = Findings(
        state=state,
        compared=compared,
        files=files.paths if files is not None else None,
        contacts=lab.contacts,
        reproduce=lab.reproduce or "",
        reproduce_suites=lab.reproduce_suites,
        ignored=ignored,
        over=request.is_over or deadline_passed(state, seconds(results.deadline), moment),
        quarantine=quarantine,
        ended=ended,
        degraded=await context.part(REQUESTED_TESTS).target_notice(
            context.records, context.repository.id, target, lab.targets[target.target].tier, moment
        ),
    )
    findings = await context.part(RESULTS).read(_with_history, findings, results, context.config.of(RENAMES).aliases)
    # A number without noise needs no further runs.
    noisy = next((number for number in findings.unexpected_numbers if number.low < number.high), None)
    if noisy is None or not lab.targets[target.target].takes_requests:
        return findings, files
    command = context.part(REQUESTED_TESTS).benchmark_of(noisy.test, target)
    return replace(findings, benchmark=f"{context.app_config.mentions[0]} {command}"), files


def _with_history(connection: sa.Connection, findings: Findings, results: Results, aliases: Aliases) -> Findings:
    """Add what earlier runs say: which suites are unreliable, since when tests fail, and which numbers are unexpected.

    The numbers of a pull request are compared with the nightly runs up to the baseline of each suite. Blocks.
    """
    state, compared = findings.state, findings.compared
    target, sha = state.target, state.sha
    baselines = {suite: item.baseline.sha for suite, item in compared.items() if item.baseline}
    paired = paired_targets(results, target.full_name)
    failures = {
        suite: ContextQuery(baselines.get(suite, ""), tests, paired)
        for suite, tests in listed_failures(findings).items()
    }
    return replace(
        findings,
        unreliable=unreliable_suites(connection, target, sha),
        contexts=failure_contexts(connection, target, sha, failures, aliases),
        numbers=NOT_COMPARED
        if state.pull_request is None
        else numbers_of_pull(
            connection, target, sha, baselines, results.change_limits(target.lab, target.target), aliases
        ),
    )


def deadline_passed(state: TargetState, deadline: float, moment: float) -> bool:
    """Return whether the bot no longer waits for missing results of a commit; False if none are missing.

    `deadline` is in seconds after the newest run arrived, `moment` in seconds since 1970.
    """
    runs = [run for suite in state.suites.values() for run in (*suite.runs, *suite.waiting, *suite.broken)]
    return not state.complete and all(run.received_at + deadline < moment for run in runs)
