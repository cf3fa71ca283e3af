"""The keys below `labs.LAB.workflow`: which workflow the bot starts when a job waits for a lab."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.types import BranchName, RepositoryName, Says

WorkflowFile = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,95}\.ya?ml$"),
    Says("the name of a file in .github/workflows, as in nightjar.yml"),
]


class LabWorkflow(Keys):
    """A workflow of GitHub Actions in the lab's own repository. It claims the job when it runs."""

    repository: RepositoryName = Field(
        description="The lab's repository. The App must be installed there, with the permission *Actions: write*.",
        examples=["example-lab/devices"],
    )
    file: WorkflowFile = Field(
        description=(
            "The file of the workflow. It needs `on: workflow_dispatch` with the inputs `job`, `target`, `repository` "
            "and `sha`."
        ),
        examples=["nightjar.yml"],
    )
    branch: BranchName = Field(
        default="main",
        description="The branch whose version of the workflow runs.",
        examples=["main"],
    )
