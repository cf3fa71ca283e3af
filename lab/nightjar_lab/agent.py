"""`nightjar-lab agent`: claim a job, test the commit, upload the results, again and again.

One agent uses one device at a time. While the network is unavailable, it continues the test and retries its calls. When
an agent was killed, the next one removes its files, and the bot hands its job out again.
"""

from __future__ import annotations

import fcntl
import logging
import os
import random
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import IO

from nightjar_formats.errors import TryAgain, UserError
from nightjar_formats.limits import MAX_FILE_BYTES, MAX_FILES
from nightjar_formats.model import MANIFEST, Claims, RunKey
from nightjar_formats.refused import Refused
from nightjar_formats.runs.benchmark import FILE as BENCHMARK_FILE
from nightjar_formats.runs.few_tests import BASE, HEAD, turn_file_name, turns_of
from nightjar_formats.runs.manifest import run_key
from nightjar_formats.runs.upload import PackedRun, pack
from nightjar_lab import texts
from nightjar_lab.api import BotAnswer, BotClient, BotRefused, BotUnavailable, LostLease, Redirected, reason_of
from nightjar_lab.benchmark import SideRun, compare, joined, only_named, run_of
from nightjar_lab.bot_upload import BotStore
from nightjar_lab.command import RunningCommand, clean_environment
from nightjar_lab.heart import Heart
from nightjar_lab.job import LabJob, UnusableJob
from nightjar_lab.lab_run import iso_time
from nightjar_lab.upload import ResultFile, UploadFailed, copy_files, result_files, send_permitted
from nightjar_lab.worktree import FetchFailed, check_out, remove

WAIT = 50
"""Seconds of a long poll: less than the minute after which proxies give up."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
REFUSED_PAUSE = 60.0
NO_SPACE_PAUSE = 60.0
ONCE_SECONDS = 120.0
"""Seconds that an agent with `--once` waits for a bot that does not answer."""
MOST_LINES = 10
"""The most lines of a command's output that are logged if a job fails."""
MOST_TURNS = 4
"""The most starts of a command at each commit, if it can repeat the tests itself."""
SPARE_SHARE = 0.05
"""The share of a job's time in which a benchmark begins no more runs."""
SPARE_TURNS = 1.5
"""Another turn begins if there is time for so many of the longest one."""
TEST_SUITE = "tests"
"""The suite of a job that does not name one."""

log = logging.getLogger("nightjar-lab")


class CannotStart(Exception):
    """The agent cannot work with these settings; the text is the reason."""


class _NoSpace(Exception):
    """The disk has not enough space for a job, or it fails; the text says so."""


class JobFailed(Exception):
    """The lab cannot do the job; the text is the reason that the bot receives."""


@dataclass(frozen=True)
class AgentSettings:
    """The settings of an agent. Times are in seconds; `clone_url` is the lab's own mirror of the repository.

    `folder` has no links. `passed` are variables that the command gets besides the usual ones. `can` is
    what the command can do, of `api.ABILITIES`.
    """

    targets: tuple[str, ...]
    command: tuple[str, ...]
    folder: Path
    upload_command: tuple[str, ...] = ()
    clone_url: str | None = None
    log_url: str | None = None
    timeout: float | None = None
    least_free: int = 1 << 30
    environment: tuple[tuple[str, str], ...] = ()
    passed: tuple[str, ...] = ()
    can: tuple[str, ...] = ()


class Agent:
    """Claims jobs and does them, one at a time. A signal handler may call `stop`."""

    def __init__(self, bot: BotClient, settings: AgentSettings) -> None:
        self._bot = bot
        self._settings = settings
        self._stopping = threading.Event()
        self.idle = True
        """Whether the agent has no job, so that nothing is lost if it ends at once."""

    def stop(self) -> None:
        """Give the current job back to the bot, and end."""
        self._stopping.set()

    def run(self, *, once: bool = False) -> bool:
        """Do jobs until `stop` is called, or with `once` at most one job; return whether no job failed.

        Raises `CannotStart`; with `once`, also if the bot refuses, or does not answer for `ONCE_SECONDS`.
        """
        with self._own_folder():
            if not once:
                names = ", ".join(self._settings.targets)
                log.info(texts.WAITS_FOR_JOBS.format(targets=names, url=self._bot.url))
            failures, until = 0, time.monotonic() + ONCE_SECONDS
            while not self._stopping.is_set():
                answer = self._claim(once=once, until=until)
                if answer is not None:
                    self.idle = False
                    failures = 0 if self._accept(answer) else failures + 1
                    self.idle = True
                if once:
                    break
                if answer is not None and failures and not self._stopping.is_set():
                    # The fault may be this machine: a pause leaves jobs to other agents, instead of failing them all.
                    seconds = pause_after(failures)
                    log.warning(texts.PAUSES.format(seconds=seconds))
                    self._stopping.wait(seconds)
            return not failures

    def _claim(self, *, once: bool, until: float) -> BotAnswer | None:
        """Ask the bot for a job until it answers; return None if it has no job, or if the agent is stopping."""
        next_pause = FIRST_PAUSE
        while not self._stopping.is_set():
            try:
                self._check_space()
                return self._bot.claim(self._settings.targets, 0 if once else WAIT, self._settings.can)
            except BotUnavailable as error:
                wait = error.retry_in or next_pause * random.uniform(0.5, 1.5)  # noqa: S311  # no secret
                reason = texts.NOT_ASKED.format(url=self._bot.url, reason=error)
                next_pause = min(2 * next_pause, LONGEST_PAUSE)
                if isinstance(error, Redirected):
                    until = 0.0
            except _NoSpace as error:
                wait, reason = NO_SPACE_PAUSE, str(error)
            except (BotRefused, LostLease) as error:
                wait, reason = REFUSED_PAUSE, texts.BOT_REFUSES.format(url=self._bot.url, reason=error)
                until = 0.0
            if once and time.monotonic() + wait > until:
                raise CannotStart(reason)
            log.warning(texts.AGAIN.format(reason=reason, seconds=wait))
            self._stopping.wait(wait)
        return None

    def _accept(self, answer: BotAnswer) -> bool:
        """Do the job of an answer, or give it back if it cannot be read; return False if it failed."""
        try:
            job = LabJob.of(answer)
        except UnusableJob as error:
            reason = texts.BAD_JOB.format(reason=error)
            job_id, lease = answer.body.get("job"), answer.body.get("lease")
            if isinstance(job_id, str) and isinstance(lease, str):
                self._report(job_id, lease, reason)
            else:
                log.error(reason)  # noqa: TRY400  # the text says it all
            return False
        return self.do(job)

    def do(self, job: LabJob) -> bool:
        """Do one job, and remove its files whatever happens; return False if it failed. A lost job is no failure."""
        log.info(
            texts.CLAIMED.format(
                job=job.id,
                repository=job.repository,
                sha=job.sha,
                target=job.target,
                attempt=job.attempt,
                who=job.requester,
            )
        )
        heart = Heart(self._bot, job, self._settings.folder, self._settings.log_url, self._stopping)
        heart.start()
        reason = ""
        job_run = _JobRun(self._bot, job, self._settings, heart)
        try:
            suites = job_run.run()
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
            if reason and not heart.lost:
                _show_output(job, job_run.last_output)
            with suppress(OSError):
                remove(self._settings.folder / "jobs")
        if heart.lost:
            log.warning(texts.LEASE_LOST.format(job=job.id))
        elif heart.is_late and reason:
            # Not reported: another attempt would also take too long, and the bot ends the job at its deadline.
            log.warning("job %s: %s", job.id, reason)
        elif self._stopping.is_set() and reason:
            self._report(job.id, job.lease, texts.STOPPED)
        elif reason:
            self._report(job.id, job.lease, reason)
        return heart.lost or not reason

    def _report(self, job_id: str, lease: str, reason: str) -> None:
        log.warning("job %s: %s", job_id, reason)
        for pause in (1.0, 5.0, 0.0):
            try:
                self._bot.failed(job_id, lease, reason)
            except BotUnavailable as error:
                failure = str(error)
                time.sleep(pause)
            except (BotRefused, LostLease) as error:
                failure = str(error)
                break
            else:
                return
        log.warning(texts.NOT_REPORTED.format(job=job_id, reason=failure))

    def _check_space(self) -> None:
        try:
            free = shutil.disk_usage(self._settings.folder).free
            if free < self._settings.least_free:
                for pattern in ("*.git", f"{BASE}/*.git"):
                    for repository in (self._settings.folder / "cache").glob(pattern):
                        remove(repository)
                free = shutil.disk_usage(self._settings.folder).free
        except OSError as error:
            raise _NoSpace(texts.DISK.format(reason=reason_of(error))) from None
        if free < self._settings.least_free:
            words = {"free": free >> 20, "least": self._settings.least_free >> 20, "folder": self._settings.folder}
            raise _NoSpace(texts.NO_SPACE.format(**words))

    def _own_folder(self) -> IO[str]:
        """Lock the folder for this agent alone, and remove what a killed agent left there."""
        folder = self._settings.folder
        if (folder / "jobs").is_symlink():
            raise CannotStart(texts.JOBS_IS_LINK.format(folder=folder / "jobs"))
        try:
            (folder / "cache").mkdir(parents=True, exist_ok=True)
            # Opened with O_NOFOLLOW: if a test replaced it by a link, opening it would empty the link's target.
            lock = os.fdopen(os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600), "r+")
        except OSError as error:
            raise CannotStart(texts.BAD_FOLDER.format(folder=folder, reason=error.strerror)) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise CannotStart(texts.ALREADY_RUNS.format(folder=folder)) from None
        try:
            remove(folder / "jobs")
        except OSError as error:
            lock.close()
            raise CannotStart(texts.BAD_FOLDER.format(folder=folder / "jobs", reason=error.strerror)) from None
        return lock


class _JobRun:
    """Does one job: checks out the commit, runs the suites in turn, and uploads their results."""

    def __init__(self, bot: BotClient, job: LabJob, settings: AgentSettings, heart: Heart) -> None:
        self._bot = bot
        self._job = job
        self._settings = settings
        self._heart = heart
        self._over = heart.over
        self._folder = settings.folder / "jobs" / job.run_id
        self._temporary = self._folder.parent / "tmp"
        self._until = time.monotonic() + job.seconds
        self._command: RunningCommand | None = None

    @property
    def last_output(self) -> bytes:
        """The end of what the last test printed. An upload command holds credentials, so its output is not included."""
        return self._command.tail if self._command else b""

    def run(self) -> list[str]:
        """Do the job and return the suites that were uploaded. Raises what makes it fail."""
        job, settings = self._job, self._settings
        job.check(settings.targets, settings.clone_url)
        self._create_folders()
        # For a benchmark, the paths of both are equally long: that may matter to how fast a program is.
        source = self._folder / (HEAD if job.base_sha else "source")
        checkouts = {HEAD: self._check_out(job.sha, source, settings.folder / "cache")}
        if job.base_sha:
            checkouts[BASE] = self._check_out(job.base_sha, self._folder / "base", settings.folder / "cache" / BASE)
        suites = job.suites or (TEST_SUITE,)
        if job.precision:
            self._test(checkouts, suites[0], 0)
            return list(suites)
        for number, suite in enumerate(suites):
            self._test(checkouts, suite, number)
        return list(suites)

    def _check_out(self, sha: str, into: Path, cache: Path) -> Path:
        """Check out a commit of the job into a new folder, and return the folder."""
        url = self._settings.clone_url or self._job.clone_url
        cache.mkdir(exist_ok=True)
        check_out(url, sha, cache, into, seconds=self._until - time.monotonic(), stopped=self._over)
        return into

    def _create_folders(self) -> None:
        """Create the folders of the job. Raises OSError if one of them, or a link, appears meanwhile."""
        jobs = self._folder.parent
        remove(jobs)
        for folder in (jobs, self._folder, self._temporary):
            folder.mkdir()
        # Like /tmp, because the command may run its test as another user.
        self._temporary.chmod(0o1777)

    def _test(self, checkouts: Mapping[str, Path], suite: str, number: int) -> None:
        """Run a suite, in turn at each commit if there are two, and upload its results as one run."""
        job, settings = self._job, self._settings
        # The bot named the run of the first suite; each further suite gets a run of its own beside it.
        run_id = job.run_id if number == 0 else f"{job.run_id}-{number + 1}"
        folder = f"{job.prefix.rstrip('/').rpartition('/')[0]}/{run_id}/"
        variables = {
            "NIGHTJAR_JOB": job.id,
            "NIGHTJAR_REPOSITORY": job.repository,
            "NIGHTJAR_SHA": job.sha,
            "NIGHTJAR_PULL_REQUEST": str(job.pull_request or ""),
            "NIGHTJAR_TARGET": job.target,
            "NIGHTJAR_SUITE": suite,
            "NIGHTJAR_ATTEMPT": str(job.attempt),
            "NIGHTJAR_RUN_ID": run_id,
        }
        started = iso_time(time.time())
        if job.precision:
            files, status = self._run_benchmark(checkouts, variables)
        elif job.tests:
            files, status = self._run_turns(checkouts, variables, number)
        else:
            files, status = self._run_command(checkouts[HEAD], variables, str(number))
        if all(file.is_artifact for file in files):
            raise JobFailed(texts.NO_RESULTS.format(status=status))
        if self._over.is_set():
            raise JobFailed(texts.STOPPED)
        if settings.upload_command:
            self._by_command(
                number, files, {**variables, "NIGHTJAR_EXIT_STATUS": str(status), "NIGHTJAR_PREFIX": folder}
            )
            return
        claims = Claims(
            suite=suite,
            attempt=job.attempt,
            started_at=started,
            finished_at=iso_time(time.time()),
            exit_status=status,
            pull_request=job.pull_request,
            environment=dict(settings.environment),
            log_url=settings.log_url or "",
            job=job.id,
        )
        try:
            packed_run = pack(*key_of(folder), [file.upload_file for file in files], claims)
        except UserError as error:
            raise JobFailed(texts.BAD_MANIFEST.format(reason=error)) from None
        if job.upload is not None:
            send_permitted(job.upload, packed_run, files)
        else:
            self._through_bot(packed_run, files)

    def _run_turns(
        self, checkouts: Mapping[str, Path], variables: Mapping[str, str], number: int
    ) -> tuple[list[ResultFile], int]:
        """Run the tests of the job in turns; return the files of all turns, and the worst status of the command.

        It ends early if there is no time for another turn, or no room for its files, so that the rest still counts.
        """
        job, files, worst, longest = self._job, list[ResultFile](), 0, 0.0
        turns = turns_of(
            job.repeat, MOST_TURNS, has_base=BASE in checkouts, repeats_itself="repeat" in self._settings.can
        )
        for turn_number, turn in enumerate(turns, 1):
            began = time.monotonic()
            if self._until - began < SPARE_TURNS * longest:
                break
            label = f"{number}-{turn_number}"
            listed_tests = self._listed_tests(label)
            sides = {"NIGHTJAR_SIDE": turn.side} if BASE in checkouts else {}
            sha = job.base_sha if turn.side == BASE else job.sha
            values = {"NIGHTJAR_SHA": sha, "NIGHTJAR_TESTS": str(listed_tests), "NIGHTJAR_REPEAT": str(turn.repeat)}
            turn_files, status = self._run_command(checkouts[turn.side], {**variables, **sides, **values}, label)
            worst, longest = max(worst, status), max(longest, time.monotonic() - began)
            reports = [file for file in turn_files if not file.is_artifact]
            if len(files) + len(reports) > MAX_FILES:
                break
            for report_number, file in enumerate(reports, 1):
                files.append(replace(file, name=turn_file_name(turn.side, turn_number, report_number, file.name)))
        return files, worst

    def _listed_tests(self, label: str) -> Path:
        """Write the IDs of the job's tests into a new file: an earlier turn may have made a link of a known name."""
        path = self._folder / f"tests-{label}.txt"
        with path.open("x", encoding="utf-8") as file:
            file.writelines(f"{test}\n" for test in self._job.tests)
        return path

    def _run_benchmark(
        self, checkouts: Mapping[str, Path], variables: Mapping[str, str]
    ) -> tuple[list[ResultFile], int]:
        """Run both commits in turn until their ratios are known; return the report, and the worst status."""
        job, statuses = self._job, [0]
        if BASE not in checkouts:
            raise UnusableJob(texts.NO_BASE_TO_COMPARE)
        folders = {"NIGHTJAR_BASE": str(checkouts[BASE]), "NIGHTJAR_HEAD": str(checkouts[HEAD])}
        shas = {"NIGHTJAR_BASE_SHA": job.base_sha, "NIGHTJAR_HEAD_SHA": job.sha}

        def run(side: str, number: int) -> SideRun:
            runs = []
            for suite_number, suite in enumerate(job.suites or (TEST_SUITE,)):
                label = f"{side}-{number}-{suite_number}"
                values = {
                    **variables,
                    **folders,
                    **shas,
                    "NIGHTJAR_SIDE": side,
                    "NIGHTJAR_SHA": shas[f"NIGHTJAR_{side.upper()}_SHA"],
                    "NIGHTJAR_SUITE": suite,
                    "NIGHTJAR_ROUND": str(number),
                }
                if job.tests:
                    values["NIGHTJAR_TESTS"] = str(self._listed_tests(label))
                files, status = self._run_command(checkouts[side], values, label)
                reports = [file for file in files if not file.is_artifact]
                if not reports:
                    raise JobFailed(texts.NO_RESULTS.format(status=status))
                try:
                    # One report after the other: all together may be larger than the memory.
                    runs.append(run_of((file.name, BytesIO(b"".join(file.chunks()))) for file in reports))
                except Refused as error:
                    raise JobFailed(texts.UNREADABLE_RUN.format(side=side, reason=error)) from None
                statuses.append(status)
                # There may be hundreds of runs.
                for part in ("results-{}", "files-{}", "log-{}.txt", "tests-{}.txt"):
                    remove(self._folder / part.format(label))
            return only_named(joined(runs), frozenset(job.tests))

        def show(progress: str) -> None:
            self._heart.note = progress

        until = self._until - SPARE_SHARE * job.seconds
        report = compare(job.precision, job.benchmark_seconds, run, until=until, show=show)
        folder = self._folder / "benchmark"
        folder.mkdir()
        # A new file: a command that is still running may have made a link of its name.
        with (folder / BENCHMARK_FILE).open("x", encoding="utf-8") as file:
            file.write(report.text)
        return result_files(folder), max(statuses)

    def _run_command(self, source: Path, variables: Mapping[str, str], label: str) -> tuple[list[ResultFile], int]:
        """Run the lab's command in a checkout; return its files and its status. `label` is new for each start."""
        settings = self._settings
        results, artifacts = (self._folder / f"{part}-{label}" for part in ("results", "files"))
        results.mkdir()
        artifacts.mkdir()
        folders = {"NIGHTJAR_RESULTS": str(results), "NIGHTJAR_FILES": str(artifacts), "TMPDIR": str(self._temporary)}
        self._command = command = RunningCommand(
            settings.command,
            source,
            clean_environment({**variables, **folders}, settings.passed),
            self._folder / f"log-{label}.txt",
        )
        seconds_left = max(0.0, self._until - time.monotonic())
        limit = min(seconds_left, settings.timeout) if settings.timeout else seconds_left
        status = command.wait(limit, self._over)
        if status is None:
            raise JobFailed(texts.STOPPED if self._over.is_set() else texts.TOO_LONG.format(seconds=limit))
        if self._heart.saw_full_disk():
            raise JobFailed(texts.DISK_WAS_FULL.format(status=status))
        for folder_of_test in (results, artifacts):
            if os.path.realpath(folder_of_test) != str(folder_of_test):
                raise JobFailed(texts.FOLDER_REPLACED.format(folder=folder_of_test))
        most_bytes = min(MAX_FILE_BYTES, int((self._job.upload or {}).get("max_bytes", MAX_FILE_BYTES)))
        return result_files(results, most_bytes, log.warning, artifacts), status

    def _through_bot(self, packed_run: PackedRun, files: Sequence[ResultFile]) -> None:
        store = BotStore(self._bot, packed_run)
        try:
            for file in files:
                store.send(file.name, file.size, file.chunks)
            store.send_manifest()
        except (UserError, TryAgain) as error:
            raise UploadFailed(texts.UPLOAD_FAILED.format(reason=error)) from None

    def _by_command(self, number: int, files: Sequence[ResultFile], variables: dict[str, str]) -> None:
        """Upload with the lab's own command, in the agent's full environment, which may hold credentials.

        The command gets a copy without links. It starts in an empty folder, because programs load code from the current
        one: `python -m` would import a result file that is called like a module.
        """
        empty_folder, results_copy, artifacts_copy = (
            self._folder / f"upload-{number}{part}" for part in ("", "-results", "-files")
        )
        for folder in (empty_folder, results_copy, artifacts_copy):
            folder.mkdir()
        copy_files([file for file in files if not file.is_artifact], results_copy)
        copy_files([file for file in files if file.is_artifact], artifacts_copy)
        upload = RunningCommand(
            self._settings.upload_command,
            empty_folder,
            {
                **os.environ,
                **variables,
                "NIGHTJAR_RESULTS": str(results_copy),
                "NIGHTJAR_FILES": str(artifacts_copy),
            },
            self._folder / f"upload-{number}.txt",
        )
        status = upload.wait(max(60.0, self._until - time.monotonic()), self._over)
        if status != 0:
            raise UploadFailed(texts.UPLOAD_FAILED.format(reason=f"status {status}"))


def _show_output(job: LabJob, output: bytes) -> None:
    """Log the last lines of a test's output, because its file is removed with the job."""
    lines = output.decode("utf-8", "replace").splitlines()[-MOST_LINES:]
    if lines:
        log.warning(texts.LAST_OUTPUT.format(job=job.id, lines="\n".join(lines)))


def pause_after(failures: int) -> float:
    """Return the seconds to wait after a number of failures in a row."""
    # More doublings make no difference, and a thousand of them no longer fit into a float.
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures, 10))


def key_of(folder: str) -> tuple[RunKey, str]:
    """Return the key of the run that a folder of the bucket holds, and the bucket's prefix. Raises `UnusableJob`."""
    # The last seven parts are owner, name, lab, target, SHA, run, and the empty text after the last slash.
    prefix = "".join(f"{part}/" for part in folder.split("/")[:-7])
    found = run_key(folder + MANIFEST, prefix)
    if found is None:
        raise UnusableJob("prefix")
    return found[0], prefix
