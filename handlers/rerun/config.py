"""The key `rerun`: who may run CI again, and on which Jenkins servers."""

from __future__ import annotations

from pydantic import Field

from bot.config.jenkins import JenkinsServer
from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Role, Shared


class Rerun(Keys):
    """`@ci rerun`: the bot runs again what failed on a pull request's head."""

    allow: Shared[tuple[Role, ...]] = Field(
        default=("author", "triage"),
        min_length=1,
        description=(
            "Who may use the command: the pull request's author (`author`), and people with one of these "
            "roles or a higher one."
        ),
        examples=[["author", "triage"]],
    )
    jenkins: tuple[JenkinsServer, ...] = Field(
        default=(),
        description="Jenkins servers whose jobs the bot may start. GitHub Actions needs no entry.",
        examples=[[{"url": "https://ci.example.org"}]],
    )


RERUN = ConfigKey(
    "rerun",
    Rerun,
    description="`@ci rerun` reruns failed jobs of a pull request's head.",
    example={"jenkins": [{"url": "https://ci.example.org"}]},
    position=20,
    shared=True,
    on_by_default=True,
    jenkins=lambda rerun: rerun.jenkins,
)
KEYS = (RERUN,)
