"""Groups of a merge queue: GitHub makes a commit for each group, and waits for the required checks on that commit.

No command starts there, so a feature whose check or status a queue may require reports on the group by itself.
https://docs.github.com/webhooks/webhook-events-and-payloads#merge_group
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from bot.config.types import HEADS
from bot.core.events import MERGE_GROUP, Payload, queued_pull

CHECKS_REQUESTED = "checks_requested"
"""The action of `MERGE_GROUP` that requests the checks of a group."""


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """The commit of a group, and the branch that GitHub made for it; `number` is its last pull request, if known."""

    sha: str
    branch: str
    number: int | None

    @classmethod
    def of(cls, payload: Payload) -> Self:
        """Read the group from the payload of a delivery."""
        group = payload.at(MERGE_GROUP)
        ref = group.string("head_ref")
        return cls(group.string("head_sha"), ref.removeprefix(HEADS), queued_pull(ref))
