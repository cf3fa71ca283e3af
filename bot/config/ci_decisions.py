"""The keys below `skip_ci` and `rebuild_docker`: when CI has nothing to do for a pull request, and when much."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.types import Pattern, Says, Shared, StatusContext

TitleTag = Annotated[
    str,
    StringConstraints(
        max_length=50, pattern=r"^(?:[^\s\[\]\x00-\x1f\x7f](?:[^\[\]\x00-\x1f\x7f]*[^\s\[\]\x00-\x1f\x7f])?)?$"
    ),
    Says("what stands between brackets, up to 50 characters in one line, as in skip ci, or nothing"),
]


class SkipCi(Keys):
    """CI may skip a pull request: its title says so, or nothing that it changes matters to CI."""

    title_tag: Shared[TitleTag] = Field(
        default="skip ci",
        description=(
            "What in brackets in a title, as in `[skip ci]`, skips CI. Upper and lower case are the same. "
            "Empty: titles do not count."
        ),
        examples=["skip ci"],
    )
    globs: Shared[tuple[Pattern, ...]] = Field(
        default=(),
        description="Files that do not matter to CI. Where all that a pull request changes are such, CI may skip it.",
        examples=[["*.md", ".github/*", "LICENSE"]],
    )
    docs: Shared[tuple[Pattern, ...]] = Field(
        default=("docs/*",),
        description="Files that are documentation, which do not matter to CI either. An empty list: none.",
        examples=[["docs/*"]],
    )
    status: StatusContext = Field(
        default="ci/skip",
        description="Context of the commit status that tells whether CI is skipped, and why. It never fails.",
        examples=["ci/skip"],
    )


class RebuildDocker(Keys):
    """CI builds Docker images anew where a pull request changes what they are made of."""

    paths: Shared[tuple[Pattern, ...]] = Field(
        default=("docker/*",),
        min_length=1,
        description="Files that Docker images are made of. `*` stands for anything, a slash too.",
        examples=[["docker/*"]],
    )
    ignore: Shared[tuple[Pattern, ...]] = Field(
        default=("*.md",),
        description="Those among them that no image is made of.",
        examples=[["*.md", "docker/bash.sh"]],
    )
