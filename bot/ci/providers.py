"""All CIs of a repository at once: what ran on a commit, wherever it ran."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.ci.actions import Actions
from bot.ci.base import CiProvider, CiRun, CiRunPart
from bot.ci.jenkins import JenkinsProvider
from bot.ci.jenkins_builds import JENKINS
from bot.ci.listing import ListingDenied
from bot.ci.restarts import PullOrigin
from bot.ci.texts import cannot_see
from bot.core.errors import UserError
from bot.github.ours import Ours

if TYPE_CHECKING:
    from bot.core.events import PullRequest
    from bot.plan.effect import Effect
    from bot.plan.handler import Context


@dataclass(frozen=True, slots=True)
class FoundCiRuns:
    """What ran on a commit; `troubles` say, for people, which part of it could not be seen."""

    runs: tuple[CiRun, ...]
    troubles: tuple[str, ...]
    providers: Mapping[str, CiProvider]

    def rerun(self, run: CiRun, *, failed_only: bool, part: CiRunPart | None = None) -> Effect:
        """Return the effect that has the run's own provider run it again."""
        return self.providers[run.provider].rerun(run, failed_only=failed_only, part=part)


def providers_for(context: Context, pull: PullRequest, asked_at: str) -> tuple[CiProvider, ...]:
    """Return the CIs that a pull request may have run on; `asked_at` (ISO 8601) is when a person asked for a rerun."""
    config = context.config
    jenkins = JenkinsProvider(
        servers=tuple(server.url for server in config.jenkins),
        number=pull.number,
        ours=Ours.of(context.me, config),
        asked_at=asked_at,
        builds=context.part(JENKINS),
        expected=tuple((server.url, job) for server in config.jenkins for job in server.jobs),
    )
    return Actions(own_app_id=context.me.app_id, origin=PullOrigin.of(pull)), jenkins


async def find_runs(context: Context, pull: PullRequest, asked_at: str) -> FoundCiRuns:
    """List what ran on the head of a pull request, in three requests unless a list goes over more than one page.

    Jenkins gets one more for each build whose status is pending.

    A CI that GitHub does not let us see becomes a trouble, and the others are found all the same.
    """
    providers = providers_for(context, pull, asked_at)
    results: Sequence[list[CiRun] | BaseException] = await asyncio.gather(
        *(provider.runs(context.github, context.repository.full_name, pull.head_sha) for provider in providers),
        return_exceptions=True,
    )
    runs: list[CiRun] = []
    troubles: list[str] = []
    denied: list[str] = []
    for result in results:
        if isinstance(result, ListingDenied):
            denied.append(result.permission)
        elif isinstance(result, UserError):
            troubles.append(str(result))
        # Anything else is no matter of one CI: the job fails, and is tried again if that may help.
        elif isinstance(result, BaseException):
            raise result
        else:
            runs += result
    if denied:
        troubles.append(cannot_see(denied))
    return FoundCiRuns(
        tuple(runs), tuple(dict.fromkeys(troubles)), {provider.title: provider for provider in providers}
    )
