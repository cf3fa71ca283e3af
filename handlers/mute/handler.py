"""Open the pull request that mutes a test: one more item in `.github/nightjar.yaml` on the default branch.

Each test on a target has a branch of its own, so that a person can merge one and close another. While its pull request
is open, a further request names it and changes nothing. When the file changes on the default branch, as by the merge of
another one, all open pull requests begin at its newest commit, so that none of them conflicts.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.config.faults import ConfigError
from bot.config.repository_file import parse_repository_file
from bot.config.shared import PATH
from bot.core.errors import RefusedToPerson
from bot.core.events import Payload
from bot.core.page_paths import history_path
from bot.effects.pulls import OURS, PULL_BRANCH, EnsurePull
from bot.effects.remember import StoreRecord
from bot.github.commits.contents import found_at
from bot.github.commits.pushed_files import may_change_on_default
from bot.github.commits.refs import branch_head
from bot.github.limits.ranks import Rank
from bot.github.pull_heads import head_of
from bot.github.repositories.in_force import read_found
from bot.github.text.markdown import code, escape, plain, truncate
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, ConcludeStage, Context, Plan, Router
from bot.plan.outcome import EffectOutcomes
from bot.plan.page_links import page_url
from bot.results.settings.quarantine import QuarantinedTest
from handlers.mute import texts
from handlers.mute.config import MUTE
from handlers.mute.edit import has_item, with_item
from handlers.mute.records import MUTE_EVENT, MUTED_TEST, MuteOutcome, MuteRequest

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery

NAME, REFRESH_NAME = "mute", "mute-refresh"
MOST_OPEN = 20
"""The most open pull requests that begin at a newer commit after a push."""
LONGEST_TITLE = 150

router = Router()


def item_of(request: MuteRequest) -> QuarantinedTest:
    """Return the item of `quarantine` that a request asks for. Raises pydantic's `ValidationError`."""
    values = {name: getattr(request, name) for name in ("test", "owner", "reason", "issue", "until")}
    targets = {"targets": (request.target,)} if request.target else {}
    return QuarantinedTest.model_validate({**values, **targets})


async def report_failure(context: Context, message: str) -> Plan:
    """Show on the page of the test why there is no pull request."""
    request = MUTE_EVENT.read(context.delivery.payload)
    return Plan((_stored(context, MuteOutcome(request, problem=message)),), why=message)


async def conclude_mute(context: Context, request: MuteRequest, outcomes: EffectOutcomes) -> Plan:
    """Show on the page of the test why there is no pull request; the number of one is in the record of its branch."""
    if not outcomes.failures:
        return NOTHING
    reason = texts.FAILED.format(reason=outcomes.failures[0].text)
    return Plan((_stored(context, MuteOutcome(request, problem=reason)),), why=reason)


@router.on(MUTE_EVENT.name, name=NAME, on_failure=report_failure, conclude=ConcludeStage(MuteRequest, conclude_mute))
async def propose_mute(context: Context) -> Plan:
    """Read the file on the default branch, and propose it with one more item."""
    request, repository = MUTE_EVENT.read(context.delivery.payload), context.repository.full_name
    settings = context.app_config.repository(repository)
    if settings is None or not settings.of(MUTE):
        raise RefusedToPerson(texts.OFF)
    if number := await _open_pull(context, request):
        outcome = MuteOutcome(request, number, earlier=True)
        return Plan((_stored(context, outcome),), why=texts.ALREADY_OPEN.format(number=number))
    payload = Payload(await context.github.getitem("/repos/{+repo}", url_vars={"repo": repository}), "repository")
    branch = payload.string("default_branch")
    base_sha = await branch_head(context.github, repository, branch)
    if base_sha is None:
        raise RefusedToPerson(texts.NO_BRANCH.format(branch=branch))
    text, faults = await read_found(await found_at(context.github, repository, PATH, base_sha), settings)
    if faults:
        raise RefusedToPerson(texts.FILE_FAULTY.format(path=PATH, branch=branch, fault=faults[0]))
    ensure = _proposal(context, request, settings, branch, base_sha, text)
    test = plain(truncate(request.test, LONGEST_TITLE))
    reason = texts.PROPOSED.format(login=request.login, person=request.person, test=test, until=request.until)
    return Plan((ensure,), why=reason, conclusion_basis=request, rank=Rank.WRITER)


def _may_conflict(delivery: Delivery, config: RepositoryConfig) -> bool:
    return config.of(MUTE) and may_change_on_default(delivery.payload, PATH)


@router.on("push", name=REFRESH_NAME, accepts=_may_conflict)
async def refresh_proposals(context: Context) -> Plan:
    """Begin each open proposal at the newest commit, with its item in the file of that commit.

    All items are added at the same place, so that every other proposal conflicts once one of them is merged.
    """
    payload, settings = context.delivery.payload, context.app_config.repository(context.repository.full_name)
    requests = await _open_requests(context)
    if settings is None or not requests:
        return NOTHING
    repository, branch = context.repository.full_name, payload.string("repository", "default_branch")
    # Webhooks arrive in any order, so the push may be an old one.
    base_sha = await branch_head(context.github, repository, branch)
    if base_sha is None:
        return NOTHING
    text, faults = await read_found(await found_at(context.github, repository, PATH, base_sha), settings)
    if faults:
        return Plan(why=texts.FILE_FAULTY.format(path=PATH, branch=branch, fault=faults[0]))
    proposals = list[Effect]()
    for request in requests:
        # The push may be its own merge, whose other webhook is still to come.
        if not has_item(text, item_of(request)):
            with suppress(RefusedToPerson):
                proposals.append(_proposal(context, request, settings, branch, base_sha, text))
    return Plan(tuple(proposals), why=texts.REFRESHED.format(count=len(proposals), path=PATH))


async def _open_requests(context: Context) -> list[MuteRequest]:
    """Return the requests whose pull requests are open and ours, at most `MOST_OPEN`."""
    repository_id, today = context.repository.id, f"{datetime.now(UTC).date()}"
    outcomes = await context.records.under(MUTED_TEST, repository_id)
    newest = sorted(outcomes.values(), key=lambda outcome: outcome.request.at, reverse=True)
    requests = list[MuteRequest]()
    for outcome in [outcome for outcome in newest if outcome.request.until >= today and not outcome.problem]:
        request = outcome.request
        branch = await context.records.get(PULL_BRANCH.of(repository_id, request.branch))
        if branch is None or not branch.number or branch.at != request.at:
            continue
        head = await head_of(context.records, repository_id, branch.number)
        if head is not None and head.is_open:
            requests.append(request)
        if len(requests) == MOST_OPEN:
            break
    return requests


def _proposal(
    context: Context, request: MuteRequest, settings: RepositoryConfig, branch: str, base_sha: str, text: str
) -> EnsurePull:
    """Return the pull request that adds the item of a request to the text of the file at a commit of a branch.

    Raises `RefusedToPerson` if the file does not allow it.
    """
    content = with_item(text, item_of(request))
    if content is None:
        raise RefusedToPerson(texts.NOT_IN_PLACE.format(path=PATH))
    try:
        parse_repository_file(content.encode(), type(settings), config=settings)
    except ConfigError as error:
        raise RefusedToPerson(texts.NOT_VALID_THEN.format(path=PATH, fault=error.faults[0])) from error
    title = texts.TITLE.format(test=plain(truncate(request.test, LONGEST_TITLE)), until=request.until)
    return EnsurePull(
        branch=request.branch,
        base=branch,
        at=request.at,
        base_sha=base_sha,
        path=PATH,
        content=content,
        # A person may have closed an earlier proposal of this test: this one is another.
        key=f"{request.digest}:{int(''.join(filter(str.isdigit, request.at)))}",
        title=title,
        body=_body(context, request),
        message=f"{title}\n\n{plain(request.reason)}",
    )


def _body(context: Context, request: MuteRequest) -> str:
    url = page_url(context, history_path(context.repository.full_name, request.test, request.target))
    return texts.BODY.format(
        until=request.until,
        test=code(request.test),
        targets=code(request.target) if request.target else texts.ALL_TARGETS,
        owner=escape(request.owner),
        reason=escape(request.reason),
        issue=request.issue,
        login=escape(request.login),
        person=request.person,
        page=texts.PAGE.format(url=url) if url else "",
        path=PATH,
    )


def _stored(context: Context, outcome: MuteOutcome) -> StoreRecord:
    return StoreRecord.of(MUTED_TEST.of(context.repository.id, outcome.request.digest), outcome)


async def _open_pull(context: Context, request: MuteRequest) -> int:
    """Return the number of the open pull request of a test, 0 if there is none."""
    owner = context.repository.full_name.partition("/")[0]
    url_vars = {"repo": context.repository.full_name, "head": f"{owner}:{request.branch}", "state": "open"}
    pulls = [Payload(pull, "pull_request") for pull in await context.github.getitem(OURS, url_vars=url_vars)]
    return next((pull.integer("number") for pull in pulls), 0)
