"""The key `skip_ci`: which pull requests CI may skip."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Pattern, Says, Shared, StatusContext

TitleTag = Annotated[
    str,
    StringConstraints(
        max_length=50, pattern=r"^(?:[^\s\[\]\x00-\x1f\x7f](?:[^\[\]\x00-\x1f\x7f]*[^\s\[\]\x00-\x1f\x7f])?)?$"
    ),
    Says("the text between brackets, up to 50 characters in one line, as in skip ci, or empty"),
]


class SkipCi(Keys):
    """CI may skip a pull request because of its title or its changed files."""

    title_tag: Shared[TitleTag] = Field(
        default="skip ci",
        description=(
            "Text in brackets in a title that skips CI, as in `[skip ci]`. Case doesn't matter. Empty: "
            "titles don't count."
        ),
        examples=["skip ci"],
    )
    globs: Shared[tuple[Pattern, ...]] = Field(
        default=(),
        description="Files that don't matter to CI. CI may skip a pull request that changes only these.",
        examples=[["*.md", ".github/*", "LICENSE"]],
    )
    docs: Shared[tuple[Pattern, ...]] = Field(
        default=("docs/*",),
        description="Documentation files, which don't matter to CI either. An empty list: none.",
        examples=[["docs/*"]],
    )
    status: StatusContext = Field(
        default="ci/skip",
        description="Context of the commit status that shows whether CI is skipped, and why. It never fails.",
        examples=["ci/skip"],
    )


SKIP_CI = ConfigKey(
    "skip_ci",
    SkipCi,
    description="Lets CI skip a pull request because of its title or its changed files.",
    example={"title_tag": "skip ci", "globs": ["*.md", ".github/*", "LICENSE"]},
    position=140,
    contexts=lambda skip_ci: (skip_ci.status,),
)
KEYS = (SKIP_CI,)
