"""Send the heartbeats of one job in a separate thread, while its test runs."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from pathlib import Path

from nightjar_lab import texts
from nightjar_lab.api import BotClient, BotRefused, BotUnavailable, LostLease
from nightjar_lab.job import LabJob

MOST_HEARTBEAT = 60.0
LEAST_HEARTBEAT = 0.2
RETRY_HEARTBEAT = 2.0
FULL = 1 << 20
"""Free bytes below which the disk counts as full."""

log = logging.getLogger("nightjar-lab")


class Heart(threading.Thread):
    """Sends heartbeats. `over` is set when the job is no longer ours, or when the agent stops.

    It also watches the disk: a report that was written while the disk was full may be incomplete.
    """

    def __init__(
        self, bot: BotClient, job: LabJob, folder: Path, log_url: str | None, stopping: threading.Event
    ) -> None:
        super().__init__(daemon=True, name="heartbeats")
        self.over = threading.Event()
        self.note = ""
        """What the job does now: the next heartbeat tells it to the bot, so that it costs no request of its own."""
        self.lost = False
        self._bot = bot
        self._job = job
        self._log_url = log_url
        self._folder = folder
        self._stopping = stopping
        self._was_full = False
        self._done = threading.Event()
        self._began = time.monotonic()

    @property
    def is_late(self) -> bool:
        """Say whether the job's deadline has passed."""
        return time.monotonic() - self._began >= self._job.seconds

    def saw_full_disk(self) -> bool:
        """Say whether the disk is full, or was during the job."""
        self._was_full = self._was_full or shutil.disk_usage(self._folder).free < FULL
        return self._was_full

    def run(self) -> None:
        """Send heartbeats, the first one at once, so that the check run links the log early."""
        seconds, next_beat = self._job.lease_seconds, 0.0
        while not self._done.wait(LEAST_HEARTBEAT):
            self.saw_full_disk()
            if self._stopping.is_set() or self.is_late:
                self.over.set()
            if time.monotonic() < next_beat:
                continue
            try:
                seconds = self._bot.heartbeat(self._job.id, self._job.lease, self.note, self._log_url)
            except BotUnavailable as error:
                # The bot extends a lease that has expired if nobody else has the job.
                log.warning(texts.STILL_RUNNING.format(job=self._job.id, reason=error))
                next_beat = time.monotonic() + (error.retry_in or RETRY_HEARTBEAT)
                continue
            except (LostLease, BotRefused):
                self.lost = True
                self.over.set()
                return
            next_beat = time.monotonic() + min(MOST_HEARTBEAT, max(LEAST_HEARTBEAT, seconds / 3))

    def stop(self) -> None:
        """Stop sending heartbeats."""
        self._done.set()
        self.join(60.0)
