"""`/operate/log`: the last minutes of this process's log."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, Field

from bot.web.page_routes import Page, PageRequest
from handlers.operate.texts import PROCESS

if TYPE_CHECKING:
    from handlers.operate.wiring import OperateParts

SHOWN = 300
"""The most lines that the page shows; it counts the rest."""
LEVELS = ("debug", "info", "warning", "error", "critical")


class LogQuery(BaseModel, extra="forbid"):
    """The filters of the log."""

    level: Literal["", "info", "warning", "error"] = Field(
        default="", description="Only lines of this level or higher."
    )
    q: str = Field(default="", max_length=200, description="Only lines with this text.")
    refresh: int | None = Field(default=None, ge=5, le=60, description="Reload the page after this many seconds.")


class ShownLine(BaseModel, extra="forbid"):
    """A line of the log."""

    at: datetime
    level: str
    event: str
    fields: str = Field(description="All other fields, as JSON.")


class OperateLog(BaseModel, extra="forbid"):
    """Lines of the last 15 minutes, newest first, of the process that answers."""

    process: str = Field(description="The host and process that answers; each replica has its own log.")
    replicas: int = Field(description="Workers of all replicas with a recent heartbeat.")
    lines: list[ShownLine]
    more: int = Field(description="Number of older matching lines that are not listed.")


def log_page(parts: OperateParts) -> Page:
    """Return the page of the log."""

    async def load(request: PageRequest) -> OperateLog:
        query: LogQuery = request.query
        least_level, lowered_text = LEVELS.index(query.level or LEVELS[0]), query.q.lower()
        matching = [
            line
            for line in parts.log.lines()
            if (line.level not in LEVELS or LEVELS.index(line.level) >= least_level)
            and (lowered_text in line.event.lower() or lowered_text in line.fields.lower())
        ]
        return OperateLog(
            process=PROCESS.format(host=socket.gethostname(), pid=os.getpid()),
            replicas=sum(not worker.counts_as_dead for worker in await parts.engine.workers()),
            lines=[
                ShownLine(
                    at=datetime.fromtimestamp(line.at, UTC), level=line.level, event=line.event, fields=line.fields
                )
                for line in matching[:SHOWN]
            ],
            more=len(matching[SHOWN:]),
        )

    return Page(
        path="/operate/log",
        api_path="/api/v1/operate/log",
        summary="The last minutes of the log, for operators",
        template="operate_log.html",
        model=OperateLog,
        query=LogQuery,
        load=load,
    )
