"""What hardware labs found, as advisory check runs: one for each target of a lab on a commit, over all its suites.

It is computed anew from the stored results each time: when they changed, and when somebody presses a button of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bot.config.types import seconds
from bot.effects.base import Effect
from bot.effects.checks import AskForCheck, PutCheckRun
from bot.effects.remember import Remember
from bot.events import ASKED_OF_US, Person, person_or_ghost
from bot.github.markdown import code
from bot.github.pages import PER_PAGE
from bot.github.permissions import ROLES, Permissions
from bot.payload import Payload
from bot.plan import NOTHING, Context, Plan, Router
from bot.results import report_words as words
from bot.results.compare import CONFIRMED_RUNS, Told, compare, confirmed
from bot.results.events import CHECK_DUE, due_of
from bot.results.findings import Baseline, Compared, Findings, Ignored
from bot.results.model import Seen, TargetKey
from bot.results.report import IGNORE, report
from bot.results.state import SuiteState, TargetState

if TYPE_CHECKING:
    from bot.config.results import Lab, Results
    from bot.events import Delivery

NAME, ALL_NAME = "hardware-results", "hardware-results-all"
FEATURE = "results"
CHECK_RUN, CHECK_SUITE = "check_run", "check_suite"
COMMITS = "/repos/{+repo}/commits{?sha}"
MOST_COMMITS = 1_000
"""Commits that are looked through for one to compare with: ten requests, where one is the rule."""
MOST_IGNORED = 2_000
"""Tests that are kept as ignored for one pull request and target."""

NEEDS_WRITE = (
    "> {login} asked to ignore these failures for {pull}. That takes write permission in this "
    "repository: somebody who has it can press the button."
)
CHANGED = (
    "> {login} asked to ignore new failures, and results have come since that they have not seen. To ignore what is "
    "shown now, press the button once more."
)
NOTHING_TO_IGNORE = "> {login} asked to ignore new failures, and there are none here that could be ignored."
TOO_MANY = "> {login} asked to ignore more than {most:,} failures: that many tell of one cause, not of tests."
SWITCHED_OFF = "app.yaml has no target {target} of the lab {lab} any more, so its check is left as it is"
ALL = "all checks of the commit were asked for; {count} of them come from labs"
NOT_KNOWN = "no results of {target} are known for {sha}"

router = Router()


@dataclass(frozen=True, slots=True)
class Press:
    """Somebody pressed a button of a check run: `button` is its identifier, empty for GitHub's own *Re-run*.

    `shown` are the title and the external ID of what they saw.
    """

    button: str
    by: Person
    at: str
    shown: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which check run is to be written, and why: a press, or results that changed.

    `over`: enough was waited. `again`: it is wanted anew, even if it says the same.
    """

    about: TargetKey
    sha: str
    press: Press | None = None
    over: bool = False
    again: bool = False


@router.on(CHECK_SUITE, "rerequested", name=ALL_NAME, feature=FEATURE)
async def show_all(context: Context) -> Plan:
    """Have every check of ours on a commit computed again, for somebody asked for all of them at once.

    This delivery is in order with others of its commit, and not with what writes the checks: if one of those looked and
    wrote at the same time, the older might end as the newer run. So each check is asked for under its own lock.
    """
    suite = context.delivery.payload.at("check_suite")
    if suite.integer("app", "id") != context.me.app_id:
        return NOTHING
    sha = suite.string("head_sha")
    targets = await context.results.targets(context.repository.full_name, sha)
    return Plan(
        tuple(AskForCheck(about.lab, about.target, sha) for about in targets), why=ALL.format(count=len(targets))
    )


@router.on(CHECK_DUE, name=NAME, feature=FEATURE)
@router.on(CHECK_RUN, *ASKED_OF_US, name=NAME, feature=FEATURE)
async def show(context: Context) -> Plan:
    """Say on a commit what is known of it on a target."""
    as_of = time.time()
    results, asked = context.config.results, asked_of(context.delivery, context.me.app_id)
    if results is None or asked is None:
        return NOTHING
    lab = results.labs.get(asked.about.lab)
    if lab is None or asked.about.target not in lab.targets:
        return Plan(why=SWITCHED_OFF.format(target=asked.about.target, lab=asked.about.lab))
    asked = replace(asked, about=context.results.spelled(asked.about))
    state = await context.results.state(asked.about, asked.sha)
    if not state.suites:
        return Plan(why=NOT_KNOWN.format(target=asked.about.check_name, sha=asked.sha))
    key = ignored_key(context.repository.id, state)
    record = await context.records.get(key) if key else None
    findings = await _findings(context, results, lab, asked, state, read_ignored(record))
    may = False
    if asked.press and asked.press.button == IGNORE.identifier:
        role = await Permissions().role(context.github, context.repository.full_name, asked.press.by)
        may = ROLES.index(role) >= ROLES.index("write")
    return await asyncio.to_thread(decide, findings, asked, key, as_of, may=may)


def decide(findings: Findings, asked: Asked, key: str, as_of: float, *, may: bool) -> Plan:
    """Return what is written: the check run, and before it what somebody chose to ignore, if they may.

    `key` names the record of that, empty where there is no pull request; `as_of` is when the findings were read.
    """
    press, remembered = asked.press, list[Effect]()
    if press and press.button == IGNORE.identifier:
        findings, remembered = _ignore(findings, press, key, may=may)
    content = report(findings)
    check = PutCheckRun(asked.about.check_name, asked.sha, findings.external_id, content, as_of, asked.again)
    return Plan((*remembered, check), why=content.title)


def _ignore(findings: Findings, press: Press, key: str, *, may: bool) -> tuple[Findings, list[Effect]]:
    login = code(press.by.login)
    if not may:
        return replace(findings, notice=NEEDS_WRITE.format(login=login, pull=words.pull_request(findings))), []
    if not key or not findings.new_failures:
        return replace(findings, notice=NOTHING_TO_IGNORE.format(login=login)), []
    if press.shown != (words.title(findings), findings.external_id):
        return replace(findings, notice=CHANGED.format(login=login)), []
    before = findings.ignored.tests if findings.ignored else frozenset()
    tests = before | {(failure.suite, failure.test) for failure in findings.new_failures}
    if len(tests) > MOST_IGNORED:
        return replace(findings, notice=TOO_MANY.format(login=login, most=MOST_IGNORED)), []
    ignored = Ignored(press.by.login, findings.state.sha, press.at, tests)
    return replace(findings, ignored=ignored), [Remember(key, as_record(ignored, press.by))]


def asked_of(delivery: Delivery, app_id: int) -> Asked | None:
    """Read which check run is to be written; None for a check run that is not one of these, or not ours."""
    payload = delivery.payload
    if delivery.event != CHECK_RUN:
        due = due_of(payload)
        return Asked(due.about, due.sha, over=due.over, again=payload.flag("hardware", "again"))
    run = payload.at("check_run")
    parts = run.string("name").split("/")
    if len(parts) != 3 or run.integer("app", "id") != app_id:
        return None
    about = TargetKey(payload.string("repository", "full_name"), parts[1], parts[2])
    if run.string("name") != about.check_name:
        return None
    at = f"{datetime.fromtimestamp(delivery.received_at, UTC):%Y-%m-%dT%H:%M:%SZ}"
    shown = (run.text("output", "title"), run.text("external_id"))
    press = Press(payload.text("requested_action", "identifier"), person_or_ghost(payload, "sender"), at, shown)
    return Asked(about, run.string("head_sha"), press, again=press.button != IGNORE.identifier)


def ignored_key(repository_id: int, state: TargetState) -> str:
    """Return the key of the record of what is ignored; empty where the commit is no pull request's."""
    if state.pull_request is None:
        return ""
    return f"hardware-ignored:{repository_id}#{state.pull_request}:{state.about.lab}/{state.about.target}"


def as_record(ignored: Ignored, by: Person) -> dict[str, Any]:
    """Return what was chosen to be ignored as JSON values."""
    tests: dict[str, list[str]] = {}
    for suite, test in sorted(ignored.tests):
        tests.setdefault(suite, []).append(test)
    return {"by": ignored.by, "by_id": by.id, "sha": ignored.sha, "at": ignored.at, "tests": tests}


def read_ignored(record: Mapping[str, Any] | None) -> Ignored | None:
    """Read it back out of its record."""
    if record is None:
        return None
    stored = Payload(record, "hardware-ignored record")
    tests = frozenset((suite, test) for suite, tests in stored.at("tests").raw.items() for test in tests)
    return Ignored(stored.string("by"), stored.string("sha"), stored.string("at"), tests)


async def _findings(
    context: Context, results: Results, lab: Lab, asked: Asked, state: TargetState, ignored: Ignored | None
) -> Findings:
    about = asked.about
    candidates = {s: set(await context.results.baseline_candidates(about, s, asked.sha)) for s in state.suites}
    ancestors = await nearest(context, asked.sha, candidates)
    compared = {s: await _compared(context, state, found, ancestors.get(s, [])) for s, found in state.suites.items()}
    # Annotations alone need to know what files there are, and they are for new failures alone.
    files = None
    if any(told.comparison.new_failures for told in compared.values()):
        files = await context.results.files(context.github, context.repository.full_name, asked.sha)
    return Findings(
        state=state,
        compared=compared,
        files=files,
        contacts=lab.contacts,
        reproduce=lab.reproduce or "",
        ignored=ignored,
        over=asked.over or is_over(state, seconds(results.deadline), time.time()),
    )


async def _compared(context: Context, state: TargetState, suite: SuiteState, ancestors: Sequence[Baseline]) -> Compared:
    """Compare a suite with the nearest of its ancestors, and see with the next one what that confirms."""

    async def seen(ancestor: Baseline) -> Mapping[str, Seen]:
        return await context.results.seen(state.about, suite.suite, ancestor.sha)

    if not ancestors:
        return await asyncio.to_thread(compared_with, suite, None, None)
    before = await seen(ancestors[0])
    told = await asyncio.to_thread(compared_with, suite, ancestors[0], before)
    # What fails at a pull request's head and on the nightly branch before it is no news of the pull request.
    if len(ancestors) == 1 or not (state.mainline and told.comparison.still_failing):
        return told
    return await asyncio.to_thread(with_confirmed, told, suite, before, await seen(ancestors[1]))


def is_over(state: TargetState, deadline: float, now: float) -> bool:
    """Say whether what has not come of a commit has been waited for long enough; times are in seconds."""
    runs = [run for suite in state.suites.values() for run in (*suite.runs, *suite.waiting, *suite.broken)]
    return not state.complete and all(run.received_at + deadline < now for run in runs)


def compared_with(suite: SuiteState, baseline: Baseline | None, before: Mapping[str, Seen] | None) -> Compared:
    """Compare a suite with its baseline. Of what may still come, nothing is told as gone."""
    comparison = compare(suite.seen, before, exit_status=exit_status(suite))
    if not suite.complete:
        comparison = replace(comparison, gone=())
    return Compared(comparison, baseline)


def with_confirmed(
    told: Compared, suite: SuiteState, before: Mapping[str, Seen], earlier: Mapping[str, Seen]
) -> Compared:
    """Add which failures are confirmed by this run, its baseline (`before`) and the baseline's own (`earlier`)."""
    first = compare(before, earlier, exit_status=None)
    now = dict(told.comparison.renamed)
    runs = (
        Told(_renamed(_renamed(earlier, dict(first.renamed)), now)),
        Told(_renamed(before, now), mass=first.mass),
        Told(suite.seen, mass=told.comparison.mass),
    )
    return replace(told, confirmed=confirmed(runs))


def _renamed(seen: Mapping[str, Seen], names: Mapping[str, str]) -> Mapping[str, Seen]:
    return {names.get(test, test): one for test, one in seen.items()} if names else seen


def exit_status(suite: SuiteState) -> int | None:
    """Return the worst exit status of a suite's shards, each as its last run told it; None where none told.

    A negative one is a signal's, and worse than any other.
    """
    last = {run.claims.shard_index: run.claims.exit_status for run in suite.runs if run.claims is not None}
    told = [status for status in last.values() if status is not None]
    return max(told, key=lambda status: (status < 0, status), default=None)


async def nearest(context: Context, sha: str, candidates: Mapping[str, Collection[str]]) -> dict[str, list[Baseline]]:
    """Return for each suite the nearest ancestors among its candidates, the nearest first; suites without are missing.

    The commits come newest first (https://docs.github.com/en/rest/commits/commits#list-commits), a hundred a request.
    As many requests are made as it takes to find one ancestor of each suite; more ancestors are taken out of those.
    """
    wanted = {suite: found for suite, found in candidates.items() if found}
    ancestors: dict[str, list[Baseline]] = {}
    if not wanted:
        return ancestors
    url_vars = {"repo": context.repository.full_name, "sha": sha}
    async with aclosing(context.github.getiter(COMMITS, url_vars=url_vars)) as commits:
        looked_at = 0
        async for item in commits:
            commit = Payload(item, "commit")
            ancestor = commit.string("sha")
            for suite in [s for s, found in wanted.items() if ancestor in found and ancestor != sha]:
                found = ancestors.setdefault(suite, [])
                found.append(Baseline(ancestor, commit.string("html_url")))
                if len(found) == min(CONFIRMED_RUNS, len(wanted[suite])):
                    del wanted[suite]
            looked_at += 1
            page_ends = looked_at % PER_PAGE == 0
            if not wanted or looked_at == MOST_COMMITS or (page_ends and wanted.keys() <= ancestors.keys()):
                break
    return ancestors
