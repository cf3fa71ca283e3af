"""The last word on a night: what is known of the branch that labs test, where they and people look for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from bot.config.nightly import STATUS
from bot.effects.statuses import SetStatus
from bot.github.access import ISSUES, NO_PERMISSIONS, STATUSES, WritePermissions
from bot.plan.effect import Applied, Effect, EffectContext
from handlers.branches.decide import Step
from handlers.branches.effects import NOT_MOVED, aim_of, how_it_ended, keep, tell_of_trouble
from handlers.branches.record import NIGHTLY, TRACKING, TRACKING_STEP

DESCRIPTION = "the branch {branch} moved here on {day}, for labs to test"
BODY = """\
Labs test the commit at the head of `{branch}`, which I move every day to a newer commit of `{source}`. But {trouble}.

I try again every hour and every day, and close this issue when it works."""

FILE = "nightly.json"
FOR_LABS = ("branch", "sha", "previous_sha", "moved_at", "commits")
"""What labs read of the record. It changes when the branch does, so that whoever watches the file is told of that."""
NO_LABS = "app.yaml has no results for this repository any more"
PUBLISHED, SAYS_SO = f"{FILE} says now where the branch is", f"{FILE} says so already"


@dataclass(frozen=True, slots=True)
class ConcludeNightly:
    """Look how the move went and where the branch is now, and tell labs, the commit, and people if need be.

    `day` is the one on which the timer was due, in its time zone and in ISO 8601.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    step: Step
    day: str

    @property
    def target(self) -> str:
        """The branch."""
        return f"{NIGHTLY}:{self.step.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Keep what is known first, then write the issue; the rest are effects of their own.

        So where the bucket is away or closed to us, or the commit takes no status, all else is done.
        """
        aim = await aim_of(context, NIGHTLY, self.step, day=self.day)
        ended = await how_it_ended(context, self.step)
        if ended is None:
            return Applied(NOT_MOVED, changed=False)
        await keep(context, NIGHTLY, self.step, ended, aim)
        then: tuple[Effect, ...] = (PublishNightly(),) if context.config.results is not None else ()
        if aim and ended.head == aim["sha"] and not aim.get("marked"):
            description = DESCRIPTION.format(branch=self.step.branch, day=aim["day"])
            then = (MarkNightly(aim["sha"], description), *then)
        return replace(await tell_of_trouble(context, NIGHTLY, self.step, ended, BODY), then=then)


@dataclass(frozen=True, slots=True)
class MarkNightly:
    """Set the status of the commit that the branch was moved to, and note that it has it.

    As long as that is not noted, each look tries again, so that no commit that labs test is without it for long.
    """

    permissions: ClassVar[WritePermissions] = frozenset({STATUSES})

    sha: str
    description: str

    @property
    def target(self) -> str:
        """The commit and the context."""
        return f"status:{self.sha}:{STATUS}"

    async def apply(self, context: EffectContext) -> Applied:
        """Set it unless it is there, and only then note it."""
        applied = await SetStatus(self.sha, STATUS, "success", self.description).apply(context)
        key = TRACKING_STEP.of(NIGHTLY, context.repository.id)
        aim = await context.records.get(key) or {}
        if aim.get("sha") == self.sha:
            await context.records.put(key, {**aim, "marked": True})
        return applied


@dataclass(frozen=True, slots=True)
class PublishNightly:
    """Have `nightly.json`, beside the folders of the repository's labs, say what is known of the branch."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    @property
    def target(self) -> str:
        """The file: a repository has one."""
        return FILE

    async def apply(self, context: EffectContext) -> Applied:
        """Compare the file with the record, and write it where it says something else."""
        if context.config.results is None:
            return Applied(NO_LABS, changed=False)
        known = await context.records.get(TRACKING.of(NIGHTLY, context.repository.id)) or {}
        name = context.repository.full_name
        document = {"repository": name, **{member: known.get(member) for member in FOR_LABS}}
        written = await context.results.publish(name, context.config.results, FILE, document)
        return Applied(PUBLISHED if written else SAYS_SO, changed=written)
