"""List the runs of all CIs of a repository on a commit."""

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
from bot.github.commits.ours import Ours

if TYPE_CHECKING:
    from bot.core.events import PullRequest
    from bot.plan.effect import Effect
    from bot.plan.handler import Context


@dataclass(frozen=True, slots=True)
class FoundCiRuns:
    """The runs on a commit; `troubles` tell people which runs could not be listed."""

    runs: tuple[CiRun, ...]
    troubles: tuple[str, ...]
    providers: Mapping[str, CiProvider]

    def rerun(self, run: CiRun, *, failed_only: bool, part: CiRunPart | None = None) -> Effect:
        """Return the effect that reruns a run with its own provider."""
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
    """List the runs on the head of a pull request, in three requests if each list fits one page.

    For each build with a pending status, there is one more request to Jenkins. If GitHub does not show the runs of one
    CI, this becomes a trouble, and the runs of the others are listed.
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
        # Any other error fails the job, which is retried if that may help.
        elif isinstance(result, BaseException):
            raise result
        else:
            runs += result
    if denied:
        troubles.append(cannot_see(denied))
    return FoundCiRuns(
        tuple(runs), tuple(dict.fromkeys(troubles)), {provider.title: provider for provider in providers}
    )
