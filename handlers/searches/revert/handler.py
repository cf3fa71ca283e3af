"""Run the tests without a culprit, and open the draft that reverts it if they pass.

docs/decisions/draft-reverts.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.core.page_paths import search_path
from bot.core.utc import iso_utc
from bot.effects.issues import EnsureIssueSection
from bot.effects.pulls import ONE_PULL
from bot.effects.reverts import OPENED_REVERT, MergedPull, OpenRevert, existing_reverts, revert_title
from bot.github.commits.refs import first_parents
from bot.plan.effect import Effect
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from bot.plan.page_links import page_url
from handlers.device_tests.commit_jobs import request_commit_job
from handlers.device_tests.effects import FEW_TESTS_ENDED, NoteShownStep
from handlers.device_tests.model import ShownStep
from handlers.regressions.config import REGRESSIONS
from handlers.results.config import LAB_RESULTS
from handlers.searches.comments import PULLS
from handlers.searches.decide import MOST_RUNS
from handlers.searches.records import CULPRIT_SEARCH, AskedRun, CulpritSearch, SearchRunState
from handlers.searches.revert import texts
from handlers.searches.revert.decide import MOST_ATTEMPTS, repeats_without, reverted_pull, stage_after
from handlers.searches.revert.effects import (
    CheckRevert,
    CorrectDraft,
    MakeRevertedHead,
    RemoveRevertedHead,
    StoreRevert,
)
from handlers.searches.revert.records import (
    CULPRIT_REVERT,
    IN_WORK,
    REVERT_EVENT,
    REVERT_PURPOSE,
    REVERTED_HEAD,
    CulpritRevert,
    RevertEvent,
    RevertStage,
)
from handlers.searches.targets import idle_targets, named_target, settled_runs
from handlers.searches.texts import search_sentence

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery
    from bot.plan.outcome import EffectOutcomes

NAME, ENDED_RUN = "culprit-revert", "culprit-revert-runs"
_MAY_CHANGE = IN_WORK | {RevertStage.OPENED, RevertStage.FAILED, RevertStage.UNKNOWN}
"""The stages that results of the tests may change, late ones too."""

router = Router()


def accepts(delivery: Delivery, _: RepositoryConfig) -> bool:
    """Return whether a job without a culprit has ended."""
    return FEW_TESTS_ENDED.read(delivery.payload).purpose.startswith(REVERT_PURPOSE)


@router.on(FEW_TESTS_ENDED.name, name=ENDED_RUN, accepts=accepts, after_removal=True)
async def note_ended_tests(context: Context) -> Plan:
    """Look at the revert whose job has ended."""
    ended = FEW_TESTS_ENDED.read(context.delivery.payload)
    search_id = ended.purpose.removeprefix(REVERT_PURPOSE).partition(":")[0]
    revert = await context.records.get(CULPRIT_REVERT.of(context.repository.id, search_id))
    note, why = NoteShownStep(ended.lab, ended.job, int(ShownStep.ENDED)), texts.TESTS_ENDED.format(id=search_id)
    if revert is None:
        return Plan((note,), why=why)
    event = RevertEvent(search_id, revert.pull, f"job:{ended.job}:{ended.time}", context.delivery.received_at)
    return Plan((CheckRevert(event), note), why=why)


async def conclude_revert(context: Context, revert: CulpritRevert, outcomes: EffectOutcomes) -> Plan:
    """Look at the new head or the new draft, or say why there is none."""
    search = await context.records.get(CULPRIT_SEARCH.of(context.repository.id, revert.search))
    if outcomes.failures and search is not None:
        reason = outcomes.failures[0].text
        return _ended(context, search, replace(revert, stage=RevertStage.REFUSED, reason=reason))
    event = REVERT_EVENT.read(context.delivery.payload)
    return Plan((CheckRevert(replace(event, asked=f"after:{revert.step}")),), why=texts.CHECKS.format(id=revert.search))


@router.on(REVERT_EVENT.name, name=NAME, conclude=ConcludeStage(CulpritRevert, conclude_revert))
async def check_revert(context: Context) -> Plan:
    """Begin or continue the revert of a search's culprit, or withdraw that of a pull request that it names no more."""
    event, repository_id = REVERT_EVENT.read(context.delivery.payload), context.repository.id
    search = await context.records.get(CULPRIT_SEARCH.of(repository_id, event.id))
    revert = await context.records.get(CULPRIT_REVERT.of(repository_id, event.id))
    regressions = context.config.of(REGRESSIONS)
    not_named = Plan(why=texts.NOT_NAMED.format(id=event.id))
    if search is None or regressions is None or context.config.of(LAB_RESULTS) is None:
        return not_named
    pull = reverted_pull(search)
    if revert is not None and revert.pull != pull and revert.stage is not RevertStage.WITHDRAWN:
        return _withdrawn(context, search, revert, event)
    # Withdrawn when the search began again: now there is its answer.
    is_corrected = revert is not None and revert.pull != pull and search.answer is not None
    corrections = _corrections(search, revert) if revert is not None and is_corrected else ()
    if not pull or not regressions.revert:
        return replace(not_named, effects=corrections)
    if revert is None or revert.pull != pull:
        revert = CulpritRevert(search.id, pull, step=revert.step if revert else 0)
    elif revert.stage is RevertStage.WITHDRAWN and revert.is_own:
        opened = replace(revert, stage=RevertStage.OPENED)
        effects = (_stored(context, opened), CorrectDraft(revert.number), _section(search, opened))
        return Plan(effects, why=_why(opened))
    elif revert.stage is RevertStage.WITHDRAWN:
        revert = CulpritRevert(search.id, pull, step=revert.step)
    if revert.stage not in _MAY_CHANGE:
        return Plan(why=_why(revert))
    plan = await _continued(context, search, revert, event.at)
    return replace(plan, effects=(*corrections, *plan.effects))


async def _continued(context: Context, search: CulpritSearch, revert: CulpritRevert, moment: float) -> Plan:
    """Return the next step of a revert; `moment` is in seconds since 1970."""
    runs = await settled_runs(context, search, revert.runs, revert.purpose, moment)
    updated = replace(revert, runs=runs)
    if revert.stage not in IN_WORK and updated == revert:
        return Plan(why=_why(revert))
    stage = stage_after(updated.runs, search.request.tests)
    if stage is RevertStage.WAITING:
        return await _asked(context, search, replace(updated, stage=stage), moment)
    if stage is RevertStage.TESTING:
        changed = (_stored(context, updated),) if updated != revert else ()
        return Plan(changed, why=_why(updated))
    if stage is RevertStage.OPENED and not updated.is_own:
        return await _opened(context, search, updated)
    notice = texts.FAILS_WITHOUT.format(pull=revert.pull)
    is_wrong = stage is RevertStage.FAILED and updated.is_own
    correction = (CorrectDraft(revert.number, notice),) if is_wrong else ()
    return _ended(context, search, replace(updated, stage=stage), *correction)


async def _opened(context: Context, search: CulpritSearch, revert: CulpritRevert) -> Plan:
    """Open the draft, or note that it is there."""
    opened = await context.records.get(OPENED_REVERT.of(context.repository.id, revert.subject))
    if opened is not None:
        stage = RevertStage.OPENED if opened.is_own else RevertStage.EXISTS
        return _ended(context, search, replace(revert, stage=stage, number=opened.number, is_own=opened.is_own))
    pull = await _pull(context, revert.pull)
    url = page_url(context, search_path(context.repository.full_name, search.id))
    body = texts.draft_body(search, revert, context.repository.full_name, url)
    opening = OpenRevert(_merged(pull), revert_title(pull.text("title")), body, revert.subject)
    # The draft is there once GitHub says so.
    return _before(context, replace(revert, stage=RevertStage.TESTING), opening)


async def _asked(context: Context, search: CulpritSearch, revert: CulpritRevert, moment: float) -> Plan:
    """Run the tests if a device is idle; the head is made first, and only once a device can test it."""
    idle, is_stopped = await idle_targets(context, search.request.targets, revert.runs, moment)
    if is_stopped:
        return _ended(context, search, replace(revert, stage=RevertStage.UNKNOWN))
    made = await context.records.get(REVERTED_HEAD.of(context.repository.id, revert.subject))
    if made is None:
        return await _begun(context, search, revert, is_idle=bool(idle))
    revert = replace(revert, tip=made.tip, head=made.head)
    if not made.tip:
        reason = texts.NO_BASE.format(base=revert.base)
        return _ended(context, search, replace(revert, stage=RevertStage.REFUSED, reason=reason))
    if not made.head or made.is_same:
        stage = RevertStage.NOTHING if made.head else RevertStage.CONFLICT
        return _ended(context, search, replace(revert, stage=stage))
    return _tested(context, search, revert, idle, moment)


async def _begun(context: Context, search: CulpritSearch, revert: CulpritRevert, *, is_idle: bool) -> Plan:
    """Make the head without the culprit, unless somebody has reverted it or no device can test it now."""
    pull, answer = await _pull(context, revert.pull), search.answer
    assert answer is not None, "it names the pull request"
    existing = await existing_reverts(context.github, context.repository.full_name, context.me, _merged(pull))
    if existing:
        return _ended(context, search, replace(revert, stage=RevertStage.EXISTS, number=existing[0].number))
    if not is_idle:
        if revert.step:
            return Plan(why=_why(revert))
        return Plan((_stored(context, revert), _section(search, revert)), why=_why(revert))
    merged = search.sha_of(answer.first)
    before = await _commit_before(context, pull, merged)
    revert = replace(revert, base=pull.string("base", "ref"))
    if not before:
        reason = texts.NO_COMMIT_BEFORE.format(sha=merged[:7])
        return _ended(context, search, replace(revert, stage=RevertStage.REFUSED, reason=reason))
    message = texts.MESSAGE.format(pull=revert.pull, sha=merged)
    moment = iso_utc(search.ended_at)
    return _before(
        context,
        revert,
        MakeRevertedHead(revert.subject, revert.branch, revert.base, merged, before, message, moment),
    )


def _tested(context: Context, search: CulpritSearch, revert: CulpritRevert, idle: Sequence[str], moment: float) -> Plan:
    """Run the tests at the head on each idle target that has not given results and may be asked again."""
    request, targets = search.request, [run.target for run in revert.runs]
    with_results = {run.target for run in revert.runs if run.state is SearchRunState.RESULTS}
    repeat, answer = repeats_without(search), search.answer
    assert answer is not None, "it names the pull request"
    new_runs = tuple(
        AskedRun(number, answer.first, target, repeat, moment)
        for number, target in enumerate(
            (name for name in idle if name not in with_results and targets.count(name) < MOST_ATTEMPTS),
            start=len(revert.runs) + 1,
        )
    )
    jobs = [
        request_commit_job(
            named_target(context, run.target),
            revert.head,
            request.tests,
            run.repeat,
            texts.REASON.format(pull=revert.pull, id=search.id),
            key=revert.purpose(run.number),
            suites=(request.suite,),
            moment=moment,
        )
        for run in new_runs
    ]
    stage = RevertStage.TESTING if jobs else RevertStage.WAITING
    revert = replace(revert, stage=stage, runs=(*revert.runs, *new_runs))
    return Plan((_stored(context, revert), *jobs, _section(search, revert)), why=_why(revert))


def _before(context: Context, revert: CulpritRevert, effect: Effect) -> Plan:
    """Return a plan whose conclusion looks at the revert again, once an effect has stored what it did."""
    stored = replace(revert, step=revert.step + 1)
    effects = (StoreRevert.of(context.repository.id, stored), effect)
    return Plan(effects, why=_why(revert), conclusion_basis=stored)


def _ended(context: Context, search: CulpritSearch, revert: CulpritRevert, *effects: Effect) -> Plan:
    """Return the plan that stores the last stage, and says it in the issue; the branch of the tests is deleted."""
    removal = (RemoveRevertedHead(revert.subject, revert.branch, revert.pull),) if revert.base else ()
    return Plan((_stored(context, revert), *effects, *removal, _section(search, revert)), why=_why(revert))


def _withdrawn(context: Context, search: CulpritSearch, revert: CulpritRevert, event: RevertEvent) -> Plan:
    """Close the draft of a pull request that the search names no more; then look at the one that it names now."""
    withdrawn = replace(revert, stage=RevertStage.WITHDRAWN)
    effects: tuple[Effect, ...] = _corrections(search, revert)
    if pull := reverted_pull(search):
        effects = (*effects, CheckRevert(replace(event, pull=pull, asked=f"{event.asked}:next")))
    return _ended(context, search, withdrawn, *effects)


def _corrections(search: CulpritSearch, revert: CulpritRevert) -> tuple[CorrectDraft, ...]:
    """Return the effect that closes our draft, and says why: what its search says now."""
    text = texts.SEARCHES_AGAIN if search.answer is None else texts.CORRECTED
    reason = text.format(pull=revert.pull, answer=search_sentence(search, MOST_RUNS))
    return (CorrectDraft(revert.number, reason),) if revert.is_own else ()


async def _pull(context: Context, number: int) -> Payload:
    url_vars = {"repo": context.repository.full_name, "number": str(number)}
    return Payload(await context.github.getitem(ONE_PULL, url_vars=url_vars), "pull_request")


def _merged(pull: Payload) -> MergedPull:
    return MergedPull(pull.integer("number"), pull.string("head", "ref"), pull.string("base", "ref"))


async def _commit_before(context: Context, pull: Payload, merged: str) -> str:
    """Return the commit before a pull request was merged, along first parents; empty if there is none.

    A merge commit and a squash are one commit. If the pull request was rebased, the commit before `merged` is its own
    too, and it has as many as its head had.
    """
    repository, count = context.repository.full_name, pull.integer("commits")
    commits = await first_parents(context.github, repository, merged, at_least=count + 1)
    if count > 1 and len(commits) > 1:
        url_vars = {"repo": repository, "sha": commits[1].sha}
        of_parent = await context.github.getitem(PULLS, url_vars=url_vars)
        if pull.integer("number") not in [Payload(item, "pull_request").integer("number") for item in of_parent]:
            count = 1
    depth = max(1, count)
    return commits[depth].sha if len(commits) > depth else ""


def _stored(context: Context, revert: CulpritRevert) -> StoreRevert:
    return StoreRevert.of(context.repository.id, replace(revert, step=revert.step + 1))


def _section(search: CulpritSearch, revert: CulpritRevert) -> EnsureIssueSection:
    return EnsureIssueSection(search.issue, f"{REVERT_PURPOSE}{search.id}", texts.revert_section(revert))


def _why(revert: CulpritRevert) -> str:
    return texts.STAGE.format(id=revert.search, stage=revert.stage.value)
