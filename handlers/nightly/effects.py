"""Report the nightly branch to labs: by a status on its commit, and by a file next to the folders of their results.

Labs have credentials for the bucket, but may not reach the bot's API. So `nightly.json` in the bucket, in the folder
that contains the labs' folders, says where the branch is. It does not say when the bot last scanned, or why the branch
did not move, so it changes only when the branch moves: S3 can notify a lab, and each notification means a new commit to
test.

This is the only object that the bot overwrites; the bucket's write-once rule begins one folder deeper. Each write names
the version that it replaces (`If-Match`), so a stalled worker cannot overwrite a newer file. The write is the last
effect of the plan: a bucket that refuses it blocks neither the branch nor its status or issue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from bot.effects.statuses import ensure_status
from bot.github.access import NO_PERMISSIONS, STATUSES, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.service import RESULTS
from handlers.nightly.config import STATUS
from handlers.nightly.texts import FILE_SAME, FILE_WRITTEN, NO_LABS
from handlers.results.config import LAB_RESULTS
from handlers.tracking_branches.records import NIGHTLY, TRACKING_STEP

FILE = "nightly.json"
FOR_LABS = ("branch", "sha", "previous_sha", "moved_at", "commits")
"""Fields of the record in the labs' file. They change only when the branch moves, so labs can watch the file."""


@dataclass(frozen=True, slots=True)
class MarkNightly:
    """Set the status of the commit that the branch was moved to, and note that the status is set.

    Until that is noted, each scan tries again, so that no commit that labs test lacks the status for long.
    """

    permissions: ClassVar[WritePermissions] = frozenset({STATUSES})

    sha: str
    description: str
    target_url: str = ""

    @property
    def effect_key(self) -> str:
        """The commit and the context."""
        return f"status:{self.sha}:{STATUS}"

    async def apply(self, context: EffectContext) -> Applied:
        """Set the status unless it is set, and note it afterwards."""
        applied = await ensure_status(context, self.sha, STATUS, "success", self.description, self.target_url)
        key = TRACKING_STEP.of(NIGHTLY, context.repository.id)
        aim = await context.records.get(key)
        # The branch may have moved on before this status was set.
        if aim is not None and aim["sha"] == self.sha:
            await context.records.put(key, {**aim, "marked": True})
        return applied


@dataclass(frozen=True, slots=True)
class PublishNightly:
    """Write what is known about the branch to `nightly.json`, next to the folders of the repository's labs."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    known: Mapping[str, Any]
    """The content of the file: the members `FOR_LABS`."""

    @property
    def effect_key(self) -> str:
        """The file; each repository has one."""
        return FILE

    async def apply(self, context: EffectContext) -> Applied:
        """Read the file, and write it if its content differs."""
        results = context.config.of(LAB_RESULTS)
        if results is None:
            return Applied(NO_LABS, changed=False)
        name = context.repository.full_name
        document = {"repository": name, **self.known}
        is_written = await context.part(RESULTS).publish(name, results, FILE, document)
        return Applied((FILE_WRITTEN if is_written else FILE_SAME).format(file=FILE), changed=is_written)
