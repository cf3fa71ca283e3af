"""Looks at a branch: asked for by whatever tells of a change, a moment after the first of them, and made one by one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from bot.engine.records import Record
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext

LOOK_DUE = "nightjar.look"
"""A branch is to be looked at. GitHub's events have no dot: nobody can send one."""

ASKED = "{branch} is looked at"
ASKED_ALREADY = "{branch} is looked at soon in any case"


@dataclass(frozen=True, slots=True)
class NextScan:
    """When a branch is scanned next, or was last, in seconds since 1970."""

    due: float


NEXT_SCAN = Record("main-failures-scan", 1, NextScan, "when a watched branch is scanned next", days=90)


@dataclass(frozen=True, slots=True)
class RequestScan:
    """Have a branch looked at, `wait` seconds after the moment `at` (in seconds since 1970).

    Whoever asks for one while it waits has asked for the same. Without a `wait` it is made in any case. `asked` names
    who asks: the GUID of a delivery.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    branch: str
    asked: str
    at: float
    wait: float = 0.0

    @property
    def target(self) -> str:
        """The branch."""
        return f"look:{self.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Announce it as a delivery of our own, which happens once, and note when it is due."""
        number = context.repository.id
        key = NEXT_SCAN.of(number, self.branch)
        if self.wait and is_scan_pending(await context.records.get(key), self.at, self.wait):
            return Applied(ASKED_ALREADY.format(branch=self.branch), changed=False)
        due = self.at + self.wait
        body = {
            "action": "",
            "repository": {"id": number, "full_name": context.repository.full_name},
            "look": {"branch": self.branch, "at": int(due)},
        }
        guid, lock = f"look:{number}:{self.branch}:{self.asked}", f"alarms:{number}:{self.branch}"
        not_before = due if self.wait else None
        new = await context.announce(guid, LOOK_DUE, json.dumps(body), lock, not_before=not_before)
        if self.wait:
            await context.records.put(key, NextScan(due))
        return Applied(ASKED.format(branch=self.branch), changed=new)


def is_scan_pending(record: NextScan | None, at: float, wait: float) -> bool:
    """Tell whether a look is still to come that will see what happened at a moment, so that none has to be asked for.

    One that is further away than the `wait` is not counted on: a clock was changed, or app.yaml.
    """
    return record is not None and 0 <= record.due - at <= wait
