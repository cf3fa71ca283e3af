"""Advisory check runs of hardware labs: one for each target and commit, over all suites of the target.

A check run is computed again from the stored results whenever they change, and whenever somebody presses one of its
buttons (https://docs.github.com/rest/guides/using-the-rest-api-to-interact-with-checks#check-runs-and-requested-actions).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.config.types import seconds
from bot.core.events import CHECK_BUTTON_ACTIONS, Person, person_or_ghost
from bot.core.page_paths import run_path
from bot.effects.checks import PutCheckRun
from bot.effects.remember import StoreRecord
from bot.engine.records import Key, Record
from bot.github.markdown import code
from bot.github.permissions import ROLES, Permissions
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from bot.plan.page_links import page_url
from bot.results.compare.quarantine import quarantine_at
from bot.results.deliveries import CHECK_EVENT, check_event_in
from bot.results.report import sentences
from bot.results.report.baseline import compared_suites
from bot.results.report.check_run import IGNORE, results_report
from bot.results.report.findings import ComparedSuite, Findings, IgnoredFailures
from bot.results.report.tables import listed_failures
from bot.results.service import RESULTS
from bot.results.state import TargetState
from bot.results.store.contexts import AskedFailures
from handlers.hardware import texts
from handlers.hardware.degraded.targets import degraded_targets
from handlers.hardware.degraded.words import degraded_notice
from handlers.hardware.effects import RequestCheckRun
from handlers.hardware.jobs.store import JOBS

if TYPE_CHECKING:
    from bot.config.results import Lab, Results
    from bot.core.events import Delivery

NAME, ALL_NAME = "hardware-results", "hardware-results-all"
KEY = "results"
CHECK_RUN, CHECK_SUITE = "check_run", "check_suite"
MOST_IGNORED = 2_000
"""Tests that are stored as ignored for one pull request and target."""


router = Router()


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """Somebody pressed a button of a check run: `button` is its identifier, empty for GitHub's own *Re-run*.

    `shown` are the title and the external ID of what they saw.
    """

    button: str
    by: Person
    at: str
    shown: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class RequestedCheck:
    """A check run that must be written, because somebody pressed a button or results changed.

    `over`: the bot no longer waits for missing results. `again`: it is written even if it says the same as before.
    """

    about: TargetKey
    sha: str
    press: ButtonPress | None = None
    over: bool = False
    again: bool = False


@router.on(CHECK_SUITE, "rerequested", name=ALL_NAME, feature=KEY)
async def show_all(context: Context) -> Plan:
    """Compute all of our check runs on a commit again: somebody pressed *Re-run all checks*.

    This delivery has the lock of the commit, but check runs are written under locks of their own. If both wrote at the
    same time, older content could become the newest check run. So this only requests each check run under its lock.
    """
    suite = context.delivery.payload.at("check_suite")
    # Check runs of other Apps are theirs to write.
    if suite.integer("app", "id") != context.me.app_id:
        return NOTHING
    sha = suite.string("head_sha")
    targets = await context.part(RESULTS).targets(context.repository.full_name, sha)
    return Plan(
        tuple(RequestCheckRun(about.lab, about.target, sha) for about in targets),
        why=texts.ALL_REQUESTED.format(count=len(targets)),
    )


@router.on(CHECK_EVENT.name, name=NAME, feature=KEY)
@router.on(CHECK_RUN, *CHECK_BUTTON_ACTIONS, name=NAME, feature=KEY)
async def show(context: Context) -> Plan:
    """Write the check run of a target on a commit."""
    # Before anything is read: an older plan must not overwrite what a newer one has written
    # (docs/decisions/when-a-check-run-is-written.md).
    as_of = time.time()
    results, asked = context.config.results, asked_of(context.delivery, context.me.app_id)
    if results is None or asked is None:
        return NOTHING
    lab = results.labs.get(asked.about.lab)
    if lab is None or asked.about.target not in lab.targets:
        return Plan(why=texts.TARGET_REMOVED.format(target=asked.about.target, lab=asked.about.lab))
    # Results are stored under the name in app.yaml; the letter case of GitHub's name may differ.
    asked = replace(asked, about=context.part(RESULTS).canonical(asked.about))
    state = await context.part(RESULTS).state(asked.about, asked.sha)
    if not state.suites:
        return Plan(why=texts.NO_RESULTS_OF_TARGET.format(target=asked.about.check_name, sha=asked.sha))
    key = ignored_key(context.repository.id, state)
    ignored = await context.records.get(key) if key else None
    findings = await _findings(context, results, lab, asked, state, ignored)
    may = False
    if asked.press and asked.press.button == IGNORE.identifier:
        role = await Permissions().role(context.github, context.repository.full_name, asked.press.by)
        may = ROLES.index(role) >= ROLES.index("write")
    since = await _head_since(context, state)
    # In a thread, as it reads details from the database; linear in the tests of the runs (tests/test_handler_work.py).
    page = page_url(context, run_path(asked.about.repository, asked.about.full_name, asked.sha, findings.external_id))
    return await asyncio.to_thread(decide_check_run, findings, asked, key, as_of, page, may=may, head_since=since)


async def _head_since(context: Context, state: TargetState) -> float:
    """Return when the commit appeared, as far as we know: the first request for a test, or the first results."""
    moments = [run.received_at for suite in state.suites.values() for run in (*suite.runs, *suite.waiting)]
    if state.pull_request is not None:
        jobs = await context.part(JOBS).of_pull(context.repository.id, state.pull_request)
        moments += [job.requested_at for job in jobs if job.sha == state.sha]
    return min(moments, default=context.delivery.received_at)


def decide_check_run(
    findings: Findings,
    asked: RequestedCheck,
    key: Key[IgnoredFailures] | None,
    as_of: float,
    page: str,
    *,
    may: bool,
    head_since: float | None = None,
) -> Plan:
    """Return the plan: the check run, and before it the record of what somebody chose to ignore, if they `may`.

    `key` is that of the record, None without a pull request; `as_of` is when the findings were read, `page` the address
    of the newest run's page, and `head_since` when the commit appeared.
    """
    press, remembered = asked.press, list[Effect]()
    if press and press.button == IGNORE.identifier:
        findings, remembered = _ignore(findings, press, key, may=may)
    content = results_report(findings)
    name, run_id = asked.about.check_name, findings.external_id
    check = PutCheckRun(name, asked.sha, run_id, content, as_of, asked.again, page, head_since)
    return Plan((*remembered, check), why=content.title)


def _ignore(
    findings: Findings, press: ButtonPress, key: Key[IgnoredFailures] | None, *, may: bool
) -> tuple[Findings, list[Effect]]:
    login = code(press.by.login)
    if not may:
        return replace(
            findings, notice=texts.IGNORE_NEEDS_WRITE.format(login=login, pull=sentences.pull_request(findings))
        ), []
    if not key or not findings.new_failures:
        return replace(findings, notice=texts.NOTHING_TO_IGNORE.format(login=login)), []
    # The check run has changed since the page was loaded: they would ignore failures that they have not seen.
    if press.shown != (sentences.title(findings), findings.external_id):
        return replace(findings, notice=texts.IGNORE_CHANGED.format(login=login)), []
    before = findings.ignored.tests if findings.ignored else frozenset()
    tests = before | {(failure.suite, failure.test) for failure in findings.new_failures}
    if len(tests) > MOST_IGNORED:
        return replace(findings, notice=texts.TOO_MANY_TO_IGNORE.format(login=login, most=MOST_IGNORED)), []
    ignored = IgnoredFailures(press.by.login, findings.state.sha, press.at, tests)
    return replace(findings, ignored=ignored), [StoreRecord.of(key, ignored)]


def asked_of(delivery: Delivery, app_id: int) -> RequestedCheck | None:
    """Return which check run must be written; None if the delivery is about one that is not from a lab, or not ours."""
    payload = delivery.payload
    if delivery.event != CHECK_RUN:
        check_event = check_event_in(payload)
        return RequestedCheck(
            check_event.about, check_event.sha, over=check_event.over, again=CHECK_EVENT.read(payload).again
        )
    run = payload.at("check_run")
    # People and other Apps may create check runs of any name: ours is `hardware/LAB/TARGET`, and of our App.
    parts = run.string("name").split("/")
    if len(parts) != 3 or run.integer("app", "id") != app_id:
        return None
    about = TargetKey(payload.string("repository", "full_name"), parts[1], parts[2])
    if run.string("name") != about.check_name:
        return None
    at = f"{datetime.fromtimestamp(delivery.received_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    shown = (run.text("output", "title"), run.text("external_id"))
    press = ButtonPress(payload.text("requested_action", "identifier"), person_or_ghost(payload, "sender"), at, shown)
    # After *Re-run*, GitHub has reset the check's suite, so it needs a new run; after a button of ours it has not.
    return RequestedCheck(about, run.string("head_sha"), press, again=press.button != IGNORE.identifier)


IGNORED = Record(
    "hardware-ignored", 1, IgnoredFailures, "the failures on a target that a pull request ignores", days=365
)


def ignored_key(repository_id: int, state: TargetState) -> Key[IgnoredFailures] | None:
    """Return the key of the record of ignored failures; None if the commit is not the head of a pull request."""
    if state.pull_request is None:
        return None
    return IGNORED.of(repository_id, state.pull_request, state.about.lab, state.about.target)


async def _findings(
    context: Context,
    results: Results,
    lab: Lab,
    asked: RequestedCheck,
    state: TargetState,
    ignored: IgnoredFailures | None,
) -> Findings:
    compared = await compared_suites(
        context.part(RESULTS), context.github, context.repository.full_name, state, context.config.aliases
    )
    # Only annotations need the list of files, and only new failures have annotations.
    files = None
    if any(compared_suite.comparison.new_failures for compared_suite in compared.values()):
        files = await context.part(RESULTS).files(context.github, context.repository.full_name, asked.sha)
    now = time.time()
    quarantine, ended = quarantine_at(context.config.quarantine, asked.about, now)
    degraded = await degraded_targets(context.records, context.repository.id)
    findings = Findings(
        state=state,
        compared=compared,
        files=files,
        contacts=lab.contacts,
        reproduce=lab.reproduce or "",
        ignored=ignored,
        over=asked.over or is_over(state, seconds(results.deadline), now),
        quarantine=quarantine,
        ended=ended,
        unreliable=await context.part(RESULTS).unreliable(asked.about, asked.sha),
        degraded=degraded_notice(degraded.get(asked.about.full_name), lab.targets[asked.about.target].tier),
    )
    # In a thread, as thousands of failures are sorted.
    listed = await asyncio.to_thread(listed_failures, findings)
    failures = {suite: AskedFailures(_baseline_of(compared[suite]), tests) for suite, tests in listed.items()}
    contexts = await context.part(RESULTS).contexts(asked.about, asked.sha, failures, context.config.aliases)
    return replace(findings, contexts=contexts)


def _baseline_of(compared_suite: ComparedSuite) -> str:
    return compared_suite.baseline.sha if compared_suite.baseline else ""


def is_over(state: TargetState, deadline: float, now: float) -> bool:
    """Return whether the deadline for missing results of a commit has passed; times are in seconds."""
    runs = [run for suite in state.suites.values() for run in (*suite.runs, *suite.waiting, *suite.broken)]
    return not state.complete and all(run.received_at + deadline < now for run in runs)
