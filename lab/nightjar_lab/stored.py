"""Ask the bot about an uploaded run: whether it stored or refused the run, and the address of the check run."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from nightjar_formats.errors import UserError
from nightjar_formats.model import RunKey, escaped_target
from nightjar_lab import texts
from nightjar_lab.api import BotRefused, BotUnavailable, get_from_bot_api

PAUSE = 2.0
"""Seconds between two requests; the bot lists a bucket every 30 s, or is notified of a run within seconds."""
WAITING, STORED = "waiting", "stored"


@dataclass(frozen=True)
class BotsRun:
    """The bot's answer about a run; `check_run` is its address on GitHub, empty until the check run is written."""

    state: str
    reason: str
    check_run: str


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
        query = f"lab={key.lab}&target={escaped_target(key.target)}"
        return f"/api/v1/repos/{key.repository}/results/runs?sha={key.sha}&{query}&limit=200"

    @property
    def page(self) -> str:
        """The address of the run's page."""
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

    def wait(self, seconds: float, on_stored: Callable[[BotsRun], None]) -> str:
        """Wait until the bot has stored the run, call `on_stored`, and wait for the check run; return its address.

        The address is empty if the check run is not written within `seconds` either. Raises `UserError` if the bot
        refuses the run or does not read it in time.
        """
        deadline = time.monotonic() + seconds
        run, failure = self._ask_until(lambda run: run.state != WAITING, deadline)
        if failure:
            raise UserError(texts.CANNOT_ASK.format(reason=failure, url=self.url + self.path))
        if run is None or run.state == WAITING:
            raise UserError(texts.NOT_READ.format(seconds=seconds, url=self.url + self.path))
        if run.state != STORED:
            raise UserError(texts.NOT_STORED.format(state=run.state, reason=run.reason))
        on_stored(run)
        latest: BotsRun | None = run
        if not run.check_run:
            # The run is stored, so no later answer of the bot can make the upload fail.
            with suppress(UserError):
                latest, _ = self._ask_until(lambda run: bool(run.check_run), deadline)
        return latest.check_run if latest else ""

    def _ask_until(self, done: Callable[[BotsRun], bool], deadline: float) -> tuple[BotsRun | None, str]:
        """Ask until `done` accepts the run or `deadline`, in seconds of the monotonic clock.

        Returns the run as the bot described it last, None if it has not seen the run; and why the last request got no
        answer, empty if it got one. Raises `UserError` if the bot refuses to answer.
        """
        run: BotsRun | None = None
        while True:
            failure, pause = "", self.pause
            try:
                run = self._find()
            except BotUnavailable as error:
                failure, pause = str(error), max(self.pause, error.retry_in or 0.0)
            except BotRefused as error:
                raise UserError(texts.CANNOT_ASK.format(reason=error, url=self.url + self.path)) from None
            is_done = not failure and run is not None and done(run)
            if is_done or time.monotonic() + pause >= deadline:
                return run, failure
            self.sleep(pause)

    def _find(self) -> BotsRun | None:
        """Return the run; None if the bot has not seen it yet. Raises `BotUnavailable` and `BotRefused`."""
        answer = get_from_bot_api(self.url, self.path, self.token)
        try:
            runs = [run for run in answer.body["runs"] if run["run_id"] == self.key.run_id]
            # A server older than this kit names no check run.
            return BotsRun(runs[0]["state"], runs[0]["reason"], runs[0].get("check_run") or "") if runs else None
        except (KeyError, TypeError, AttributeError):
            raise BotUnavailable(texts.UNREADABLE_ANSWER) from None
