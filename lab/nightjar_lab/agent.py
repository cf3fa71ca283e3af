"""`nightjar-lab agent`: claim a job, test the commit, upload the results, again and again.

One agent has one device at a time. It survives what happens to labs: while the network is unavailable it tests on and
tries again; what a killed agent left is removed when the next one starts, and its job is handed out again by the bot.
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import shutil
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import IO

from nightjar_formats.errors import UserError
from nightjar_formats.model import MANIFEST, Claims, RunKey
from nightjar_formats.runs.manifest import run_key
from nightjar_formats.runs.upload import pack
from nightjar_lab import texts
from nightjar_lab.api import BotClient, BotRefused, BotUnavailable, LostLease
from nightjar_lab.command import RunningCommand, clean_environment
from nightjar_lab.job import LabJob, UnusableJob
from nightjar_lab.upload import UploadFailed, result_files, send_permitted
from nightjar_lab.worktree import FetchFailed, check_out, remove

WAIT = 50
"""Seconds of a long poll: less than the minute after which proxies give up."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
REFUSED_PAUSE = 60.0
MOST_HEARTBEAT = 60.0
LEAST_HEARTBEAT = 0.2
RETRY_HEARTBEAT = 2.0
NO_SPACE_PAUSE = 60.0
FULL = 1 << 20
"""Bytes: with less free space the disk counts as full."""
TEST_SUITE = "tests"
"""The suite of a job that names none."""

log = logging.getLogger("nightjar-lab")


class CannotStart(Exception):
    """The agent cannot work with these settings; the text is the reason."""


class JobFailed(Exception):
    """The lab cannot do the job; the text is what the bot is given as the reason."""


@dataclass(frozen=True)
class AgentSettings:
    """What a lab says about its agent. Times are in seconds; `clone_url` is a mirror of its own."""

    targets: tuple[str, ...]
    command: tuple[str, ...]
    folder: Path
    upload_command: tuple[str, ...] = ()
    clone_url: str | None = None
    log_url: str | None = None
    timeout: float | None = None
    least_free: int = 1 << 30
    environment: tuple[tuple[str, str], ...] = ()


class Agent:
    """One agent. `stop` may be called by a signal handler."""

    def __init__(self, bot: BotClient, settings: AgentSettings) -> None:
        self._bot = bot
        self._settings = settings
        self._stopping = threading.Event()
        self.idle = True
        """Whether it has no job: then nothing is lost if it ends at once."""

    def stop(self) -> None:
        """Give the present job back, and end."""
        self._stopping.set()

    def run(self, *, once: bool = False) -> None:
        """Work until stopped; with `once` until one job was done, or there is none. Raises `CannotStart`."""
        with self._own_folder():
            pause = FIRST_PAUSE
            while not self._stopping.is_set():
                try:
                    self._check_space()
                    answer = self._bot.claim(self._settings.targets, 0 if once else WAIT)
                except BotUnavailable as error:
                    wait = error.retry_in or pause * random.uniform(0.5, 1.5)  # noqa: S311  # no secret
                    log.warning(texts.ASK_AGAIN.format(reason=error, seconds=wait))
                    pause = min(2 * pause, LONGEST_PAUSE)
                    self._stopping.wait(wait)
                    continue
                except (BotRefused, LostLease) as error:
                    if once:
                        raise CannotStart(texts.REFUSED.format(reason=error)) from None
                    log.error(texts.REFUSED.format(reason=error))  # noqa: TRY400  # the text says it all
                    self._stopping.wait(REFUSED_PAUSE)
                    continue
                pause = FIRST_PAUSE
                if answer is not None:
                    try:
                        job = LabJob.of(answer)
                    except UnusableJob as error:
                        log.error(texts.BAD_JOB.format(reason=error))  # noqa: TRY400
                    else:
                        self.idle = False
                        self.do(job)
                        self.idle = True
                if once:
                    return

    def do(self, job: LabJob) -> None:
        """Do one job, whatever happens, and leave nothing behind."""
        log.info(
            texts.CLAIMED.format(
                job=job.id, repository=job.repository, sha=job.sha, target=job.target, attempt=job.attempt, who=job.who
            )
        )
        heart = _Heart(self._bot, job, self._settings, self._stopping)
        heart.start()
        reason = ""
        try:
            suites = _JobRun(job, self._settings, heart).run()
            log.info(texts.DONE.format(job=job.id, suites=", ".join(suites)))
        except (JobFailed, UnusableJob, UploadFailed) as error:
            reason = texts.BAD_JOB.format(reason=error) if isinstance(error, UnusableJob) else str(error)
        except FetchFailed as error:
            reason = texts.FETCH_FAILED.format(reason=error)
        except OSError as error:
            reason = texts.DISK.format(reason=error.strerror or type(error).__name__)
        except Exception as error:
            log.exception("job %s", job.id)
            reason = texts.UNEXPECTED.format(kind=type(error).__name__)
        finally:
            heart.stop()
            with suppress(OSError):
                remove(self._settings.folder / "jobs")
        if heart.lost:
            log.warning(texts.LEASE_LOST.format(job=job.id))
        elif heart.is_late and reason:
            # Not reported: another attempt would take too long as well, and the bot ends the job at its deadline.
            log.warning("job %s: %s", job.id, reason)
        elif self._stopping.is_set() and reason:
            self._report(job, texts.STOPPED)
        elif reason:
            self._report(job, reason)

    def _report(self, job: LabJob, reason: str) -> None:
        log.warning("job %s: %s", job.id, reason)
        for pause in (1.0, 5.0, 0.0):
            try:
                self._bot.failed(job.id, job.lease, reason)
            except BotUnavailable as error:
                said = str(error)
                time.sleep(pause)
            except (BotRefused, LostLease) as error:
                said = str(error)
                break
            else:
                return
        log.warning(texts.NOT_REPORTED.format(job=job.id, reason=said))

    def _check_space(self) -> None:
        free = shutil.disk_usage(self._settings.folder).free
        if free < self._settings.least_free:
            words = {"free": free >> 20, "least": self._settings.least_free >> 20, "folder": self._settings.folder}
            raise BotUnavailable(texts.NO_SPACE.format(**words), NO_SPACE_PAUSE)

    def _own_folder(self) -> IO[str]:
        """Take the folder for this agent alone, and remove what a killed one left there."""
        folder = self._settings.folder
        try:
            (folder / "cache").mkdir(parents=True, exist_ok=True)
            lock = (folder / "lock").open("w")
        except OSError as error:
            raise CannotStart(texts.DISK.format(reason=error.strerror)) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise CannotStart(texts.ALREADY_RUNS.format(folder=folder)) from None
        remove(folder / "jobs")
        return lock


class _Heart(threading.Thread):
    """Sends heartbeats. `over` is set once the job is not ours any more, or the agent is to stop.

    It also watches the disk: a report that was written while the disk was full may lack anything.
    """

    def __init__(self, bot: BotClient, job: LabJob, settings: AgentSettings, stopping: threading.Event) -> None:
        super().__init__(daemon=True, name="heartbeats")
        self.over = threading.Event()
        self.lost = False
        self._bot = bot
        self._job = job
        self._log_url = settings.log_url
        self._folder = settings.folder
        self._stopping = stopping
        self._was_full = False
        self._done = threading.Event()
        self._began = time.monotonic()

    @property
    def is_late(self) -> bool:
        """Whether the job's deadline has come."""
        return time.monotonic() - self._began >= self._job.seconds

    def saw_full_disk(self) -> bool:
        """Say whether the disk is full, or was during the job."""
        self._was_full = self._was_full or shutil.disk_usage(self._folder).free < FULL
        return self._was_full

    def run(self) -> None:
        """Send the first one at once: the check run links the log then."""
        seconds, next_beat = self._job.lease_seconds, 0.0
        while not self._done.wait(LEAST_HEARTBEAT):
            self.saw_full_disk()
            if self._stopping.is_set() or self.is_late:
                self.over.set()
            if time.monotonic() < next_beat:
                continue
            try:
                seconds = self._bot.heartbeat(self._job.id, self._job.lease, "", self._log_url)
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
        """Send no more."""
        self._done.set()
        self.join(60.0)


class _JobRun:
    """One job: its commit, its suites one after the other, their results."""

    def __init__(self, job: LabJob, settings: AgentSettings, heart: _Heart) -> None:
        self._job = job
        self._settings = settings
        self._heart = heart
        self._over = heart.over
        self._folder = settings.folder / "jobs" / job.run_id
        self._until = time.monotonic() + job.seconds

    def run(self) -> list[str]:
        """Return the suites that were uploaded. Raises whatever stands in the way."""
        job, settings = self._job, self._settings
        job.check(settings.targets, settings.clone_url)
        if job.upload is None and not settings.upload_command:
            raise JobFailed(texts.NO_PERMISSION)
        self._folder.mkdir(parents=True)
        source = self._folder / "source"
        check_out(settings.clone_url or job.clone_url, job.sha, settings.folder / "cache", source)
        suites = job.suites or (TEST_SUITE,)
        for number, suite in enumerate(suites):
            self._test(source, suite, number)
        return list(suites)

    def _test(self, source: Path, suite: str, number: int) -> None:
        job, settings = self._job, self._settings
        # The first suite is the run that the bot named; others are runs beside it.
        run_id = job.run_id if number == 0 else f"{job.run_id}-{number + 1}"
        folder = f"{job.prefix.rstrip('/').rpartition('/')[0]}/{run_id}/"
        results = self._folder / f"results-{number}"
        results.mkdir()
        variables = {
            "NIGHTJAR_JOB": job.id,
            "NIGHTJAR_REPOSITORY": job.repository,
            "NIGHTJAR_SHA": job.sha,
            "NIGHTJAR_PULL_REQUEST": str(job.pull_request),
            "NIGHTJAR_TARGET": job.target,
            "NIGHTJAR_SUITE": suite,
            "NIGHTJAR_ATTEMPT": str(job.attempt),
            "NIGHTJAR_RUN_ID": run_id,
            "NIGHTJAR_RESULTS": str(results),
        }
        started = _now()
        command = RunningCommand(
            settings.command, source, clean_environment(variables), self._folder / f"log-{number}.txt"
        )
        left = max(0.0, self._until - time.monotonic())
        limit = min(left, settings.timeout) if settings.timeout else left
        status = command.wait(limit, self._over)
        if status is None:
            raise JobFailed(texts.STOPPED if self._over.is_set() else texts.TOO_LONG.format(seconds=limit))
        if self._heart.saw_full_disk():
            raise JobFailed(texts.DISK_WAS_FULL.format(status=status))
        files = result_files(results, int((job.upload or {}).get("max_bytes", 64 << 20)))
        if not files:
            raise JobFailed(texts.NO_RESULTS.format(status=status))
        if self._over.is_set():
            raise JobFailed(texts.STOPPED)
        if settings.upload_command:
            self._by_command(results, {**variables, "NIGHTJAR_EXIT_STATUS": str(status), "NIGHTJAR_PREFIX": folder})
            return
        claims = Claims(
            suite=suite,
            attempt=job.attempt,
            started_at=started,
            finished_at=_now(),
            exit_status=status,
            pull_request=job.pull_request,
            environment=dict(settings.environment),
            log_url=settings.log_url or "",
            job=job.id,
        )
        try:
            parcel = pack(*key_of(folder), [file.piece for file in files], claims)
        except UserError as error:
            raise JobFailed(texts.BAD_MANIFEST.format(reason=error)) from None
        assert job.upload is not None
        send_permitted(job.upload, parcel, files)

    def _by_command(self, results: Path, variables: dict[str, str]) -> None:
        """Have the lab's own command upload, with the agent's own environment, which may hold credentials."""
        upload = RunningCommand(
            self._settings.upload_command, results, {**os.environ, **variables}, self._folder / "upload.txt"
        )
        status = upload.wait(max(60.0, self._until - time.monotonic()), self._over)
        if status != 0:
            raise UploadFailed(texts.UPLOAD_FAILED.format(reason=f"status {status}"))


def key_of(folder: str) -> tuple[RunKey, str]:
    """Return whose run a folder of the bucket holds, and the bucket's prefix. Raises `UnusableJob`."""
    # owner, name, lab, target, SHA and run, and what follows the last slash
    prefix = "".join(f"{part}/" for part in folder.split("/")[:-7])
    found = run_key(folder + MANIFEST, prefix)
    if found is None:
        raise UnusableJob("prefix")
    return found[0], prefix


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def targets_of(written: Sequence[str]) -> tuple[str, ...]:
    """Return the names of targets, each once."""
    return tuple(dict.fromkeys(name.strip() for one in written for name in one.split(",") if name.strip()))
