"""Handle the two buttons of a delivery: replay it, or show what a replay would plan, as `nightjar replay` does.

The person is stored before the replay begins, so that every replay has a name even if the process dies in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from aiohttp import web

from bot.core.errors import TryAgain, UserError
from bot.core.page_paths import segment
from bot.web.openapi import Operation, ResponseSchema, problem
from bot.web.pages import PAGES
from bot.web.problems import Problem
from bot.web.sign_in.viewers import Viewer
from bot.web.texts import NO_PAGE
from handlers.operate.deliveries import GUID_PART, read_delivery
from handlers.operate.records import note_replay
from handlers.operate.texts import CANNOT_PLAN

if TYPE_CHECKING:
    from handlers.operate.wiring import OperateParts

LONGEST_PLAN = 200_000
"""The most characters of each text of a plan that the page shows."""

LONGEST_TARGET = 500

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """An effect of a plan; `is_last` if it follows from the outcomes of the others. `fields` is JSON."""

    kind: str
    target: str
    fields: str
    is_last: bool


@dataclass(frozen=True, slots=True)
class PlanDescription:
    """A handler's plan and its reason, or the `error` that prevented it. Without a handler: why there is no plan."""

    handler: str
    reason: str
    error: str
    rows: list[PlannedRow]


def replay_operations(parts: OperateParts) -> list[Operation]:
    """Return the routes of the buttons; `bot.web.access` admits operators only."""
    refused = {
        403: problem("The sender is not an operator, or the form was not sent from these pages"),
        404: problem("No such delivery"),
    }

    async def replay(request: web.Request) -> web.StreamResponse:
        viewer, guid = await _check_button(parts, request)
        await note_replay(parts.records, guid, viewer.person, parts.clock())
        log.info("replay asked for", delivery=guid, person=viewer.person.id, login=viewer.person.login)
        try:
            # The reader does not wait for the replay: the page of the delivery shows its progress.
            await parts.engine.replay(guid, patience=0)
        except UserError:
            raise Problem(404, NO_PAGE) from None
        return web.Response(status=303, headers={"Location": delivery_path(guid), "Cache-Control": "no-store"})

    async def dry_run(request: web.Request) -> web.StreamResponse:
        _, guid = await _check_button(parts, request)
        try:
            plan = await parts.engine.dry_run(guid)
        except UserError:
            raise Problem(404, NO_PAGE) from None
        except TryAgain as error:
            raise Problem(503, CANNOT_PLAN, headers={"Retry-After": "30"}) from error
        return await request.app[PAGES].answer(
            request,
            "operate_plan.html",
            {"guid": guid, "plan": _describe_plans(parts, plan), "replayable": await _is_replayable(parts, guid)},
        )

    moved = ResponseSchema("Redirects to the page of the delivery", media_type="text/html")
    page = ResponseSchema("The plan", media_type="text/html")
    path = "/operate/deliveries/{guid}"
    return [
        Operation(
            "POST", f"{path}/replay", "Replay a delivery, for operators", replay, {303: moved, **refused}, [GUID_PART]
        ),
        Operation(
            "POST",
            f"{path}/dry-run",
            "What a replay of a delivery would plan, for operators",
            dry_run,
            {200: page, **refused},
            [GUID_PART],
        ),
    ]


def delivery_path(guid: str) -> str:
    """Return the path of a delivery's page."""
    return f"/operate/deliveries/{segment(guid)}"


async def _check_button(parts: OperateParts, request: web.Request) -> tuple[Viewer, str]:
    """Check a press of a button; return who pressed it, and the GUID of the stored delivery. Raises `Problem`."""
    pages = request.app[PAGES]
    pages.admit(request)
    viewer = await pages.viewers.pressed(request)
    guid = request.match_info["guid"]
    if await parts.journal.delivery(guid) is None:
        raise Problem(404, NO_PAGE)
    return viewer, guid


async def _is_replayable(parts: OperateParts, guid: str) -> bool:
    """Return whether the delivery can be replayed now."""
    return (await read_delivery(parts, guid)).replayable


def _describe_plans(parts: OperateParts, plan: dict[str, Any]) -> list[PlanDescription]:
    """Describe what each handler would do, in texts without secrets."""
    descriptions = [
        PlanDescription(
            handler_plan["handler"],
            parts.shown(handler_plan.get("why") or "", LONGEST_PLAN),
            parts.shown(handler_plan.get("error", ""), LONGEST_PLAN),
            [
                *_rows(parts, handler_plan.get("effects") or (), is_last=False),
                *_rows(parts, (handler_plan.get("conclusion") or {}).get("effects") or (), is_last=True),
            ],
        )
        for handler_plan in plan["plans"]
    ]
    return descriptions or [PlanDescription("", parts.shown(plan["ignored"], LONGEST_PLAN), "", [])]


def _rows(parts: OperateParts, effects: Iterable[dict[str, Any]], *, is_last: bool) -> Iterator[PlannedRow]:
    for effect in effects:
        fields = {name: value for name, value in effect.items() if name not in ("target", "kind") and value}
        text = json.dumps(fields, indent=2, ensure_ascii=False, default=str) if fields else ""
        yield PlannedRow(
            effect["kind"],
            parts.shown(effect["target"], LONGEST_TARGET),
            parts.shown(text, LONGEST_PLAN),
            is_last=is_last,
        )
