"""Request and cancel tests because of pushes, labels and titles.

A push cancels waiting tests of the old head. Targets of tier 1 test every push that changes their files; for other
targets, a request is repeated for the new head only if the target is `sticky`. A label requests its target for the
current head, and so does a tag in the title, as in `[hexagon-v73] Fix it`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from bot.commands.dialogue import WRITERS
from bot.core.events import Payload, PullRequestEvent
from bot.core.listing import counted
from bot.github.commits.workflow_files import MOST_PULL_FILES, PULL_FILES
from bot.github.pull_heads import head_of
from bot.github.repositories.permissions import role_of
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from handlers.device_tests import texts
from handlers.device_tests.availability import Availability
from handlers.device_tests.effects import CancelDeviceJobs
from handlers.device_tests.model import DeviceJob, DeviceJobState, JobEnd, JobOrigin, Someone
from handlers.device_tests.reproduce.handler import repeat_offers
from handlers.device_tests.requesting import JobRequest, answer_request, requested_job
from handlers.device_tests.store import JOBS
from handlers.device_tests.targets import (
    RequestTarget,
    labeled_targets,
    pushed_targets,
    request_targets,
    tagged_targets,
)
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery, PullRequest
    from bot.github.client import GitHub

NAME = "device-jobs"
KEY = "results"
AUTHORS_PUSHES = ("opened", "synchronize")
PUSHES = (*AUTHORS_PUSHES, "reopened")
OLD_TITLE = ("changes", "title", "from")

router = Router()


def accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Return whether the event may matter: a target accepts requests, and a label or a changed title names it."""
    targets = request_targets(config.of(LAB_RESULTS))
    if delivery.action in ("labeled", "unlabeled"):
        return bool(labeled_targets(targets, delivery.payload.text("label", "name")))
    if delivery.action == "edited":
        titles = (delivery.payload.text(*OLD_TITLE), delivery.payload.text("pull_request", "title"))
        return delivery.payload.has(*OLD_TITLE) and any(tagged_targets(targets, title) for title in titles)
    return bool(targets)


@router.on("pull_request", *PUSHES, "edited", "labeled", "unlabeled", "closed", name=NAME, feature=KEY, accepts=accepts)
async def follow_pull_request(context: Context) -> Plan:
    """Plan to cancel the tests that the event makes obsolete, and to request new ones."""
    event, targets = PullRequestEvent.of(context.delivery.payload), request_targets(context.config.of(LAB_RESULTS))
    availability = await Availability.of(context)
    able, paused = availability.accepting(targets), availability.paused
    pull, label = event.pull, context.delivery.payload.text("label", "name")
    match event.action:
        case "closed":
            return Plan((CancelDeviceJobs(pull.number, JobEnd.CLOSED.value),), why=texts.WHY_CLOSED)
        case "unlabeled":
            end = JobEnd.BY_PERSON.value
            # A command is a separate request, and may be another person's.
            cancelled = [
                CancelDeviceJobs(pull.number, end, only=target.full_name, but_commands=True)
                for target in labeled_targets(targets, label)
            ]
            return Plan(tuple(cancelled), why=label)
        case "labeled":
            if not pull.is_open:
                return NOTHING
            # A label has no reply, so a refused request becomes a job whose check run has the reason (`REFUSED_ENDS`).
            return await _request_named(context, event, labeled_targets(targets, label), able, paused)
        case "edited":
            return await _follow_title(context, event, targets, able, paused)
        case _:
            pushed = await _targets_of_push(context, pull, able)
            plan = await _request(context, event, pushed, JobOrigin.PUSH)
            # A lab may upload results of a commit that was the head when it got the job, so running tests go on.
            cancel = CancelDeviceJobs(pull.number, JobEnd.PUSHED.value, other_than=pull.head_sha)
            if event.action != "opened":
                jobs = await context.part(JOBS).of_pull(context.repository.id, pull.number)
                return Plan((cancel, *plan.effects, *repeat_offers(context, jobs, pull.head_sha)), why=plan.why)
            names = {target.full_name for target in pushed}
            tagged = [target for target in tagged_targets(targets, pull.title) if target.full_name not in names]
            named = await _request_named(context, event, tagged, able, paused)
            return Plan((cancel, *plan.effects, *named.effects), why=plan.why)


async def _follow_title(
    context: Context,
    event: PullRequestEvent,
    targets: Sequence[RequestTarget],
    able: Sequence[RequestTarget],
    paused: Collection[str],
) -> Plan:
    """Request the targets whose tags were added to the title, and cancel the requests of tags that were removed."""
    pull = event.pull
    if not pull.is_open:
        return NOTHING
    earlier = tagged_targets(targets, context.delivery.payload.text(*OLD_TITLE))
    tagged = tagged_targets(targets, pull.title)
    end = JobEnd.BY_PERSON.value
    cancelled = [
        CancelDeviceJobs(pull.number, end, only=target.full_name, but_commands=True)
        for target in earlier
        if target not in tagged
    ]
    plan = await _request_named(context, event, [target for target in tagged if target not in earlier], able, paused)
    return Plan((*cancelled, *plan.effects), why=plan.why)


async def _request_named(
    context: Context,
    event: PullRequestEvent,
    named: Sequence[RequestTarget],
    able: Sequence[RequestTarget],
    paused: Collection[str],
) -> Plan:
    """Request the targets that a label or a title names, of those that accept requests now (`able`).

    `paused` has the targets that are paused; others that accept none are degraded. There is no reply to a label or a
    title, so a refused request becomes a job whose check run has the reason (`REFUSED_ENDS`).
    """
    names, able_names = {target.full_name for target in named}, {target.full_name for target in able}
    allowed = [target for target in able if target.full_name in names]
    refused = [
        (target, JobEnd.PAUSED if target.full_name in paused else JobEnd.DEGRADED)
        for target in named
        if target.full_name not in able_names
    ]
    return await _request(context, event, allowed, JobOrigin.LABEL, refused)


async def _targets_of_push(
    context: Context, pull: PullRequest, targets: Sequence[RequestTarget]
) -> list[RequestTarget]:
    """Return the targets that test this head without a new request."""
    # The list of changed files costs a request for each hundred files, so the bot reads it only if a target needs it.
    changed: list[str] | None = []
    if any(target.settings.paths for target in pushed_targets(targets, None)):
        changed = await _changed_files(context.github, context.repository.full_name, pull.number)
    pushed = {target.full_name: target for target in pushed_targets(targets, changed)}
    sticky = {target.full_name: target for target in targets if target.settings.sticky}
    if sticky:
        jobs = await context.part(JOBS).of_pull(context.repository.id, pull.number)
        pushed |= {name: sticky[name] for name in lasting_requests(jobs) if name in sticky}
    return list(pushed.values())


def lasting_requests(jobs: Iterable[DeviceJob]) -> list[str]:
    """Return the targets whose newest request was not cancelled, as LAB/TARGET; `jobs` are oldest first."""
    newest = {job.about.full_name: job for job in jobs if not job.purpose}
    return [name for name, job in newest.items() if not _is_cancelled(job)]


def _is_cancelled(job: DeviceJob) -> bool:
    return job.state is DeviceJobState.CANCELLED and job.end is JobEnd.BY_PERSON


async def _request(
    context: Context,
    event: PullRequestEvent,
    targets: Sequence[RequestTarget],
    origin: JobOrigin,
    refused: Sequence[tuple[RequestTarget, JobEnd]] = (),
) -> Plan:
    """Request tests of the head for the person who pushed or labeled; `refused` accept none now.

    If the budget is used up, a push requests nothing. A person who set a label reads the reason in the check run.
    """
    if not targets and not refused:
        return Plan(why=texts.WHY_NOTHING_REQUESTED)
    pull = event.pull
    request = JobRequest(
        number=pull.number,
        sha=pull.head_sha,
        origin=origin,
        requested_by=Someone(event.sender.id, event.sender.login),
        requested_at=context.delivery.received_at,
        approval_needed=not await _may_approve(context, event, origin),
    )
    store, repository = context.part(JOBS), context.repository.id
    answers = [await answer_request(store, repository, request, target) for target in targets]
    effects: list[Effect] = [answer.effect for answer in answers if answer.effect]
    effects += [requested_job(request, target, refused=end) for target, end in refused]
    why = texts.WHY_PUSHED.format(targets=counted(len(effects), "target"), sha=pull.head_sha[:7])
    return Plan(tuple(effects), why=why)


async def _may_approve(context: Context, event: PullRequestEvent, origin: JobOrigin) -> bool:
    """Return whether the request needs no approval: its author has the write role and saw this head."""
    pull = event.pull
    if origin is JobOrigin.PUSH and not sender_vouches(event):
        return False
    if await role_of(context.github, context.repository.full_name, event.sender) not in WRITERS:
        return False
    if origin is JobOrigin.PUSH:
        return True
    # A person who sets a label may see an older head; the payload has the head at the time of the webhook.
    head = await head_of(context.records, context.repository.id, pull.number)
    return head is not None and head.sha == pull.head_sha and not head.may_follow(pull.updated_at)


def sender_vouches(event: PullRequestEvent) -> bool:
    """Return whether a sender with the write role vouches for the head of a push. Pure.

    Only people with that role push to a branch of the repository itself. The branch of a fork may have commits of
    anybody. A person who reopens the pull request, updates its branch or commits a suggestion may not have read them.
    """
    pull = event.pull
    if pull.head_repository_id and pull.head_repository_id == pull.repository_id:
        return True
    return event.sender.id == pull.author.id and event.action in AUTHORS_PUSHES


async def _changed_files(github: GitHub, repository: str, number: int) -> list[str] | None:
    """Return the files that a pull request changes, with their former names; None if GitHub does not list all."""
    # Former names count: a file that moves out of a target's folder changes that folder too.
    names, listed = list[str](), 0
    async for entry in github.getiter(PULL_FILES, url_vars={"repo": repository, "number": str(number)}):
        file, listed = Payload(entry, "changed file"), listed + 1
        names += [name for key in ("filename", "previous_filename") if (name := file.text(key))]
    return names if listed < MOST_PULL_FILES else None
