"""Read the merge state of a pull request from GitHub; `handlers.merge.readiness` judges it.

Requests, if each list has one page: 1 for a closed pull request. Otherwise 7, and 1 for each person who approved or
requested changes (`MOST_REVIEWERS` at most). If `merge: required:` has patterns, `bot.github.commits.expected` sends
more. An answer that has not changed costs no quota, as the client sends its ETag.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.core.events import GHOST, Payload, Person, PullRequest, person_or_ghost
from bot.github.commits.expected import expected_of
from bot.github.commits.signals import signals_of
from bot.github.errors import is_forbidden, is_not_found
from bot.github.repositories.permissions import role_of
from handlers.merge.readiness import (
    CHANGES_REQUESTED,
    BranchRules,
    MergeState,
    PullReview,
    RequiredCheck,
    latest_opinions,
)

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.github.commits.ours import Ours

PULL = "/repos/{+repo}/pulls/{number}"
REVIEWS = "/repos/{+repo}/pulls/{number}/reviews"
RULES = "/repos/{+repo}/rules/branches/{branch}"
BRANCH = "/repos/{+repo}/branches/{branch}"

MAY_WRITE = frozenset({"write", "maintain", "admin"})
MOST_REVIEWERS = 30
"""The most people whose role is read. Beyond that, no approval counts, and every request for changes does."""
BLOCKED, BEHIND = "blocked", "behind"
"""https://docs.github.com/graphql/reference/enums#mergestatestatus"""
ANY_APP = -1
"""The App ID by which classic protection says that any App may report a check."""


async def merge_state_of(
    github: GitHub, repository: str, number: int, own_contexts: Ours, required: Sequence[str] = ()
) -> MergeState:
    """Read the merge state of a pull request. Raises GitHub's errors.

    `required` are names and patterns of `merge: required:`; the base branch shows which names the patterns match.
    """
    answer = Payload(await github.getitem(PULL, url_vars={"repo": repository, "number": str(number)}))
    pull = PullRequest.of(answer)
    merge_state = MergeState(
        pull=pull,
        merged=answer.flag("merged"),
        # Null while GitHub computes it: https://docs.github.com/rest/pulls/pulls#get-a-pull-request
        mergeable=answer.flag("mergeable") if answer.has("mergeable") else None,
        blocked=answer.text("mergeable_state") == BLOCKED,
        behind=answer.text("mergeable_state") == BEHIND,
        labels=tuple(label.text("name") for label in answer.items("labels")),
    )
    if not pull.is_open:
        return merge_state
    # What ran because its own branch was pushed is about this pull request, also where that branch is ours.
    own_on_head = own_contexts.on(pull.head_ref)
    return replace(
        merge_state,
        rules=await rules_of(github, repository, pull.base_ref),
        signals=tuple(await signals_of(github, repository, pull.head_sha, own_on_head)),
        expected=await expected_of(github, repository, pull.base_ref, required, own_contexts),
        own_contexts=own_contexts.contexts,
        reviews=await _reviews(github, repository, pull),
    )


async def rules_of(github: GitHub, repository: str, branch: str) -> BranchRules:
    """Return what a branch requires: by rulesets, and by classic protection as far as an App may read it.

    https://docs.github.com/rest/repos/rules#get-rules-for-a-branch (Metadata: read) has the rulesets only;
    https://docs.github.com/rest/branches/branches#get-a-branch (Contents: read) has the checks that classic protection
    requires. Only administrators can read how many approvals classic protection requires: GitHub itself refuses the
    merge if some are missing.
    """
    url_vars = {"repo": repository, "branch": branch}
    rules = BranchRules()
    try:
        async for item in github.getiter(RULES, url_vars=url_vars):
            rules = _with_rule(rules, Payload(item, "rule"))
    except Exception as error:
        # Older servers, and plans without rulesets. GitHub itself refuses a merge that breaks a rule.
        if not (is_not_found(error) or is_forbidden(error)):
            raise
    try:
        protection = Payload(await github.getitem(BRANCH, url_vars=url_vars), "branch")
    except Exception as error:
        if is_not_found(error):  # somebody deleted the branch
            return rules
        raise
    return replace(rules, required=tuple(dict.fromkeys([*rules.required, *_classic_checks(protection)])))


def _with_rule(rules: BranchRules, rule: Payload) -> BranchRules:
    match rule.text("type"):
        case "required_status_checks":
            checks = rule.items("parameters", "required_status_checks")
            required = tuple(
                RequiredCheck(check.string("context"), _app_id(check, "integration_id")) for check in checks
            )
            return replace(rules, required=(*rules.required, *required))
        case "pull_request":
            allowed = (rule.raw.get("parameters") or {}).get("allowed_merge_methods") or ()
            count_path = ("parameters", "required_approving_review_count")
            approvals = rule.integer(*count_path) if rule.has(*count_path) else 0
            # A merge must satisfy every ruleset, so only methods that all of them allow remain.
            methods = (
                tuple(method for method in allowed if not rules.methods or method in rules.methods) or rules.methods
            )
            return replace(rules, approvals=max(rules.approvals, approvals), methods=methods)
        case "merge_queue":
            return replace(rules, queue=True)
    return rules


def _classic_checks(branch: Payload) -> Iterable[RequiredCheck]:
    if not branch.has("protection", "required_status_checks"):
        return
    checks = branch.at("protection", "required_status_checks")
    # GitHub sends the object also for a branch without protection:
    # https://docs.github.com/rest/branches/branches#get-a-branch
    if checks.text("enforcement_level") == "off":
        return
    # `contexts` is the older list, without Apps. Servers that know `checks` fill both:
    # https://docs.github.com/rest/branches/branch-protection#get-status-checks-protection
    with_apps = [RequiredCheck(check.string("context"), _app_id(check, "app_id")) for check in checks.items("checks")]
    yield from with_apps
    names = {check.name for check in with_apps}
    yield from (RequiredCheck(str(context)) for context in checks.raw.get("contexts") or () if context not in names)


def _app_id(check: Payload, key: str) -> int:
    app = check.integer(key) if check.has(key) else 0
    return 0 if app == ANY_APP else app


async def _reviews(github: GitHub, repository: str, pull: PullRequest) -> tuple[PullReview, ...]:
    """Return all reviews, oldest first as GitHub lists them, with whether their authors may write."""
    url_vars = {"repo": repository, "number": str(pull.number)}
    reviews: list[PullReview] = []
    people: dict[int, Person] = {}
    async for item in github.getiter(REVIEWS, url_vars=url_vars):
        review = Payload(item, "review")
        author = person_or_ghost(review)
        people[author.id] = author
        # All deleted accounts share this ID; as one person, they would replace each other's opinions.
        author_id = author.id if author != GHOST else 0
        reviews.append(
            PullReview(
                author_id, author.login, review.string("state"), review.text("commit_id"), review.text("html_url")
            )
        )
    may_write = await _may_write(github, repository, pull, latest_opinions(reviews), people)
    # Nobody's request for changes is passed over because there were too many to look at.
    return tuple(
        replace(review, may_write=may_write.get(review.author_id, review.state == CHANGES_REQUESTED))
        for review in reviews
    )


async def _may_write(
    github: GitHub, repository: str, pull: PullRequest, opinions: Iterable[PullReview], people: dict[int, Person]
) -> dict[int, bool]:
    """Return by ID whether each person with an opinion may write; those who approved the head come first."""
    judged = [review for review in opinions if review.author_id != pull.author.id]
    judged.sort(key=lambda review: review.state == CHANGES_REQUESTED or review.sha != pull.head_sha)
    # We ask for the role of this account: TVM's bot searched for its name, and took another's hit for it (TVM #11480).
    roles = {
        review.author_id: await role_of(github, repository, people[review.author_id])
        for review in judged[:MOST_REVIEWERS]
    }
    return {number: role in MAY_WRITE for number, role in roles.items()} | {pull.author.id: False}
