"""What a branch requires of those who merge into it: the rules of a ruleset, and its merge queue.

https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import ApiError

if TYPE_CHECKING:
    from .pulls import PullRequest
    from .users import User

GOOD_CONCLUSIONS = frozenset({"success", "neutral", "skipped"})
METHODS = ("merge", "squash", "rebase")

NEEDS_QUEUE = "Changes must be made through the merge queue"
NOT_ALLOWED = "{method} merges are not allowed on this repository."
FORBIDDEN_METHOD = "Repository rule violations found\n\nThis branch must not be merged with {method}"
EXPECTED = 'Required status check "{name}" is expected.'
OUT_OF_DATE = "Head branch is out of date with the base branch."
UNAPPROVED = "At least {count} approving review is required by reviewers with write access."
ALREADY_QUEUED = "Pull request is already in the queue"
NOT_QUEUEABLE = "Pull request is not mergeable"


@dataclass
class Rules:
    """The rules of one ruleset for one branch; `required` are names with the App that must report them, or None."""

    required: Mapping[str, int | None] = field(default_factory=dict)
    approvals: int | None = None
    methods: tuple[str, ...] = METHODS
    queue: bool = False
    strict: bool = False
    """Whether a head must have all commits of the base."""


@dataclass(eq=False)
class QueueEntry:
    """A pull request in a merge queue: which head was put there, and by whom."""

    pull: PullRequest
    head_sha: str
    enqueuer: User


def check(pull: PullRequest, method: str) -> None:
    """Raise GitHub's 405 `ApiError` where classic protection or a rule forbids a merge right now."""
    repository = pull.repository
    if method not in repository.merge_methods:
        raise ApiError(405, NOT_ALLOWED.format(method=method.capitalize()))
    if pull.queue is not None:
        raise ApiError(405, NEEDS_QUEUE)
    check_head(pull)
    rules = repository.rules.get(pull.base_ref, Rules())
    if method not in rules.methods:
        raise ApiError(405, FORBIDDEN_METHOD.format(method=method))


def check_head(pull: PullRequest) -> None:
    """Raise GitHub's 405 `ApiError` where the head itself is not fit to be merged."""
    repository = pull.repository
    rules = repository.rules.get(pull.base_ref, Rules())
    classic = dict.fromkeys(repository.protected.get(pull.base_ref, ()))
    for name, app in [*classic.items(), *rules.required.items()]:
        if not _passed(pull, name, app):
            raise ApiError(405, EXPECTED.format(name=name))
    if is_behind(pull):
        raise ApiError(405, OUT_OF_DATE)
    needed = max(rules.approvals or 0, repository.approvals.get(pull.base_ref, 0))
    if needed and len(_approvals(pull)) < needed:
        raise ApiError(405, UNAPPROVED.format(count=needed))


def is_behind(pull: PullRequest) -> bool:
    """Say whether a rule requires commits of the base that the head lacks: `mergeable_state` `behind`."""
    repository = pull.repository
    strict = repository.rules.get(pull.base_ref, Rules()).strict
    return strict and not repository.git.contains(pull.head_sha, repository.branch(pull.base_ref))


def is_blocked(pull: PullRequest) -> bool:
    """Say whether protection or a rule keeps an open pull request from being merged: `mergeable_state` `blocked`."""
    try:
        check_head(pull)
    except ApiError as error:
        return pull.state == "open" and error.message != OUT_OF_DATE
    return False


def _passed(pull: PullRequest, name: str, app: int | None) -> bool:
    repository, apps = pull.repository, {found.bot: found.id for found in pull.github.every_app}
    reported = [
        (apps.get(status.creator), status.state == "success")
        for status in repository.statuses(pull.head_sha)
        if status.context == name
    ]
    newest = {run.app.id: run for run in sorted(repository.check_runs(pull.head_sha, name), key=lambda run: run.id)}
    reported += [(source, run.conclusion in GOOD_CONCLUSIONS) for source, run in newest.items()]
    mine = [good for source, good in reported if app in (None, source)]
    return bool(mine) and all(mine)


def _approvals(pull: PullRequest) -> set[User]:
    latest = {review.user: review.state for review in pull.reviews if review.state not in {"COMMENTED", "PENDING"}}
    may = {user for user in latest if pull.repository.role(user) in {"write", "maintain", "admin"}}
    return {user for user in may if latest[user] == "APPROVED" and user is not pull.user}


def as_json(rules: Rules, source: str) -> list[dict[str, Any]]:
    """Return the rules as `GET rules/branches/{branch}` lists them, each a `repository-rule-detailed`."""
    found: list[dict[str, Any]] = []
    if rules.required:
        checks = [{"context": n, **({"integration_id": app} if app else {})} for n, app in rules.required.items()]
        parameters = {"required_status_checks": checks, "strict_required_status_checks_policy": rules.strict}
        found.append({"type": "required_status_checks", "parameters": parameters})
    if rules.approvals is not None or rules.methods != METHODS:
        switches = ("dismiss_stale_reviews_on_push", "require_code_owner_review", "require_last_push_approval")
        parameters = {
            **dict.fromkeys((*switches, "required_review_thread_resolution"), False),
            "required_approving_review_count": rules.approvals or 0,
            "allowed_merge_methods": list(rules.methods),
        }
        found.append({"type": "pull_request", "parameters": parameters})
    if rules.queue:
        numbers = {"max_entries_to_build": 5, "max_entries_to_merge": 5, "min_entries_to_merge": 1}
        parameters = {
            **numbers,
            "min_entries_to_merge_wait_minutes": 5,
            "check_response_timeout_minutes": 60,
            "grouping_strategy": "ALLGREEN",
            "merge_method": "SQUASH",
        }
        found.append({"type": "merge_queue", "parameters": parameters})
    where = {"ruleset_source_type": "Repository", "ruleset_source": source, "ruleset_id": 1}
    return [rule | where for rule in found]
