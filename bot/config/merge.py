"""The keys below `merge`: what has to be so before a pull request is merged, and how it is merged then."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from bot.config.keys import Keys
from bot.config.texts import HOLDING_LABEL
from bot.config.types import Pattern, Says
from bot.core.schedule import Every

SCAN_SECONDS = 15 * 60
"""How often pending merges are checked, in case an event was lost."""


Method = Literal["squash", "merge", "rebase"]

LabelName = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,48}[^\s\x00-\x1f\x7f])?$"),
    Says("the name of a label, up to 50 characters in one line, as in ready-for-merge"),
]


class Merge(Keys):
    """`@ci merge`: people with write access merge a pull request by a comment, now or when everything is green."""

    required: tuple[Pattern, ...] = Field(
        default=(),
        description=(
            "What must be green on the head, beside what the branch's own rules require: contexts of commit statuses "
            "and names of check runs. Each pattern must match at least one, and all that match must be green; success, "
            "neutral and skipped are. A pattern also needs every name that it matched on the newest commits of the "
            "base branch and on the heads of the pull requests that brought them, back to the first that has been "
            "green for two hours. What the bot itself reports never counts. Without this key, and without rules of the "
            "branch, everything that is reported must be green, and something must be."
        ),
        examples=[["*/pr-head"]],
    )
    method: Method = Field(
        default="squash",
        description="How it is merged; the repository, and the branch's rules, must allow it.",
        examples=["squash"],
    )
    hold_labels: tuple[LabelName, ...] = Field(
        default=("hold",),
        description="Labels that keep a pull request from being merged. Upper and lower case are the same.",
        examples=[["hold"]],
    )
    label: LabelName | None = Field(
        default=None,
        description=(
            "A label that the bot puts on pull requests that could be merged as they are, and takes off others. "
            "Without this key it keeps none."
        ),
        examples=["ready-for-merge"],
    )

    @model_validator(mode="after")
    def _label_is_no_hold_label(self) -> Self:
        """Raise ValueError if the label that says "ready" is one that blocks a merge."""
        if self.label is not None and self.label.lower() in {held.lower() for held in self.hold_labels}:
            raise ValueError(HOLDING_LABEL)
        return self

    @property
    def schedule(self) -> Every:
        """Return when pending merges are checked."""
        return Every(SCAN_SECONDS)
