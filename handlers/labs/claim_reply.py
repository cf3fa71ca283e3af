"""Build the answer to a claim: the job, with the permission to upload its results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import structlog
from nightjar_formats.limits import MAX_FILE_BYTES
from nightjar_formats.model import RunKey

from bot.aws.bucket import Bucket
from bot.core.errors import TryAgain, UserError
from bot.core.utc import iso_utc
from handlers.labs.bodies import Ability, HandedOutJob, PresignedUpload
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.config import Config
    from bot.results.settings.results import Results
    from handlers.device_tests.model import DeviceJob
    from handlers.device_tests.store import ClaimedJob

THE_BOT = "nightjar"
"""Who requested a job that no person requested."""
UPLOAD_SECONDS = 900.0
"""Seconds after a job's deadline in which its results may still be uploaded."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ClaimReplies:
    """Builds the answers to claims. `bucket_for` gives a bucket by its name, `clock` seconds since 1970."""

    def __init__(
        self,
        config: Config,
        github_url: str,
        bucket_for: Callable[[str], Bucket],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._github_url = github_url
        self._bucket_for = bucket_for
        self._clock = clock

    async def describe(self, claimed: ClaimedJob, can: Sequence[Ability] | None) -> HandedOutJob:
        """Return the answer to a claim of a lab whose command `can` do so much; None: the claim does not say."""
        job = claimed.job
        config = self._config.repository(job.repository)
        assert config is not None, "a job of a repository that app.yaml does not have is not handed out"
        results = config.of(LAB_RESULTS)
        assert results is not None, "nor one of a repository without labs"
        prefix = results.prefix + RunKey(job.repository, job.lab, job.target, job.sha, job.run_id).folder
        return HandedOutJob(
            job=job.id,
            lease=claimed.lease,
            lease_expires_at=iso_utc(job.lease_expires_at),
            repository=job.repository,
            sha=job.sha,
            pull_request=job.pull_request or None,
            target=job.target,
            suites=list(job.suites),
            attempt=job.attempt,
            run_id=job.run_id,
            prefix=prefix,
            clone_url=f"{self._github_url}/{job.repository}.git",
            deadline=iso_utc(job.deadline),
            requested_by=job.requested_by.login or THE_BOT,
            approved_by=job.approved_by.login or None,
            upload=await self._upload_permission(results, job, prefix),
            tests=list(job.few_tests.tests),
            repeat=job.few_tests.repeat,
            base_sha=job.few_tests.base_sha or None if "sides" in (can or ()) else None,
        )

    async def _upload_permission(self, results: Results, job: DeviceJob, folder: str) -> PresignedUpload | None:
        if results.bucket is None or not results.labs[job.lab].presigned_uploads:
            return None
        expires = job.deadline + UPLOAD_SECONDS
        # A job of several suites has a run for each of them: RUN_ID/, RUN_ID-2/ and so on. Only its keys begin so.
        key_prefix = folder if len(job.suites) < 2 else folder.removesuffix("/")
        try:
            signed = await self._bucket_for(results.bucket).presign_post(
                key_prefix, most=MAX_FILE_BYTES, seconds=expires - self._clock()
            )
        except (TryAgain, UserError) as error:
            # The job is handed out already. A lab with its own credentials can still upload; any other lab reports that
            # it has no permission.
            log.warning("no permission to upload", lab=job.lab, job=job.id, reason=str(error))
            return None
        return PresignedUpload(
            url=signed.url,
            fields={**signed.fields, "key": f"{folder}${{filename}}"},
            expires_at=iso_utc(expires),
            max_bytes=MAX_FILE_BYTES,
        )
