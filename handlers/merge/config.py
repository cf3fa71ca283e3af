"""The key `merge`: the conditions under which the bot merges a pull request, and how it merges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, Self

from pydantic import Field, model_validator

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import LabelName, Pattern
from bot.core.schedule import FixedInterval
from handlers.merge.texts import HOLDING_LABEL, NOTHING_REQUIRED

SCAN_SECONDS = 15 * 60
"""Seconds between two scans of pending merges: a scan finds those whose event was lost."""

Method = Literal["squash", "merge", "rebase"]


class Merge(Keys):
    """`@ci merge`: people with write access merge a pull request by a comment, now or when everything is green."""

    required: tuple[Pattern, ...] = Field(
        default=(),
        description=(
            "What must be green on the head, in addition to the branch's rules: status contexts and check "
            "run names. Each pattern must match at least one, and all matches must be `success`, "
            "`neutral` or `skipped`. A pattern also requires the names that it matched on the newest "
            "green commits of the base branch. The bot's own statuses and check runs never count. Without "
            "this key and without branch rules, everything reported must be green, and something must be "
            "reported."
        ),
        examples=[["*/pr-head"]],
    )
    method: Method = Field(
        default="squash",
        description="The merge method. The repository and the branch's rules must allow it.",
        examples=["squash"],
    )
    hold_labels: tuple[LabelName, ...] = Field(
        default=("hold",),
        description="Labels that block a merge. Case doesn't matter.",
        examples=[["hold"]],
    )
    label: LabelName | None = Field(
        default=None,
        description="A label for pull requests that can be merged now. Without this key: none.",
        examples=["ready-for-merge"],
    )

    @model_validator(mode="after")
    def _label_is_no_hold_label(self) -> Self:
        """Raise ValueError if the label that says "ready" is one that blocks a merge."""
        if self.label is not None and self.label.lower() in {held.lower() for held in self.hold_labels}:
            raise ValueError(HOLDING_LABEL)
        return self

    @property
    def schedule(self) -> FixedInterval:
        """Return when pending merges are checked."""
        return FixedInterval(SCAN_SECONDS)


def _warn(merge: Merge) -> Iterator[str]:
    """Yield a warning if app.yaml requires nothing before a merge."""
    if not merge.required:
        yield NOTHING_REQUIRED


MERGE = ConfigKey(
    "merge",
    Merge,
    description="`@ci merge` merges a pull request now or when it is green, for people with write access.",
    example={"required": ["*/pr-head"], "method": "squash", "hold_labels": ["hold"]},
    position=100,
    timer="merges",
    requires="required",
    warn=_warn,
)
KEYS = (MERGE,)
