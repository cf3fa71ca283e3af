"""Decide whether a pull request may be merged under the rules and protection of its base branch."""

from __future__ import annotations

from sandbox.errors import ApiError
from sandbox.model.pulls import PullRequest
from sandbox.model.rules import Rules
from sandbox.users import User

GOOD_CONCLUSIONS = frozenset({"success", "neutral", "skipped"})
NEEDS_QUEUE = "Changes must be made through the merge queue"
NOT_ALLOWED = "{method} merges are not allowed on this repository."
FORBIDDEN_METHOD = "Repository rule violations found\n\nThis branch must not be merged with {method}"
EXPECTED = 'Required status check "{name}" is expected.'
OUT_OF_DATE = "Head branch is out of date with the base branch."
UNAPPROVED = "At least {count} approving review is required by reviewers with write access."
ALREADY_QUEUED = "Pull request is already in the queue"
NOT_QUEUEABLE = "Pull request is not mergeable"


def check(pull: PullRequest, method: str) -> None:
    """Raise GitHub's 405 `ApiError` if classic protection or a rule forbids the merge now."""
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
    """Raise GitHub's 405 `ApiError` if the head itself cannot be merged."""
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
    """Say whether protection or a rule blocks the merge of an open pull request: `mergeable_state` `blocked`."""
    try:
        check_head(pull)
    except ApiError as error:
        return pull.state == "open" and error.message != OUT_OF_DATE
    return False


def _passed(pull: PullRequest, name: str, app: int | None) -> bool:
    repository = pull.repository
    reported = [
        (status.creator.app_id, status.state == "success")
        for status in repository.statuses(pull.head_sha)
        if status.context == name
    ]
    newest = {run.app.id: run for run in sorted(repository.check_runs(pull.head_sha, name), key=lambda run: run.id)}
    reported += [(source, run.conclusion in GOOD_CONCLUSIONS) for source, run in newest.items()]
    outcomes = [good for source, good in reported if app in (None, source)]
    return bool(outcomes) and all(outcomes)


def _approvals(pull: PullRequest) -> set[User]:
    latest = {review.user: review.state for review in pull.reviews if review.state not in {"COMMENTED", "PENDING"}}
    may_approve = {user for user in latest if pull.repository.role(user) in {"write", "maintain", "admin"}}
    return {user for user in may_approve if latest[user] == "APPROVED" and user is not pull.user}
