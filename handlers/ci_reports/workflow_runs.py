"""Read the results of a GitHub Actions workflow at a pull request's head, and at the commit to compare it with.

That is the merge base, or else its nearest ancestor on the base branch, for which a run of the workflow succeeded.
https://docs.github.com/rest/actions/workflow-runs
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.github.text.markdown import code, truncate
from bot.github.transport.pages import PER_PAGE
from handlers.ci_reports import texts
from handlers.ci_reports.artifacts import ARTIFACTS_READER, RunAttempt
from handlers.ci_reports.outcomes import BaseSuite, HeadAndBase

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from bot.github.client import GitHub
    from bot.plan.handler import Context

RUNS = "/repos/{+repo}/actions/workflows/{workflow}/runs{?branch,head_sha,status,per_page}"
COMPARE = "/repos/{+repo}/compare/{base}...{sha}?per_page=1&page=2"
"""The second page: the first one also holds the changes of each file, which are not needed here."""
COMMITS = "/repos/{+repo}/commits{?sha}"
MOST_COMMITS = 1_000
"""The most commits that are searched for one with a run: ten requests. Usually one request is enough."""
OF_PULL_REQUESTS = ("pull_request", "pull_request_target")
"""Events whose runs do not count for the base branch: a branch of a fork may have the same name."""
FINISHED = ("success", "failure", "timed_out", "neutral")
"""Conclusions of runs in which tests may have run."""

SHOWN = 200


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A workflow run that has ended, from its webhook; `ended_at` is in ISO 8601."""

    run: RunAttempt
    workflow: int
    name: str
    ended_at: str
    conclusion: str

    @classmethod
    def of(cls, run: Payload) -> EndedRun:
        """Read a workflow run from a webhook or from the API."""
        attempt = run.integer("run_attempt") if run.has("run_attempt") else 1
        page = RunAttempt(run.integer("id"), attempt, run.string("head_sha"), run.text("html_url"))
        name, ended_at, conclusion = run.text("name"), run.text("updated_at"), run.text("conclusion")
        return cls(page, run.integer("workflow_id"), name, ended_at, conclusion)

    def as_json(self) -> dict[str, Any]:
        """Return the run as JSON, in the form that `of` reads."""
        run = self.run
        return {
            "id": run.id,
            "run_attempt": run.attempt,
            "head_sha": run.sha,
            "html_url": run.url,
            "workflow_id": self.workflow,
            "name": self.name,
            "updated_at": self.ended_at,
            "conclusion": self.conclusion,
        }


async def read_run(
    context: Context, ended: EndedRun, patterns: Sequence[str], branch: str, tested_at: float
) -> HeadAndBase:
    """Return the results of a run, each suite with its base; `branch` is the base branch of the pull request."""
    artifacts, repository = context.part(ARTIFACTS_READER), context.repository.full_name
    head = await artifacts.reports_of(context.github, repository, ended.run, patterns)
    if not head.suites:
        trouble = texts.NO_ARTIFACTS.format(workflow=_code(ended.name), patterns=", ".join(map(_code, patterns)))
        return HeadAndBase(ended.run.sha, tested_at, {}, troubles=head.troubles or (trouble,))
    merge_base, base_run = await _find_base_run(context, ended, branch)
    if base_run is None:
        trouble = texts.NO_BASE.format(
            workflow=_code(ended.name), branch=_code(branch), sha=code(merge_base[:7]), most=PER_PAGE
        )
        return HeadAndBase(ended.run.sha, tested_at, head.suites, troubles=(*head.troubles, trouble))
    base = await artifacts.reports_of(context.github, repository, base_run, patterns)
    missing: tuple[str, ...] = ()
    if not base.suites:
        run = texts.THE_RUN.format(workflow=_code(ended.name), url=base_run.url)
        missing = (texts.BASE_EMPTY.format(run=run, sha=code(base_run.sha[:7])),)
    return HeadAndBase(
        sha=ended.run.sha,
        tested_at=tested_at,
        suites=head.suites,
        bases={name: BaseSuite(base_run.sha, base_run.url, suite) for name, suite in base.suites.items()},
        vanished=tuple(sorted(base.suites.keys() - head.suites.keys() - head.unread)),
        troubles=(*head.troubles, *missing),
    )


async def _find_base_run(context: Context, ended: EndedRun, branch: str) -> tuple[str, RunAttempt | None]:
    """Return the merge base, and the successful run at it or at its nearest ancestor that has one; None for no run."""
    url_vars = {"repo": context.repository.full_name, "base": branch, "sha": ended.run.sha}
    compared = Payload(await context.github.getitem(COMPARE, url_vars=url_vars), "comparison")
    merge_base = compared.string("merge_base_commit", "sha")
    # `status` takes conclusions as well:
    # https://docs.github.com/rest/actions/workflow-runs#list-workflow-runs-for-a-workflow
    filters = {"branch": branch, "status": "success"}
    runs = await _good_runs(context, ended.workflow, {**filters, "head_sha": merge_base})
    if merge_base not in runs:
        runs = await _good_runs(context, ended.workflow, filters)
        # The first one is the merge base itself, which has no run.
        ancestor = await nearest_ancestor(context.github, url_vars["repo"], merge_base, runs)
        return merge_base, runs[ancestor] if ancestor else None
    return merge_base, runs[merge_base]


async def nearest_ancestor(github: GitHub, repository: str, sha: str, commits: Collection[str]) -> str | None:
    """Return the newest of `commits` among the ancestors of `sha`; None if the first `MOST_COMMITS` have none.

    The ancestors come newest first, a hundred a request
    (https://docs.github.com/en/rest/commits/commits#list-commits).
    """
    if not commits:
        return None
    async with aclosing(github.getiter(COMMITS, url_vars={"repo": repository, "sha": sha})) as ancestors:
        read_count = 0
        async for item in ancestors:
            ancestor = Payload(item, "commit").string("sha")
            read_count += 1
            if ancestor in commits and ancestor != sha:
                return ancestor
            if read_count == MOST_COMMITS:
                break
    return None


async def _good_runs(context: Context, workflow: int, filters: Mapping[str, str]) -> dict[str, RunAttempt]:
    """Return a workflow's newest successful runs on a branch, by commit, with one request."""
    url_vars = {"repo": context.repository.full_name, "workflow": str(workflow), "per_page": str(PER_PAGE)}
    answer = Payload(await context.github.getitem(RUNS, url_vars={**url_vars, **filters}), "workflow runs")
    good = [run for run in answer.items("workflow_runs") if run.text("event") not in OF_PULL_REQUESTS]
    # The answer is newest first; reversed, the newest run of a commit replaces its older ones.
    return {run.string("head_sha"): EndedRun.of(run).run for run in reversed(good)}


def _code(text: str) -> str:
    return code(truncate(text, SHOWN))
