"""The keys of a branch that tracks another one."""

from __future__ import annotations

from typing import Self

from pydantic import Field, create_model, model_validator

from bot.config.keys import Keys
from bot.config.types import BranchName
from handlers.tracking_branches.texts import TRACKS_ITSELF

# `from` is a keyword of Python, so a class cannot declare it as a field.
_From = create_model(
    "_From",
    __base__=Keys,
    **{
        "from": (
            BranchName,
            Field(default="main", description="The branch that the commits come from.", examples=["main"]),
        )
    },  # type: ignore[call-overload]
)


class TrackingBranch(_From):
    """A branch that tracks another one, `from`."""

    branch: BranchName

    @model_validator(mode="after")
    def _two_branches(self) -> Self:
        """Raise ValueError if the branch tracks itself: it would never move."""
        if self.branch == self.source:
            raise ValueError(TRACKS_ITSELF)
        return self

    @property
    def source(self) -> str:
        """Return the branch that the commits come from, `from`."""
        return str(getattr(self, "from"))
