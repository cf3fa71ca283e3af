"""Ask the bot what became of an uploaded run, so that an upload that the bot refuses does not look like a success."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nightjar_formats.errors import UserError
from nightjar_formats.model import RunKey, escaped_target
from nightjar_lab import texts
from nightjar_lab.api import BotRefused, BotUnavailable, get_from_bot_api

PAUSE = 2.0
"""Seconds between two questions; the bot lists a bucket every 30 s, or hears of a run within seconds."""
WAITING, STORED = "waiting", "stored"


@dataclass(frozen=True)
class UploadVerifier:
    """Asks the bot at `url` about a run; `token` is what a private repository needs."""

    url: str
    key: RunKey
    token: str = ""
    pause: float = PAUSE
    sleep: Callable[[float], None] = time.sleep

    @property
    def path(self) -> str:
        """The route that lists the commit's runs."""
        key = self.key
        about = f"lab={key.lab}&target={escaped_target(key.target)}"
        return f"/api/v1/repos/{key.repository}/results/runs?sha={key.sha}&{about}&limit=200"

    @property
    def page(self) -> str:
        """The address of the run's page, which links its check run."""
        key = self.key
        target = escaped_target(key.target)
        return f"{self.url}/r/{key.repository}/runs/{key.lab}/{target}/{key.sha}/{key.run_id}"

    def check_repository(self) -> None:
        """Raise `UserError` unless the bot accepts results for the repository."""
        try:
            self._find()
        except (BotRefused, BotUnavailable) as error:
            words = {"repository": self.key.repository, "reason": error}
            raise UserError(texts.UNKNOWN_TO_BOT.format(**words)) from None

    def wait(self, seconds: float) -> None:
        """Wait until the bot has stored the run. Raises `UserError` where it refused it, or has not read it in time."""
        end = time.monotonic() + seconds
        found: Mapping[str, Any] | None = None
        while True:
            away, pause = "", self.pause
            try:
                found = self._find()
            except BotUnavailable as error:
                away, pause = str(error), max(self.pause, error.retry_in or 0.0)
            except BotRefused as error:
                raise UserError(texts.CANNOT_ASK.format(reason=error, url=self.url + self.path)) from None
            is_final = not away and found is not None and found["state"] != WAITING
            if is_final or time.monotonic() + pause >= end:
                break
            self.sleep(pause)
        if away:
            raise UserError(texts.CANNOT_ASK.format(reason=away, url=self.url + self.path))
        if found is None or found["state"] == WAITING:
            raise UserError(texts.NOT_READ.format(seconds=seconds, url=self.url + self.path))
        if found["state"] != STORED:
            raise UserError(texts.NOT_STORED.format(state=found["state"], reason=found["reason"]))

    def _find(self) -> Mapping[str, Any] | None:
        answer = get_from_bot_api(self.url, self.path, self.token)
        try:
            runs = [run for run in answer.body["runs"] if run["run_id"] == self.key.run_id]
            return {"state": str(runs[0]["state"]), "reason": str(runs[0]["reason"])} if runs else None
        except (KeyError, TypeError):
            raise BotUnavailable(texts.UNREADABLE_ANSWER) from None
