"""The button that mutes a test: checks the form and the person's role, then requests the pull request."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from aiohttp import web
from gidgethub import GitHubException
from pydantic import ValidationError

from bot.config.types import Says
from bot.core.aliases import STAR
from bot.core.errors import TryAgain
from bot.core.events import Person, Repository
from bot.core.page_paths import view_path
from bot.engine.internal import announce
from bot.github.limits.ranks import Rank, ranked
from bot.github.pull_heads import repository_id_of
from bot.github.repositories.permissions import ROLES, role_of
from bot.results.settings.quarantine import QuarantinedTest
from bot.web.openapi import Operation, ResponseSchema, problem
from bot.web.pages import PAGES
from bot.web.problems import Problem
from bot.web.repositories import PARAMETERS, repository_of
from bot.web.sign_in.viewers import RETRY_SECONDS
from bot.web.texts import NO_PAGE
from handlers.mute import texts
from handlers.mute.config import MUTE
from handlers.mute.handler import item_of
from handlers.mute.page import MOST_DAYS, settings_of
from handlers.mute.records import MUTE_EVENT, MUTED_TEST, MuteOutcome, MuteRequest
from handlers.results.config import configured_targets

if TYPE_CHECKING:
    from bot.feature import Services

LEAST_ROLE = "write"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def mute_operation(services: Services, github: str) -> Operation:
    """Return the route of the button; `github` is the address of GitHub's own pages."""

    async def mute(request: web.Request) -> web.StreamResponse:
        pages = request.app[PAGES]
        pages.admit(request)
        _, form = await pages.viewers.sent_form(request)
        try:
            name, settings = await settings_of(services, repository_of(request))
        except LookupError:
            raise Problem(404, NO_PAGE) from None
        if not settings.of(MUTE):
            raise Problem(403, texts.MUTE_OFF)
        person = await _writer(services, request, name)
        mute_request = _read_form(form, configured_targets(settings), f"{github}/{name}", person, services.now())
        repository_id = await repository_id_of(services.records, name)
        if repository_id is None:
            raise Problem(404, NO_PAGE)
        log.info("mute requested", repository=name, test=mute_request.test, person=person.id, login=person.login)
        await services.records.put(MUTED_TEST.of(repository_id, mute_request.digest), MuteOutcome(mute_request))
        await announce(services.announce, MUTE_EVENT, Repository(repository_id, name, None), mute_request)
        page = view_path(name, "mute", id=mute_request.test, target=mute_request.target)
        return web.Response(status=303, headers={"Location": page, "Cache-Control": "no-store"})

    return Operation(
        "POST",
        "/r/{owner}/{repo}/mute",
        "Request the pull request that mutes a test, for people with the write role",
        mute,
        {
            303: ResponseSchema("Redirects to the page, which shows the pull request", media_type="text/html"),
            400: problem("A field of the form is invalid"),
            403: problem("The sender may not do this, or the form was not sent from these pages"),
            404: problem("There is nothing at this address, or the sender is not signed in"),
            503: problem("GitHub did not say which role the sender has"),
        },
        PARAMETERS,
    )


async def _writer(services: Services, request: web.Request, repository: str) -> Person:
    """Return the sender as GitHub knows them now. Raises `Problem` if their role does not let them push a branch."""
    try:
        person = await request.app[PAGES].viewers.current(request)
        if person is None:
            raise Problem(404, NO_PAGE)
        with ranked(Rank.EVENT):
            role = await role_of(await services.github_for(repository), repository, person)
    except (TryAgain, GitHubException) as error:
        raise Problem(503, texts.NOT_KNOWN, headers={"Retry-After": str(RETRY_SECONDS)}) from error
    if role not in ROLES or ROLES.index(role) < ROLES.index(LEAST_ROLE):
        raise Problem(403, texts.NEEDS_WRITE.format(repository=repository, login=person.login, role=role))
    return person


def _read_form(
    form: Mapping[str, str], targets: list[str], repository: str, person: Person, moment: float
) -> MuteRequest:
    """Return the request in a form; `repository` is its page on GitHub. Raises `Problem` 400 that names the field."""
    fields = {name: form.get(name, "").strip() for name in ("test", "target", "owner", "reason", "issue", "until")}
    number = fields["issue"].removeprefix("#")
    if number.isascii() and number.isdecimal():
        fields["issue"] = f"{repository}/issues/{number[:18]}"
    pressed_at = datetime.fromtimestamp(moment, UTC)
    mute_request = MuteRequest(
        **fields, person=person.id, login=person.login, at=pressed_at.isoformat(timespec="microseconds")
    )
    today = pressed_at.date()
    last_day = today + timedelta(days=MOST_DAYS)
    try:
        item = item_of(mute_request)
    except ValidationError as error:
        field = str(error.errors()[0]["loc"][0])
        raise _refusal(field, _meaning(field)) from None
    if item.test.endswith(STAR):
        raise _refusal("test", texts.STAR)
    if mute_request.target and mute_request.target not in targets:
        raise _refusal("targets", texts.UNKNOWN_TARGET)
    if not today <= date.fromisoformat(item.until) <= last_day:
        raise _refusal("until", texts.BAD_DAY.format(first=today, last=last_day))
    return mute_request


def _refusal(field: str, meaning: str) -> Problem:
    return Problem(400, texts.BAD_FIELD.format(label=texts.LABELS[field], meaning=meaning))


def _meaning(field: str) -> str:
    """Return the words for what a key of `quarantine` may be."""
    notes = QuarantinedTest.model_fields[field].metadata
    return next((note.words for note in notes if isinstance(note, Says)), texts.UNKNOWN_TARGET)
