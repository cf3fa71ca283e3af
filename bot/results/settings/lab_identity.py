"""The keys below `labs.LAB.identity`: which workflows of GitHub Actions and builds of Buildkite speak for a lab."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from bot.config.keys import Keys
from bot.config.types import BranchName, EncryptedAddress, Says
from bot.results.settings.texts import NO_WORKFLOW_LIMIT

GITHUB_ISSUER = "https://token.actions.githubusercontent.com"
BUILDKITE_ISSUER = "https://agent.buildkite.com"

NumericId = Annotated[int, Field(ge=1, lt=2**63), Says("the number that GitHub gave it, as in 1296269")]
Uuid = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"),
    Says("a UUID, as in 018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4b"),
]
EnvironmentName = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,253}[^\s\x00-\x1f\x7f])?$"),
    Says("the name of an environment, as in devices"),
]


BuildSource = Literal["schedule", "ui", "api", "webhook", "trigger_job"]
"""What starts a build: https://buildkite.com/docs/pipelines/configure/environment-variables, BUILDKITE_SOURCE."""


class GitHubOidc(Keys):
    """Workflows of GitHub Actions that speak for a lab. A fork has another `repository_id`, so it never does.

    The bot accepts those that `push`, `schedule`, `workflow_dispatch` or `repository_dispatch` started.
    """

    repository_id: NumericId = Field(
        description=(
            "The ID of the repository with the lab's workflow (`gh api repos/OWNER/NAME --jq .id`). Somebody else "
            "can take over a name, but not an ID."
        ),
        examples=[1296269],
    )
    owner_id: NumericId | None = Field(
        default=None,
        description="The ID of its owner. With it, the bot refuses tokens once the repository has another owner.",
        examples=[583231],
    )
    environment: EnvironmentName | None = Field(
        default=None,
        description=(
            "The environment that the job must run in; its protection rules on GitHub limit who may use it. One of "
            "`environment` and `branch` is required."
        ),
        examples=["devices"],
    )
    branch: BranchName | None = Field(
        default=None,
        description="The branch that the workflow must run on.",
        examples=["main"],
    )
    issuer: EncryptedAddress = Field(
        default=GITHUB_ISSUER,
        description="Who issues the tokens. For GitHub Enterprise Server `https://HOST/_services/token`.",
        examples=["https://github.example.org/_services/token"],
    )

    @model_validator(mode="after")
    def _is_limited(self) -> GitHubOidc:
        """Raise ValueError if every branch of the repository would speak for the lab."""
        if self.environment is None and self.branch is None:
            raise ValueError(NO_WORKFLOW_LIMIT)
        return self


class BuildkiteOidc(Keys):
    """Builds of Buildkite that speak for a lab.

    A token does not say whether its build is one of a fork's pull request, whose branch may have any name. So what
    started the build counts as well: a webhook may come from a fork.
    """

    organization_id: Uuid = Field(
        description="The UUID of the organization. The job asks for it with `--claim organization_id`.",
        examples=["018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4b"],
    )
    pipeline_id: Uuid = Field(
        description="The UUID of the pipeline. The job asks for it with `--claim pipeline_id`.",
        examples=["018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4c"],
    )
    branch: BranchName = Field(
        description="The branch of the build.",
        examples=["main"],
    )
    sources: tuple[BuildSource, ...] = Field(
        default=("schedule",),
        min_length=1,
        description=(
            "What may have started the build, as `build_source` in the token. A build of a fork's pull request comes "
            "from a `webhook`, and its rebuild from the `ui` or the `api`: name these, or `trigger_job`, only if "
            "neither this pipeline nor one that triggers it builds pull requests from forks."
        ),
        examples=[["schedule", "ui"]],
    )
    issuer: EncryptedAddress = Field(
        default=BUILDKITE_ISSUER,
        description="Who issues the tokens.",
        examples=[BUILDKITE_ISSUER],
    )


class LabIdentity(Keys):
    """Who speaks for a lab, besides whoever has one of its tokens (`nightjar lab token create`)."""

    github_oidc: GitHubOidc | None = Field(
        default=None,
        description="Workflows of GitHub Actions, identified by the tokens that GitHub issues to them. The audience is "
        "`public_url`.",
        examples=[{"repository_id": 1296269, "environment": "devices"}],
    )
    buildkite_oidc: BuildkiteOidc | None = Field(
        default=None,
        description="Builds of Buildkite, identified by the tokens that Buildkite issues to them. "
        "The audience is `public_url`.",
        examples=[
            {
                "organization_id": "018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4b",
                "pipeline_id": "018f3c1a-5d2e-4b6f-8a77-0c9d1e2f3a4c",
                "branch": "main",
            }
        ],
    )
