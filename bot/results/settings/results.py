"""The keys below `results`: where labs put their results, who they are, and what they may send."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from bot.config.keys import Keys
from bot.config.texts import UNKNOWN_PLACEHOLDER
from bot.config.types import STORE_FOLDER, BranchName, Duration, Role, Says, WebAddress, WholeNumber, seconds
from bot.core.patterns import LETTER_OR_DIGIT, Pattern
from bot.results.settings.lab_identity import LabIdentity
from bot.results.settings.lab_webhook import LabWebhook
from bot.results.settings.lab_workflow import LabWorkflow
from bot.results.settings.measurements import ChangeLimits, Measurements
from bot.results.settings.targets import SuiteName, Targets
from bot.results.settings.texts import (
    PLACEHOLDER_IN_QUOTES,
    PRESIGNED_WITHOUT_BUCKET,
    QUEUE_WITHOUT_BUCKET,
    QUOTED_FOR_ONE_SHELL,
    SIMULATES_UNKNOWN,
)

PLACEHOLDERS = ("test", "path", "name", "suite", "target", "sha")
"""The placeholders of a lab's `reproduce`."""

_PLACEHOLDER = Pattern(r"\{([a-z_]*)\}")
_PART_OF_WORD = rf"{LETTER_OR_DIGIT}_./-"
_SECOND_SHELL = Pattern(rf"(?:^|[^{_PART_OF_WORD}])(ssh|adb|eval)(?:[^{_PART_OF_WORD}]|$)")

SWEEP = "10m"
"""Interval at which the bot lists the bucket in addition to a queue, to find runs whose message was lost."""
POLL, QUIET_POLL = "30s", "5m"
"""Intervals at which the bot lists the bucket without a queue, while runs arrive and after an hour without any."""

Bucket = Annotated[
    str,
    # https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"),
    Says("a bucket's name, as in device-results"),
]
Prefix = Annotated[
    str,
    StringConstraints(pattern=r"^(?:[A-Za-z0-9_.-]+/){0,10}$"),
    Says("a folder with its slash at the end, as in results/, or nothing"),
]
LabName = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"),
    Says("a name of letters, digits, . _ and -, as in example-lab"),
]
Contact = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,98}[^\s\x00-\x1f\x7f])?$"),
    Says('a name or an address in one line, in quotes, as in "@example-lab-ci"'),
]


def _checked_template(template: str) -> str:
    """Return a template whose placeholders can be replaced by shell-quoted values; raise ValueError for others."""
    for placeholder in _PLACEHOLDER.finditer(template):
        if placeholder[1] not in PLACEHOLDERS:
            names = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
            raise ValueError(UNKNOWN_PLACEHOLDER.format(written=placeholder[0], known=names))
        command_start = template[: placeholder.start()]
        # A value is quoted for one shell; ssh, adb and eval hand it to a second, which parses it again.
        if second_shell := _SECOND_SHELL.search(command_start):
            raise ValueError(QUOTED_FOR_ONE_SHELL.format(written=placeholder[0], word=second_shell[1]))
        try:
            shlex.split(command_start)
        except ValueError:  # an open quotation or escape
            raise ValueError(PLACEHOLDER_IN_QUOTES.format(written=placeholder[0])) from None
    return template


Template = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]*$"),
    AfterValidator(_checked_template),
    Says("a command, as in pytest {test}"),
]


class Lab(Keys):
    """A lab: it owns devices, and its credentials may write below its own folder of the bucket and nowhere else."""

    targets: Targets = Field(
        description=(
            "What the lab tests on: a list of names, or a mapping of names to `nightly` or the keys below. Each target "
            "gets its own check run, `hardware/LAB/TARGET`."
        ),
        examples=[["hexagon-v73", "adreno"], {"hexagon-v73": {"tier": 2, "slots": 2}, "adreno": "nightly"}],
    )
    contacts: tuple[Contact, ...] = Field(
        default=(),
        description="People to ask about the lab. Check runs show them without mentioning them.",
        examples=[["@example-lab-ci"]],
    )
    contact_ids: tuple[WholeNumber, ...] = Field(
        default=(),
        description=(
            "GitHub's numeric IDs of the people who may pause the lab's targets (`@ci lab pause`), besides people with "
            "the maintain role. `https://api.github.com/users/LOGIN` shows the ID of a login."
        ),
        examples=[[583231]],
    )
    reproduce: Template | None = Field(
        default=None,
        description=(
            "Command to reproduce a failed test. `{test}`, `{path}`, `{name}`, `{suite}`, `{target}` and "
            "`{sha}` are replaced, quoted for a shell."
        ),
        examples=["pytest {test}"],
    )
    reproduce_suites: Mapping[SuiteName, Template] = Field(
        default={},
        description="Commands for suites that `reproduce` does not fit, such as backend suites, by the suite's name.",
        examples=[{"onnx-node": "nightjar-lab suite repro --flow {target} --suite onnx-node {test}"}],
    )
    searches: bool = Field(
        default=True,
        description="Whether the bot may run tests on idle devices itself, to find the change that broke a test.",
        examples=[False],
    )
    runs_per_day: WholeNumber = Field(
        default=1000,
        description="Runs that the bot accepts from the lab per day (UTC). It refuses more.",
        examples=[1000],
    )
    megabytes_per_day: WholeNumber = Field(
        default=5000,
        description="Megabytes that the bot accepts from the lab per day (UTC), as stored in the bucket.",
        examples=[5000],
    )
    identity: LabIdentity | None = Field(
        default=None,
        description=(
            "Which workflows and builds may get work as this lab, in addition to its tokens (`nightjar lab token "
            "create`). Needs `public_url`."
        ),
        examples=[{"github_oidc": {"repository_id": 1296269, "environment": "devices"}}],
    )
    webhook: LabWebhook | None = Field(
        default=None,
        description=(
            "Sends the lab a signed message for each queued job, so that the lab claims it. For labs that accept "
            "connections; others let their claims wait."
        ),
        examples=[{"url": "https://lab.example.org/nightjar", "secret_env": "EXAMPLE_LAB_WEBHOOK_SECRET"}],
    )
    workflow: LabWorkflow | None = Field(
        default=None,
        description=(
            "A workflow of GitHub Actions in the lab's own repository that the bot starts for each queued job. The "
            "workflow claims the job."
        ),
        examples=[{"repository": "example-lab/devices", "file": "nightjar.yml"}],
    )
    presigned_uploads: bool = Field(
        default=False,
        description=(
            "Whether each job comes with a permission to upload into that run's folder, so that the lab needs no "
            "AWS credentials. The bot's own credentials need `s3:PutObject` there."
        ),
        examples=[True],
    )

    def reproduce_of(self, suite: str) -> str:
        """Return the template of the command that reproduces a failure in a suite; empty for none."""
        return self.reproduce_suites.get(suite, self.reproduce or "")


class Results(Keys):
    """Results of hardware labs: their uploads become advisory check runs."""

    bucket: Bucket | None = Field(
        default=None,
        description=(
            "The S3 bucket with the runs. The `AWS_*` variables set its region and the credentials. Default: labs "
            "upload through the bot, which stores the files in a folder beside the SQLite database. PostgreSQL needs a "
            "bucket."
        ),
        examples=["device-results"],
    )
    prefix: Prefix = Field(
        default="results/",
        description="The folder in the bucket with the runs, as `OWNER/NAME/LAB/TARGET/SHA/RUN/`.",
        examples=["results/"],
    )
    queue: WebAddress | None = Field(
        default=None,
        description=(
            "Address of an SQS queue to which the bucket reports new objects, so that the bot finds runs at once."
        ),
        examples=["https://sqs.us-west-2.amazonaws.com/123456789012/device-results"],
    )
    poll: Duration | None = Field(
        default=None,
        description=(
            f"How often to list the bucket. Default: every {POLL} while runs arrive, every {QUIET_POLL} after a quiet "
            f"hour; with a queue, or a folder, every {SWEEP}."
        ),
        examples=["30s"],
    )
    branches: Annotated[tuple[BranchName, ...], Field(min_length=1)] | None = Field(
        default=None,
        description=(
            "Branches whose commits labs test. Default: `nightly.branch`, or else `nightly`. Labs may "
            "also test heads of pull requests, and nothing else."
        ),
        examples=[["nightly"]],
    )
    settle: Duration = Field(
        default="60s",
        description=(
            "How long to wait after a run before the check run is written, if fewer suites arrived than "
            "last time. So a lab with five suites gets one write."
        ),
        examples=["60s"],
    )
    deadline: Duration = Field(
        default="6h",
        description="How long to wait for missing files and shards before the check run says that they are missing.",
        examples=["6h"],
    )
    keep_files: Duration = Field(
        default="90d",
        description=(
            "How long pages show the logs and other files of runs. Afterwards, the bot removes whole runs from the "
            "folder beside the database; from a bucket, a lifecycle rule of yours removes them. Results stay."
        ),
        examples=["90d"],
    )
    labs: Mapping[LabName, Lab] = Field(
        min_length=1,
        description="The labs, by the names of their folders.",
        examples=[{"example-lab": {"targets": ["hexagon-v73", "adreno"], "contacts": ["@example-lab-ci"]}}],
    )

    approve_tests: tuple[Role, ...] = Field(
        default=("triage",),
        description=(
            "Roles that may approve device tests for people without the write role (`@ci approve tests`). A role "
            "includes all higher ones."
        ),
        examples=[["write"]],
    )
    measurements: Measurements = Field(
        default={},
        description=(
            "How large a change of what tests measure must be before it is reported, by the measurement's name or a "
            "pattern. A name comes before patterns, and of several patterns the longest one counts."
        ),
        examples=[{"latency": {"least": "5%"}}],
    )

    def change_limits(self, lab: str, target: str) -> ChangeLimits:
        """Return the least changes of measurements that are reported on a target; it need not be configured."""
        settings = self.labs[lab].targets.get(target) if lab in self.labs else None
        return ChangeLimits((*([settings.measurements] if settings else []), self.measurements))

    @property
    def all_change_limits(self) -> ChangeLimits:
        """Return the least changes of all targets."""
        targets = (target for lab in self.labs.values() for target in lab.targets.values())
        return ChangeLimits((self.measurements, *(target.measurements for target in targets)))

    @cached_property
    def store(self) -> str:
        """Return the name of the store with the runs: the bucket, or `STORE_FOLDER`."""
        return self.bucket or STORE_FOLDER

    @cached_property
    def poll_seconds(self) -> float:
        """Return how often the store is listed: rarely a folder, as the bot itself announces what it writes there."""
        return seconds(self.poll or (SWEEP if self.queue or self.bucket is None else POLL))

    @model_validator(mode="after")
    def _simulates_known_targets(self) -> Results:
        """Raise ValueError for a target that simulates itself, or one that no lab has."""
        names = {f"{lab}/{target}" for lab, settings in self.labs.items() for target in settings.targets}
        for lab, settings in self.labs.items():
            for target, target_settings in settings.targets.items():
                device, name = target_settings.simulates, f"{lab}/{target}"
                if device is not None and (device == name or device not in names):
                    raise ValueError(SIMULATES_UNKNOWN.format(name=name, device=device))
        return self

    @model_validator(mode="after")
    def _has_bucket(self) -> Results:
        """Raise ValueError for a setting that only a bucket can have."""
        if self.bucket is None and self.queue is not None:
            raise ValueError(QUEUE_WITHOUT_BUCKET)
        if self.bucket is None and any(lab.presigned_uploads for lab in self.labs.values()):
            raise ValueError(PRESIGNED_WITHOUT_BUCKET)
        return self
