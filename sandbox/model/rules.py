"""The requirements for merges into a branch: the rules of a ruleset, and a merge queue.

https://docs.github.com/repositories/configuring-branches-and-merges-in-your-repository/managing-rulesets
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

METHODS = ("merge", "squash", "rebase")


@dataclass
class Rules:
    """The rules of one ruleset for one branch; `required` are names with the App that must report them, or None."""

    required: Mapping[str, int | None] = field(default_factory=dict)
    approvals: int | None = None
    methods: tuple[str, ...] = METHODS
    queue: bool = False
    strict: bool = False
    """Whether a head must contain all commits of the base."""


def as_json(rules: Rules, source: str) -> list[dict[str, Any]]:
    """Return the rules as `GET rules/branches/{branch}` lists them, each a `repository-rule-detailed`."""
    listed: list[dict[str, Any]] = []
    if rules.required:
        checks = [{"context": n, **({"integration_id": app} if app else {})} for n, app in rules.required.items()]
        parameters = {"required_status_checks": checks, "strict_required_status_checks_policy": rules.strict}
        listed.append({"type": "required_status_checks", "parameters": parameters})
    if rules.approvals is not None or rules.methods != METHODS:
        switches = ("dismiss_stale_reviews_on_push", "require_code_owner_review", "require_last_push_approval")
        parameters = {
            **dict.fromkeys((*switches, "required_review_thread_resolution"), False),
            "required_approving_review_count": rules.approvals or 0,
            "allowed_merge_methods": list(rules.methods),
        }
        listed.append({"type": "pull_request", "parameters": parameters})
    if rules.queue:
        numbers = {"max_entries_to_build": 5, "max_entries_to_merge": 5, "min_entries_to_merge": 1}
        parameters = {
            **numbers,
            "min_entries_to_merge_wait_minutes": 5,
            "check_response_timeout_minutes": 60,
            "grouping_strategy": "ALLGREEN",
            "merge_method": "SQUASH",
        }
        listed.append({"type": "merge_queue", "parameters": parameters})
    ruleset = {"ruleset_source_type": "Repository", "ruleset_source": source, "ruleset_id": 1}
    return [rule | ruleset for rule in listed]
