"""The key `ci`: the project's steps, which `nightjar ci local` runs. The server never runs one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Says, Shared

_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$"

StepName = Annotated[
    str,
    StringConstraints(pattern=_NAME),
    Says("the name of a step of letters, digits, - and _, as in unit"),
]
StepCommand = Annotated[
    str,
    StringConstraints(max_length=2000, pattern=r"^[^\x00-\x08\x0b-\x1f\x7f]+$"),
    Says("a shell command of up to 2,000 characters, as in pytest tests/unit"),
]
ImageName = Annotated[
    str,
    StringConstraints(pattern=_NAME),
    Says("the name of an image in the file of images, as in ci_cpu"),
]


class CiSteps(Keys):
    """The project's own steps of CI, for people who run them in a checkout."""

    steps: Shared[Mapping[StepName, StepCommand]] = Field(
        default={},
        description=(
            "The command of each step. `nightjar ci local STEP` runs it in the top folder of a checkout; the bot "
            "runs none."
        ),
        examples=[{"unit": "pytest tests/unit"}],
    )
    images: Shared[Mapping[StepName, ImageName]] = Field(
        default={},
        description=(
            "The Docker images in which steps run, by their names in `docker_update: file`, if the machine has Docker "
            "or Podman. Other steps run on the machine itself."
        ),
        examples=[{"unit": "ci_cpu"}],
    )


CI = ConfigKey(
    "ci",
    CiSteps,
    description="Names the project's own steps of CI, which `nightjar ci local` runs in a checkout.",
    example={"steps": {"unit": "pytest tests/unit"}},
    position=155,
    shared=True,
)
KEYS = (CI,)
