"""Check a lab's set-up without leaving anything behind: one finding for each requirement, with its remedy."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nightjar_formats.errors import TryAgain, UserError
from nightjar_formats.model import escaped_target
from nightjar_lab import texts
from nightjar_lab.api import BotClient, BotRefused, BotUnavailable, LostLease, NotFound, get_from_bot_api
from nightjar_lab.bot_upload import check_admission
from nightjar_lab.bucket import LabBucket
from nightjar_lab.nightly import NightlyOfBot, NightlyOfBucket, nightly_commit

LEAST_FREE = 1 << 30
MOST_SKEW = 60.0
"""Seconds; S3 refuses signatures that are 15 minutes off, and times of runs are compared with the bot's."""
PROBE_JOB = "nightjar-doctor"
PROBE_SHA = "0" * 40

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"


@dataclass(frozen=True)
class LabFinding:
    """The result of one check: `state` is ok, warning, failed or skipped; the text says what to do."""

    name: str
    state: str
    text: str


@dataclass(frozen=True)
class LabSetup:
    """The settings of a lab; those that are missing are empty."""

    url: str
    lab: str
    repository: str
    bucket: str
    prefix: str
    targets: tuple[str, ...]
    lab_token: str
    token: str
    folder: Path
    sha: str = ""


def examine(setup: LabSetup) -> Iterator[LabFinding]:
    """Yield the findings, in the order in which a person would fix them."""
    yield from _settings(setup)
    yield from _machine(setup)
    yield from _bot(setup)
    yield from _bucket(setup)
    yield _checked("nightly", lambda: _nightly(setup))


def _settings(setup: LabSetup) -> Iterator[LabFinding]:
    for name, value, missing in (
        ("NIGHTJAR_REPOSITORY", setup.repository, texts.NEEDED_REPOSITORY),
        ("NIGHTJAR_LAB", setup.lab, texts.NEEDED_LAB),
    ):
        yield LabFinding(name, OK if value else FAILED, value or missing)
    uploads_through_bot = bool(setup.url and setup.lab_token)
    missing = texts.THROUGH_BOT if uploads_through_bot else texts.NEEDED_BUCKET
    yield LabFinding("NIGHTJAR_BUCKET", OK if setup.bucket or uploads_through_bot else FAILED, setup.bucket or missing)
    for name, value, missing in (
        ("NIGHTJAR_URL", setup.url, texts.USEFUL_URL),
        ("NIGHTJAR_LAB_TOKEN", texts.IS_SET if setup.lab_token else "", texts.USEFUL_TOKEN),
    ):
        yield LabFinding(name, OK if value else WARNING, value or missing)


def _machine(setup: LabSetup) -> Iterator[LabFinding]:
    place = setup.folder if setup.folder.exists() else Path()
    free = shutil.disk_usage(place).free
    words = {"free": free >> 20, "least": LEAST_FREE >> 20, "folder": setup.folder}
    text = (texts.DISK_FREE if free >= LEAST_FREE else texts.DISK_FULL).format(**words)
    yield LabFinding("disk", OK if free >= LEAST_FREE else FAILED, text)
    try:
        from nightjar_formats import zstd

        zstd.compress(b"nightjar")
    except ImportError as error:
        yield LabFinding("zstd", FAILED, texts.NO_ZSTD.format(reason=error))
    else:
        yield LabFinding("zstd", OK, texts.WORKS)


def _bot(setup: LabSetup) -> Iterator[LabFinding]:
    if not setup.url:
        for name in ("bot", "clock", "repository", "lab", "token", "targets"):
            yield LabFinding(name, SKIPPED, texts.NO_URL)
        return
    started_at = time.time()
    try:
        answer = get_from_bot_api(setup.url, "/api/v1/openapi.json")
    except (BotRefused, BotUnavailable) as error:
        yield LabFinding("bot", FAILED, texts.BOT_AWAY.format(url=setup.url, reason=error))
        return
    version = str(answer.body.get("info", {}).get("version", ""))
    yield LabFinding("bot", OK, f"{setup.url} {version}".strip())
    # The bot's Date has whole seconds, and the answer took some time.
    skew = (started_at + time.time()) / 2 - answer.bot_time
    good = abs(skew) <= MOST_SKEW
    text = (texts.CLOCK_GOOD if good else texts.CLOCK_WRONG).format(seconds=abs(skew))
    yield LabFinding("clock", OK if good else FAILED, text)
    yield _checked("repository", lambda: _repository(setup))
    yield _checked("lab", lambda: _lab(setup))
    if not setup.lab_token:
        yield LabFinding("token", SKIPPED, texts.USEFUL_TOKEN)
        yield LabFinding("targets", SKIPPED, texts.NEEDS_TOKEN)
        return
    yield _checked("token", lambda: _token(setup))
    yield _checked("targets", lambda: _targets(setup))


def _repository(setup: LabSetup) -> str:
    if not setup.repository:
        return _skip()
    path = f"/api/v1/repos/{setup.repository}/results/runs?limit=1"
    try:
        get_from_bot_api(setup.url, path, setup.token)
    except BotRefused as error:
        raise UserError(texts.UNKNOWN_REPOSITORY.format(repository=setup.repository, reason=error)) from None
    return texts.REPOSITORY_KNOWN.format(repository=setup.repository)


def _lab(setup: LabSetup) -> str:
    if not (setup.repository and setup.lab):
        return _skip()
    try:
        get_from_bot_api(setup.url, f"/api/v1/repos/{setup.repository}/labs/{setup.lab}", setup.token)
    except NotFound:
        raise UserError(texts.UNKNOWN_LAB.format(lab=setup.lab, repository=setup.repository)) from None
    return texts.LAB_KNOWN.format(lab=setup.lab)


def _token(setup: LabSetup) -> str:
    """Check the token with a heartbeat for an unknown job: the bot answers 404 or 409 only to a valid token."""
    client = BotClient(setup.url, setup.lab, lambda: setup.lab_token)
    try:
        client.heartbeat(PROBE_JOB, PROBE_JOB, "", None)
    except (NotFound, LostLease):
        return texts.TOKEN_VALID.format(lab=setup.lab)
    except BotRefused as error:
        raise UserError(texts.TOKEN_REFUSED.format(lab=setup.lab, reason=error)) from None
    return texts.TOKEN_VALID.format(lab=setup.lab)


def _targets(setup: LabSetup) -> str:
    """Ask whether the bot would accept runs of the targets, and of the commit if there is one."""
    if not setup.targets:
        return texts.NO_TARGET_GIVEN
    if not setup.repository:
        return _skip()
    client = BotClient(setup.url, setup.lab, lambda: setup.lab_token)
    if not check_admission(client, setup.repository, setup.targets, setup.sha or None, None):
        return texts.OLD_BOT
    text = texts.COMMIT_ADMITTED if setup.sha else texts.TARGETS_KNOWN
    return text.format(targets=", ".join(setup.targets), sha=setup.sha)


def _bucket(setup: LabSetup) -> Iterator[LabFinding]:
    if not setup.bucket:
        yield LabFinding("bucket", SKIPPED, texts.THROUGH_BOT if setup.lab_token else texts.NEEDED_BUCKET)
        return
    bucket = LabBucket(setup.bucket, tries=1)

    def credentials() -> str:
        bucket.check_credentials()
        return texts.CREDENTIALS_FOUND

    yield _checked("credentials", credentials)
    if not (setup.repository and setup.lab):
        yield LabFinding("bucket", SKIPPED, texts.NEEDED_LAB)
        return
    yield _checked("bucket", lambda: _write_permission(setup, bucket))


def _write_permission(setup: LabSetup, bucket: LabBucket) -> str:
    """Check the permission to write with a wrong digest, which S3 reports only to clients that may write."""
    target = escaped_target(setup.targets[0] if setup.targets else "doctor")
    key = f"{setup.prefix}{setup.repository}/{setup.lab}/{target}/{PROBE_SHA}/doctor/probe"
    if bucket.may_write(key):
        return texts.MAY_WRITE.format(bucket=setup.bucket)
    return texts.PROBE_LEFT.format(bucket=setup.bucket, key=key)


def _nightly(setup: LabSetup) -> str:
    if not setup.repository:
        return _skip()
    if setup.url:
        return nightly_commit(NightlyOfBot(setup.url, setup.repository, setup.token)).sha
    if setup.bucket:
        return nightly_commit(NightlyOfBucket(setup.bucket, setup.prefix, setup.repository)).sha
    return _skip()


class _Skipped(Exception):
    """A check needs a setting whose absence was reported already."""


def _skip() -> str:
    raise _Skipped


def _checked(name: str, check: Callable[[], str]) -> LabFinding:
    try:
        return LabFinding(name, OK, check())
    except _Skipped:
        return LabFinding(name, SKIPPED, texts.SETTING_MISSING)
    except (UserError, TryAgain, BotUnavailable, BotRefused) as error:
        # Without a nightly branch, a lab tests what it likes.
        return LabFinding(name, WARNING if name == "nightly" else FAILED, " ".join(str(error).split()))
