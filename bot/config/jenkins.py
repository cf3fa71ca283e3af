"""The keys of a Jenkins server."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys
from bot.config.types import EncryptedAddress, JobName


class JenkinsServer(Keys):
    """A Jenkins server whose jobs may be started."""

    url: EncryptedAddress = Field(
        description="Address of the server. The bot calls only jobs below it, with JENKINS_USER and JENKINS_TOKEN.",
        examples=["https://ci.example.org"],
    )
    jobs: tuple[JobName, ...] = Field(
        default=(),
        description=(
            "Multibranch jobs that build every pull request. If Jenkins missed a push, so that none of "
            "its jobs has a status on the head, `@ci rerun` starts them; `@ci rerun NAME` and `@ci rerun "
            "all` always do."
        ),
        examples=[["tvm-cpu", "tvm-gpu"]],
    )
