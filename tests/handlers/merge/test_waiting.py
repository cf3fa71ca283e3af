"""What happens to a pending merge, and which events trigger a refresh: tables without any GitHub."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.app.load import parse_config
from bot.config.model import RepositoryConfig
from bot.core.events import Delivery, Payload, Person, PullRequest
from handlers.merge.readiness import BlockerKind, MergeBlocker, MergeState
from handlers.merge.records import PendingMerge
from handlers.merge.waiting import PendingMergeVerdict, decide_pending_merge, is_trigger, may_matter

HEAD, OTHER = "a" * 40, "b" * 40
HUBOT = Person(2, "hubot", False)
PULL = PullRequest(
    number=12, head_sha=HEAD, base_ref="main", author=HUBOT, title="", body="", draft=False, is_open=True, updated_at=""
)
PENDING_MERGE = PendingMerge(
    HEAD, "main", HUBOT, "https://github.example/octocat/compiler/pull/12", "2026-11-20T05:00:00Z"
)
CHECK, APPROVAL = MergeBlocker(BlockerKind.CHECK, "a check"), MergeBlocker(BlockerKind.APPROVAL, "an approval")
DRAFT, CLOSED = MergeBlocker(BlockerKind.DRAFT, "a draft"), MergeBlocker(BlockerKind.CLOSED, "closed")


def config(keys: str) -> RepositoryConfig:
    config = parse_config(f"repositories: {{octocat/compiler: {{{keys}}}}}".encode(), "app.yaml")
    return config.repositories["octocat/compiler"]


@pytest.mark.parametrize(
    ("pull", "blockers", "verdict", "words"),
    [
        ({}, [], PendingMergeVerdict.MERGE, ""),
        ({}, [CHECK], PendingMergeVerdict.WAIT, ""),
        ({}, [CHECK, APPROVAL], PendingMergeVerdict.WAIT, ""),
        ({}, [DRAFT], PendingMergeVerdict.END, "- a draft"),
        ({}, [DRAFT, CHECK], PendingMergeVerdict.END, "- a draft\n- a check"),
        ({"is_open": False}, [CLOSED], PendingMergeVerdict.FORGET, ""),
        ({"is_open": False, "head_sha": OTHER}, [CLOSED], PendingMergeVerdict.FORGET, ""),
        ({"head_sha": OTHER}, [], PendingMergeVerdict.END, "The head moved to `bbbbbbb`"),
        ({"head_sha": OTHER, "base_ref": "release"}, [CHECK], PendingMergeVerdict.END, "The head moved to `bbbbbbb`"),
        ({"base_ref": "release"}, [], PendingMergeVerdict.END, "Its base is now `release`, not `main`."),
    ],
)
def test_what_happens_to_a_pending_merge(
    pull: dict[str, Any], blockers: list[MergeBlocker], verdict: PendingMergeVerdict, words: str
) -> None:
    merge_state = MergeState(replace(PULL, **pull), merged=False, mergeable=True)
    decision = decide_pending_merge(PENDING_MERGE, merge_state, blockers)
    assert decision.verdict is verdict
    assert words in decision.reason
    assert bool(decision.reason) is bool(words)


ON, WITH_LABEL = "merge: {}", "merge: {label: ready-for-merge, hold_labels: [hold, WIP]}"
GREEN, PENDING, RED = {"state": "success"}, {"state": "pending"}, {"state": "failure"}


@pytest.mark.parametrize(
    ("event", "payload", "keys", "expected"),
    [
        ("status", GREEN, ON, True),
        ("status", PENDING, ON, False),
        ("status", RED, ON, False),
        ("status", RED, WITH_LABEL, True),
        ("status", GREEN, "", False),
        ("check_run", {"check_run": {"conclusion": "neutral"}}, ON, True),
        ("check_run", {"check_run": {"conclusion": "failure"}}, ON, False),
        ("check_run", {"check_run": {"conclusion": None}}, ON, False),
        ("check_run", {"check_run": {"conclusion": None}}, WITH_LABEL, True),
    ],
)
def test_without_a_label_only_green_checks_trigger_a_refresh(
    event: str, payload: dict[str, Any], keys: str, expected: bool
) -> None:
    assert is_trigger(Delivery("guid", event, Payload(payload), 0.0), config(keys)) is expected


@pytest.mark.parametrize(
    ("event", "payload", "expected"),
    [
        ("pull_request", {"action": "synchronize"}, True),
        ("pull_request", {"action": "labeled", "label": {"name": "HOLD"}}, True),
        ("pull_request", {"action": "unlabeled", "label": {"name": "wip"}}, True),
        ("pull_request", {"action": "labeled", "label": {"name": "Ready-For-Merge"}}, True),
        ("pull_request", {"action": "labeled", "label": {"name": "docs"}}, False),
        ("pull_request", {"action": "labeled"}, False),
        ("pull_request", {"action": "edited", "changes": {"title": {"from": "Slow"}}}, False),
        ("pull_request", {"action": "edited", "changes": {"base": {"ref": {"from": "main"}}}}, True),
        ("pull_request_review", {"action": "submitted", "review": {"state": "approved"}}, True),
        ("pull_request_review", {"action": "submitted", "review": {"state": "commented"}}, False),
        ("pull_request_review", {"action": "dismissed", "review": {"state": "dismissed"}}, True),
    ],
)
def test_unrelated_events_trigger_no_refresh(event: str, payload: dict[str, Any], expected: bool) -> None:
    delivery = Delivery("guid", event, Payload(payload), 0.0)
    assert may_matter(delivery, config(WITH_LABEL)) is expected
    assert not may_matter(delivery, config(""))
