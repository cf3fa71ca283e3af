"""The last word on a night: what is known of the branch that labs test, where they and people look for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.effects.base import Applied, EffectContext
from bot.effects.following import NOT_MOVED, how_it_ended, keep, tell_of_trouble
from bot.effects.statuses import SetStatus
from bot.following.decide import Step
from bot.following.kept import NIGHTLY, record_key

STATUS = "nightly"
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

    step: Step
    day: str

    @property
    def target(self) -> str:
        """The branch."""
        return f"{NIGHTLY}:{self.step.branch}"

    async def apply(self, context: EffectContext) -> Applied:
        """Keep what is known first, then write the status and the issue; each of it looks before it writes."""
        ended = await how_it_ended(context, self.step)
        if ended is None:
            return Applied(NOT_MOVED, changed=False)
        await keep(context, NIGHTLY, self.step, ended)
        if self.step.chosen and ended.head == self.step.chosen:
            description = DESCRIPTION.format(branch=self.step.branch, day=self.day)
            await SetStatus(self.step.chosen, STATUS, "success", description).apply(context)
        # An effect of its own: where the bucket is away or closed to us, all of the above is done.
        then = (PublishNightly(),) if context.config.results is not None else ()
        return replace(await tell_of_trouble(context, NIGHTLY, self.step, ended, BODY), then=then)


@dataclass(frozen=True, slots=True)
class PublishNightly:
    """Have `nightly.json`, beside the folders of the repository's labs, say what is known of the branch."""

    @property
    def target(self) -> str:
        """The file: a repository has one."""
        return FILE

    async def apply(self, context: EffectContext) -> Applied:
        """Compare the file with the record, and write it where it says something else."""
        if context.config.results is None:
            return Applied(NO_LABS, changed=False)
        known = await context.records.get(record_key(NIGHTLY, context.repository.id)) or {}
        name = context.repository.full_name
        document = {"repository": name, **{member: known.get(member) for member in FOR_LABS}}
        written = await context.results.publish(name, context.config.results, FILE, document)
        return Applied(PUBLISHED if written else SAYS_SO, changed=written)
