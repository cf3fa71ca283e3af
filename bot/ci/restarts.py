"""Decide which workflow runs a command on a pull request may start: only the pull request's own.

GitHub lists workflow runs by commit. A commit may be the head of a pull request, of a release branch and of a tag, so
the list may contain deployments. A pull request whose head is a commit of `main` must not start these again.

Every earlier bot had a list of jobs, and every list became outdated. So this bot reads from the commit which jobs
exist. But a link in a status is text from outside: a status that links to `/job/deploy/1/` must not let a comment start
a deployment. The effect checks the rule again before it writes.

- A Jenkins job is started only if the status links to a server that `app.yaml` names and to the pull request's own
  multibranch job: `PR-12`, `PR-12-head` or `PR-12-merge`.
- A workflow run is started only if an event of the pull request started it (`pull_request`, `merge_group`), and its
  head repository and branch are the pull request's.
- The answer names every job that the bot did not start, with the reason.

An approval is not a rerun. GitHub would start a run that waits for approval (`action_required`) for whoever requests a
rerun, so `@ci rerun` leaves it alone. `@ci approve ci` approves it: that needs the write role, which `rerun: allow:`
cannot lower, and applies to one commit.

A build that was aborted may leave its status pending. The bot asks Jenkins about at most 20 pending builds of the pull
request's jobs, five seconds each. A finished build that is not green counts as failed; without a clear answer a build
counts as running. Merges use the status, as GitHub's rules do; `@ci rerun` replaces a status that stays pending.

GitHub counts attempts, so a rerun is never repeated. A Jenkins job counts as started if it is queued, building, or has
a build newer than the link and the command. If no status on the head links to a build, a build that began before the
command does not count, because it is of an older head. If Jenkins' clock is some minutes behind and the bot crashes
right after the request, it may start a second build.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.ci.texts import AWAITS_APPROVAL, NO_FORK, OTHER_BRANCH, OTHER_EVENT
from bot.github.text.markdown import code, truncate

if TYPE_CHECKING:
    from bot.core.events import Payload, PullRequest

ACTION_REQUIRED = "action_required"
"""The conclusion of a run that GitHub starts only after somebody with write access has approved it.

https://docs.github.com/en/actions/how-tos/manage-workflow-runs/approve-runs-from-forks
"""

_LONGEST_BRANCH = 100


@dataclass(frozen=True, slots=True)
class PullOrigin:
    """The head and the base of a pull request.

    Repositories are identified by ID, because names change. `head_repository_id` is 0 if the fork was deleted.
    """

    number: int
    repository_id: int
    base_ref: str
    head_repository_id: int
    head_branch: str

    @classmethod
    def of(cls, pull: PullRequest) -> PullOrigin:
        """Read the origin of a pull request."""
        return cls(pull.number, pull.repository_id, pull.base_ref, pull.head_repository_id, pull.head_branch)


def why_not_restart(run: Payload, origin: PullOrigin) -> str:
    """Say why a command about a pull request must not start a workflow run; empty if it may.

    `run` is a `workflow-run` of GitHub's API. The answer is the end of a sentence, in Markdown. A run may be started if
    an event of the pull request itself started it (`pull_request`, or `merge_group` for its place in the merge queue)
    and it does not wait for approval. All other events leave it alone: `push`, `schedule`, `workflow_dispatch`,
    `release` and `deployment` runs may deploy, and `pull_request_target` runs have the repository's secrets.
    https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows
    """
    if reason := why_not_own(run, origin):
        return reason
    return AWAITS_APPROVAL if run.text("conclusion") == ACTION_REQUIRED else ""


def why_not_own(run: Payload, origin: PullOrigin) -> str:
    """Say why a workflow run is not the pull request's own; empty if it is."""
    event, branch = run.text("event"), run.text("head_branch")
    repository = run.integer("head_repository", "id") if run.has("head_repository", "id") else 0
    match event:
        case "pull_request":
            # GitHub names no repository for a deleted fork, so two IDs of 0 may be different forks.
            if not repository or not origin.head_repository_id:
                return NO_FORK
            is_own = (repository, branch) == (origin.head_repository_id, origin.head_branch)
        case "merge_group":
            # https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue
            group = f"gh-readonly-queue/{origin.base_ref}/pr-{origin.number}-"
            is_own = repository == origin.repository_id and branch.startswith(group)
        case _:
            return OTHER_EVENT.format(event=code(event))
    return "" if is_own else OTHER_BRANCH.format(branch=code(truncate(branch, _LONGEST_BRANCH)))
