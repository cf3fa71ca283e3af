"""Open the pull request of a muted test, and remember it for the page of the test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bot.core.payload import Payload
from bot.effects.pulls import OURS, EnsurePull
from bot.github.access import WritePermissions
from bot.github.client import GitHub
from bot.plan.effect import Applied, EffectContext
from handlers.mute.records import MUTED_TEST, MuteOutcome, MuteRequest


@dataclass(frozen=True, slots=True)
class ProposeMute:
    """Ensure the pull request of a request, and store its number once GitHub has it."""

    permissions: ClassVar[WritePermissions] = EnsurePull.permissions

    request: MuteRequest
    pull: EnsurePull

    @property
    def effect_key(self) -> str:
        """The branch."""
        return self.pull.effect_key

    async def apply(self, context: EffectContext) -> Applied:
        """Ensure the pull request, then store its number. Raises the same errors as `EnsurePull`."""
        applied = await self.pull.apply(context)
        number = await open_pull(context.github, context.repository.full_name, self.request)
        record = MUTED_TEST.of(context.repository.id, self.request.digest)
        await context.records.put(record, MuteOutcome(self.request, number))
        return applied


async def open_pull(github: GitHub, repository: str, request: MuteRequest) -> int:
    """Return the number of the open pull request of a test, 0 if there is none."""
    owner = repository.partition("/")[0]
    url_vars = {"repo": repository, "head": f"{owner}:{request.branch}", "state": "open"}
    pulls = [Payload(pull, "pull_request") for pull in await github.getitem(OURS, url_vars=url_vars)]
    return next((pull.integer("number") for pull in pulls), 0)
