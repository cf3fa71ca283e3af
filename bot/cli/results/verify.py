"""Ask the bot what became of an uploaded run, so that an upload that the bot refuses does not look like a success."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nightjar_formats.model import RunKey, escaped_target

from bot.cli.results import texts
from bot.core.errors import UserError
from bot.results.state import RunState
from handlers.ci_decisions.ask_bot import CannotAsk, get_from_bot

PAUSE = 2.0
"""Seconds between two questions; the bot lists a bucket every 30 s, or hears of a run within seconds."""


@dataclass(frozen=True, slots=True)
class UploadVerifier:
    """Asks the bot at `url` about a run; `token` is what a private repository needs."""

    url: str
    key: RunKey
    token: str = ""
    pause: float = PAUSE

    @property
    def path(self) -> str:
        """The route that lists the commit's runs."""
        key = self.key
        about = f"lab={key.lab}&target={escaped_target(key.target)}"
        return f"/api/v1/repos/{key.repository}/results/runs?sha={key.sha}&{about}&limit=200"

    def check_repository(self) -> None:
        """Raise `UserError` unless the bot accepts results for the repository."""
        try:
            asyncio.run(self._find())
        except CannotAsk as error:
            raise UserError(texts.UNKNOWN_TO_BOT.format(repository=self.key.repository, error=error)) from None

    def wait(self, seconds: float) -> None:
        """Wait until the bot has stored the run. Raises `UserError` where it refused it, or has not read it in time."""
        try:
            found = asyncio.run(self._wait(time.monotonic() + seconds))
        except CannotAsk as error:
            raise UserError(texts.CANNOT_ASK.format(error=error, url=self.url + self.path)) from None
        if found is None or found["state"] == RunState.WAITING:
            raise UserError(texts.NOT_READ.format(seconds=seconds, url=self.url + self.path))
        if found["state"] != RunState.STORED:
            raise UserError(texts.NOT_STORED.format(state=found["state"], reason=found["reason"]))

    async def _wait(self, end: float) -> Mapping[str, Any] | None:
        while True:
            found = await self._find()
            if (found is not None and found["state"] != RunState.WAITING) or time.monotonic() >= end:
                return found
            await asyncio.sleep(self.pause)

    async def _find(self) -> Mapping[str, Any] | None:
        body = await get_from_bot(self.url, self.path, self.token)
        try:
            runs = [run for run in json.loads(body)["runs"] if run["run_id"] == self.key.run_id]
            return {"state": str(runs[0]["state"]), "reason": str(runs[0]["reason"])} if runs else None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise CannotAsk(texts.UNREADABLE_ANSWER) from None
