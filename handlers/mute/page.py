"""`/r/{owner}/{repo}/mute`: the form that mutes a test, the last request, and the lines to add by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

from nightjar_formats.model import TargetKey
from pydantic import BaseModel, Field, StringConstraints

from bot.config.own_file import REPOSITORY_FILE
from bot.config.shared import PATH
from bot.effects.pulls import PULL_BRANCH
from bot.github.pull_heads import repository_id_of
from bot.github.repositories.in_force import config_in_force
from bot.results.compare.quarantine import quarantine_at
from bot.results.settings.quarantine import QuarantinedTest
from bot.web.answers import AnswerPart
from bot.web.page_routes import Page, PageRequest
from handlers.mute import texts
from handlers.mute.config import MUTE
from handlers.mute.edit import KEY, item_lines
from handlers.mute.records import MUTED_TEST, MuteOutcome, digest_of
from handlers.results.config import LAB_RESULTS, QUARANTINE, configured_targets

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.engine.records import Records
    from bot.feature import Services

FIRST_DAYS, MOST_DAYS = 7, 90
"""Days from today: what the form proposes, and the longest mute."""
TARGET = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}/[A-Za-z0-9][A-Za-z0-9._@:-]{0,63}$"
APP_YAML = "app.yaml"


class MuteQuery(BaseModel, extra="forbid"):
    """The test to mute."""

    id: Annotated[str, StringConstraints(max_length=4000)] = Field(description="The test's ID.")
    target: Annotated[str, StringConstraints(pattern=TARGET)] | None = Field(
        default=None, description="Only on this target, as LAB/TARGET."
    )


class CurrentMute(BaseModel, extra="forbid"):
    """The item of `quarantine` that names the test today."""

    owner: str
    reason: str
    issue: str
    until: str = Field(description="The last day (UTC), as YYYY-MM-DD.")


class LastRequest(BaseModel, extra="forbid"):
    """The last request to mute the test on this target from its page."""

    login: str
    requested_at: datetime
    until: str
    reason: str
    pull: int = Field(description="The pull request that mutes it; 0 if there is none.")
    is_opening: bool = Field(description="Whether the pull request is being opened.")
    problem: str = Field(description="Why there is no pull request; empty if there is one, or if it is being opened.")


class MutePage(BaseModel, extra="forbid"):
    """Whether a test is muted, and how to mute it."""

    answer: list[AnswerPart]
    id: str
    target: str = Field(description="As LAB/TARGET; empty for all targets.")
    targets: list[str] = Field(description="The targets on which it can be muted.")
    is_on: bool = Field(description="Whether people with the write role can open the pull request here (`mute`).")
    current_mute: CurrentMute | None
    last_request: LastRequest | None
    today: date
    proposed_day: date = Field(description="The last day that the form proposes.")
    last_day: date = Field(description="The latest day until which a test can be muted from here.")
    file: str = Field(description="The file to which the lines can be added by hand.")
    lines: str = Field(description="The lines to add by hand, with examples to replace.")


def mute_page(services: Services, github: str) -> Page:
    """Return the page that mutes a test; `github` is the address of GitHub's own pages."""

    async def load(request: PageRequest) -> MutePage:
        name, settings = await settings_of(services, request.repository)
        test, target = request.query.id, request.query.target or ""
        moment = services.now()
        repository_id = await repository_id_of(services.records, name)
        outcome = None
        if repository_id is not None:
            outcome = await _outcome(services.records, repository_id, digest_of(test, target))
        current = _current_mute(settings, name, test, target, moment)
        today = datetime.fromtimestamp(moment, UTC).date()
        in_file = settings.of(REPOSITORY_FILE)
        return MutePage(
            answer=_answer(f"{github}/{name}", current, outcome),
            id=test,
            target=target,
            targets=configured_targets(settings),
            is_on=settings.of(MUTE),
            current_mute=current,
            last_request=_last_request(outcome),
            today=today,
            proposed_day=today + timedelta(days=FIRST_DAYS),
            last_day=today + timedelta(days=MOST_DAYS),
            file=PATH if in_file else APP_YAML,
            lines=_lines(name, test, target, f"{today + timedelta(days=FIRST_DAYS)}", github),
        )

    return Page(
        path="/r/{owner}/{repo}/mute",
        api_path="/api/v1/repos/{owner}/{repo}/mute",
        summary="Whether a test is muted, and how to mute it",
        template="mute.html",
        model=MutePage,
        query=MuteQuery,
        load=load,
    )


async def settings_of(services: Services, repository: str) -> tuple[str, RepositoryConfig]:
    """Return a repository's name as in app.yaml, and its settings in force.

    Raises LookupError if app.yaml does not list it, or it has no labs.
    """
    name = services.config.configured.name_of(repository)
    settings = await config_in_force(services.config, services.records, name) if name is not None else None
    if name is None or settings is None or settings.of(LAB_RESULTS) is None:
        raise LookupError(repository)
    return name, settings


async def _outcome(records: Records, repository_id: int, digest: str) -> MuteOutcome | None:
    """Return the last request about a test, with the number of its pull request if there is one."""
    outcome = await records.get(MUTED_TEST.of(repository_id, digest))
    if outcome is None or outcome.pull or outcome.problem:
        return outcome
    branch = await records.get(PULL_BRANCH.of(repository_id, outcome.request.branch))
    is_opened = branch is not None and branch.at == outcome.request.at
    return replace(outcome, pull=branch.number) if branch is not None and is_opened else outcome


def _current_mute(settings: RepositoryConfig, name: str, test: str, target: str, moment: float) -> CurrentMute | None:
    """Return the item that names the test on the target, or on all targets if the page is about all."""
    items = settings.of(QUARANTINE)
    if target:
        lab, _, device = target.partition("/")
        active, _ = quarantine_at(items, TargetKey(name, lab, device), moment)
    else:
        active, _ = quarantine_at([item for item in items if not item.targets], TargetKey(name, "", ""), moment)
    item = active.of(test)
    return CurrentMute(owner=item.owner, reason=item.reason, issue=item.issue, until=item.until) if item else None


def _last_request(outcome: MuteOutcome | None) -> LastRequest | None:
    if outcome is None:
        return None
    request = outcome.request
    return LastRequest(
        login=request.login,
        requested_at=datetime.fromisoformat(request.at),
        until=request.until,
        reason=request.reason,
        pull=outcome.pull,
        is_opening=not outcome.pull and not outcome.problem,
        problem=outcome.problem,
    )


def _answer(repository: str, current: CurrentMute | None, outcome: MuteOutcome | None) -> list[AnswerPart]:
    state = (
        [AnswerPart(text=texts.MUTED.format(until=current.until)), AnswerPart(text=current.reason, href=current.issue)]
        if current
        else [AnswerPart(text=texts.NOT_MUTED)]
    )
    if outcome is None or outcome.problem:
        return [*state, AnswerPart(text=texts.ENDED)]
    if not outcome.pull:
        return [*state, AnswerPart(text=texts.WAITS)]
    proposal = texts.EARLIER if outcome.earlier else texts.OPENED.format(login=outcome.request.login)
    pull = AnswerPart(text=texts.PULL.format(number=outcome.pull), href=f"{repository}/pull/{outcome.pull}")
    return [*state, AnswerPart(text=proposal), pull, AnswerPart(text=texts.ENDED if current else texts.MERGE_IT)]


def _lines(name: str, test: str, target: str, until: str, github: str) -> str:
    item = QuarantinedTest.model_construct(
        test=test,
        targets=(target,) if target else (),
        owner=texts.EXAMPLE_OWNER,
        reason=texts.EXAMPLE_REASON,
        issue=f"{github}/{name}/issues/1",
        until=until,
    )
    return "\n".join([f"{KEY}:", *item_lines(item)])
