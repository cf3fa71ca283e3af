"""The bodies of requests and answers of the labs' API, as /api/v1/openapi.json shows them. Times are UTC (RFC 3339)."""

from __future__ import annotations

from typing import Annotated, Literal

from nightjar_formats.limits import MAX_ARTIFACTS, MAX_FILE_BYTES, MAX_FILES
from nightjar_formats.model import FILE_NAME, FULL_SHA, REPOSITORY_NAME, RUN_NAME, TARGET_NAME
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

LONGEST_WAIT = 60
"""Seconds of a long poll."""
MOST_TARGETS = 100

TargetName = Annotated[str, StringConstraints(pattern=f"^{TARGET_NAME}$")]
RepositoryName = Annotated[str, StringConstraints(pattern=f"^{REPOSITORY_NAME}$")]
Sha = Annotated[str, StringConstraints(pattern=f"^{FULL_SHA}$")]
PullNumber = Annotated[int, Field(ge=1, lt=2**31)]
Ability = Literal["tests", "repeat", "sides"]
"""What a lab's command can do: run only named tests, run each several times, run in two checkouts in turn."""
Lease = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class ClaimBody(BaseModel):
    """Which targets the lab has free devices for, and how long to wait for a job, in seconds."""

    model_config = ConfigDict(extra="forbid", strict=True)

    targets: list[TargetName] = Field(
        min_length=1, max_length=MOST_TARGETS, description="The targets with a free device."
    )
    wait: int = Field(default=0, ge=0, le=LONGEST_WAIT, description="How many seconds to wait for a job.")
    can: list[Ability] | None = Field(
        default=None,
        max_length=10,
        description=(
            "What the lab's command can do: `tests`, run only the tests that the job names; `repeat`, run each several "
            "times; `sides`, run at the job's commit and at its base in turn. Without `can`, the lab gets no jobs that "
            "are not a pull request's."
        ),
    )


class HeartbeatBody(BaseModel):
    """The test goes on."""

    model_config = ConfigDict(extra="forbid", strict=True)

    lease: Lease
    log_url: Annotated[str, StringConstraints(max_length=2000)] | None = Field(
        default=None, description="Address of the test's log; the check run links it."
    )
    note: Annotated[str, StringConstraints(max_length=2000)] = Field(
        default="", description="What the test is doing; the check run shows the first 500 characters."
    )


class FailedBody(BaseModel):
    """The lab cannot run the test: its device or its network failed, not the code."""

    model_config = ConfigDict(extra="forbid", strict=True)

    lease: Lease
    reason: Annotated[str, StringConstraints(max_length=10_000)] = Field(
        description="What failed; the check run shows the first 500 characters."
    )


class PresignedUpload(BaseModel, extra="forbid"):
    """A permission to upload files to this run's folder, by POST of a form (multipart/form-data), one file each.

    `${filename}` in the field `key` stands for the name of the file. The file itself is the last field, `file`.
    """

    url: str
    fields: dict[str, str]
    expires_at: str
    max_bytes: int = Field(description="Of one file.")


class HandedOutJob(BaseModel, extra="forbid"):
    """A job: test this commit on this target, and upload the results as this run with the job's id in the manifest."""

    job: str
    lease: str = Field(description="Proves that the job is yours; shown only once.")
    lease_expires_at: str = Field(
        description="Send a heartbeat before this time. After it, the bot hands the job out again."
    )
    repository: str
    sha: str
    pull_request: int | None = Field(description="Null: a commit of a branch, which the bot or a person asked about.")
    target: str
    suites: list[str] = Field(description="The suites to run; empty: the lab decides.")
    attempt: int
    run_id: str
    prefix: str = Field(description="The run's folder in the bucket, ending with a slash.")
    clone_url: str
    deadline: str = Field(description="When the test must be over: heartbeats do not extend the lease beyond it.")
    requested_by: str
    approved_by: str | None = Field(description="Who approved this commit; null if nobody had to.")
    upload: PresignedUpload | None = Field(description="Null: the lab uploads with its own credentials.")
    tests: list[str] = Field(
        default=[], description="The IDs of the tests to run; empty: all. The results of others are not read."
    )
    repeat: int = Field(default=1, description="How often each of `tests` runs, at each of the two commits.")
    base_sha: str | None = Field(
        default=None, description="Run the tests at this commit too, in turn; only if the claim said `sides`."
    )


class DeclaredFile(BaseModel):
    """A file of a run, as its manifest will name it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, StringConstraints(pattern=f"^{FILE_NAME}$")]
    bytes: int = Field(ge=0, le=MAX_FILE_BYTES)
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class UploadBody(BaseModel):
    """A run that the lab wants to upload, with all its files."""

    model_config = ConfigDict(extra="forbid", strict=True)

    repository: RepositoryName
    target: TargetName
    sha: Sha
    run_id: Annotated[str, StringConstraints(pattern=f"^{RUN_NAME}$")] = Field(
        description="The run's name. Repeat it to continue an upload."
    )
    pull_request: PullNumber | None = Field(default=None, description="As in the manifest; a fork's head needs it.")
    files: list[DeclaredFile] = Field(min_length=1, max_length=MAX_FILES + MAX_ARTIFACTS)


class BegunUpload(BaseModel):
    """An upload: send each file that is not yet `received`, then the manifest."""

    model_config = ConfigDict(extra="forbid")

    upload: str
    expires_at: str
    received: list[str] = Field(description="The files that have arrived.")


class StoredUpload(BaseModel):
    """The run is durable. `GET /api/v1/repos/{owner}/{repo}/results/runs` says what became of it."""

    model_config = ConfigDict(extra="forbid")

    run_id: str


class AdmissionBody(BaseModel):
    """A run that the lab is about to test."""

    model_config = ConfigDict(extra="forbid", strict=True)

    repository: RepositoryName
    targets: list[TargetName] = Field(min_length=1, max_length=MOST_TARGETS)
    sha: Sha | None = Field(default=None, description="The commit. Without it, only names are checked.")
    pull_request: PullNumber | None = Field(default=None, description="As in the manifest.")


class AdmissionAnswer(BaseModel):
    """Whether runs would be accepted now, and if not, why."""

    model_config = ConfigDict(extra="forbid")

    accepted: bool
    reasons: list[str]


class ExtendedLease(BaseModel, extra="forbid"):
    """The job is still yours."""

    lease_expires_at: str


class GivenBack(BaseModel, extra="forbid"):
    """The job is no longer yours."""

    state: str
