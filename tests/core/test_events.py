"""How deliveries are identified and ordered."""

from __future__ import annotations

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.core.errors import PayloadError
from bot.core.events import (
    Delivery,
    Payload,
    Person,
    PullRequest,
    PullRequestEvent,
    Repository,
    UserComment,
    comment_in,
    intent_key,
    issue_comment_in,
    lock_key,
    subject_of,
)

EXAMPLES = Path(__file__).parents[1] / "data" / "webhook-examples.json.xz"


QUEUE = "refs/heads/gh-readonly-queue/"


def delivery(event: str, body: dict[str, Any], guid: str = "g-1") -> Delivery:
    return Delivery(guid=guid, event=event, payload=Payload(body), received_at=0.0)


def comment_body(**changes: Any) -> dict[str, Any]:
    comment = {
        "id": 7,
        "node_id": "IC_7",
        "html_url": "https://github.example/c7",
        "body": "@ci rerun",
        "updated_at": "2026-11-20T05:10:00Z",
        "user": {"id": 2, "login": "hubot", "type": "User"},
    }
    return {
        "action": "created",
        "issue": {"number": 42, "pull_request": {}},
        "comment": comment | changes,
        "sender": {"id": 2, "login": "hubot", "type": "User"},
        "repository": {"id": 1, "full_name": "octocat/compiler"},
    }


@pytest.mark.parametrize(
    ("event", "body", "expected"),
    [
        ("pull_request", {"repository": {"id": 1}, "pull_request": {"number": 42}}, "pr:1#42"),
        ("issue_comment", {"repository": {"id": 1}, "issue": {"number": 42}}, "pr:1#42"),
        ("status", {"repository": {"id": 1}, "sha": "abc"}, "sha:1:abc"),
        ("check_run", {"repository": {"id": 1}, "check_run": {"head_sha": "abc"}}, "sha:1:abc"),
        (
            "check_run",
            {"action": "rerequested", "repository": {"id": 1}, "check_run": {"head_sha": "abc", "name": "a/b"}},
            "check:1:a/b",
        ),
        ("check_suite", {"repository": {"id": 1}, "check_suite": {"head_sha": "abc"}}, "sha:1:abc"),
        ("workflow_run", {"repository": {"id": 1}, "workflow_run": {"head_sha": "abc"}}, "sha:1:abc"),
        (
            "merge_group",
            {"repository": {"id": 1}, "merge_group": {"head_ref": f"{QUEUE}main/pr-42-0a1b", "head_sha": "abc"}},
            "group:1#42",
        ),
        (
            "merge_group",
            {"repository": {"id": 1}, "merge_group": {"head_ref": f"{QUEUE}a/pr-7-b/pr-42-0a1b"}},
            "group:1#42",
        ),
        ("merge_group", {"repository": {"id": 1}, "merge_group": {"head_ref": QUEUE, "head_sha": "abc"}}, "sha:1:abc"),
        ("merge_group", {"repository": {"id": 1}, "merge_group": {"head_ref": 7, "head_sha": "abc"}}, "sha:1:abc"),
        (
            "merge_group",
            {"repository": {"id": 1}, "merge_group": {"head_ref": "refs/heads/x/pr-42-0a1b", "head_sha": "abc"}},
            "sha:1:abc",
        ),
        ("push", {"repository": {"id": 1}, "ref": "refs/heads/main"}, "ref:1:refs/heads/main"),
        ("star", {"repository": {"id": 1}}, "repo:1"),
        ("installation", {"installation": {"id": 9}}, "inst:9"),
        ("ping", {}, "inst:0"),
        ("pull_request", {"repository": "no object", "pull_request": [1]}, "inst:0"),
        ("status", {"repository": {"id": 1}, "sha": {"not": "text"}}, "repo:1"),
    ],
)
def test_which_deliveries_share_a_lock(event: str, body: dict[str, Any], expected: str) -> None:
    assert lock_key(event, body) == expected


HUBOT = Person(2, "hubot", is_bot=False)
COMMENT = UserComment(
    kind="issue_comment",
    id=7,
    node_id="IC_7",
    url="https://github.example/c7",
    number=42,
    author=HUBOT,
    sender=HUBOT,
    text="@ci rerun",
    created=True,
    old_text=None,
    written_at="2026-11-20T05:10:00Z",
)


def test_a_comment_is_read_whole_on_a_pull_request_and_on_an_issue() -> None:
    on_pull, on_issue = comment_body(), comment_body() | {"issue": {"number": 42}}
    of_issue_event = [delivery("issue_comment", body) for body in (on_pull, on_issue)]
    assert [comment_in(each) for each in of_issue_event] == [COMMENT, None]
    assert [issue_comment_in(each) for each in of_issue_event] == [None, COMMENT]
    edited = [delivery("issue_comment", body | {"action": "edited"}) for body in (on_pull, on_issue)]
    assert [comment_in(each) for each in edited] == [replace(COMMENT, created=False), None]
    assert [issue_comment_in(each) for each in edited] == [None, None]
    assert issue_comment_in(delivery("issues", on_issue)) is None
    by_bot = comment_in(delivery("issue_comment", on_pull | {"sender": {"id": 3, "login": "ci[bot]", "type": "Bot"}}))
    assert by_bot == replace(COMMENT, sender=Person(3, "ci[bot]", is_bot=True))


@pytest.mark.parametrize(
    ("event", "body", "key"),
    [
        ("issue_comment", comment_body(), "issue_comment:created:7:2026-11-20T05:10:00Z"),
        (
            "issue_comment",
            comment_body() | {"action": "edited", "changes": {"body": {"from": "é"}}},
            "issue_comment:edited:7:2026-11-20T05:10:00Z:a6b2eb61f16d0ab8",
        ),
        (
            "pull_request_review",
            {"action": "submitted", "review": {"id": 8, "submitted_at": "12:00"}},
            "pull_request_review:submitted:8:12:00",
        ),
        (
            "pull_request_review_comment",
            {"action": "created", "comment": {"id": 9, "updated_at": "12:00", "submitted_at": "11:00"}},
            "pull_request_review_comment:created:9:12:00",
        ),
        (
            "pull_request",
            {"action": "opened", "pull_request": {"id": 5, "updated_at": "12:00", "head": {"sha": "abc"}}},
            "pull_request:opened:5:12:00:abc:44136fa355b3678a",
        ),
        (
            "merge_group",
            {"action": "checks_requested", "merge_group": {"head_sha": "abc"}},
            "merge_group:checks_requested:abc",
        ),
    ],
)
def test_the_key_of_an_intent_is_stored_so_it_stays_the_same(event: str, body: dict[str, Any], key: str) -> None:
    assert intent_key(delivery(event, body)) == key


@pytest.mark.parametrize(
    ("body", "subject"),
    [
        ({}, {"action": "", "repository": ""}),
        (
            {"action": "opened", "repository": {"full_name": "octocat/compiler"}, "pull_request": {"number": 42}},
            {"action": "opened", "repository": "octocat/compiler", "number": 42},
        ),
        ({"action": 1, "repository": {"full_name": 2}, "issue": {"number": 7}}, {"number": 7}),
        (
            {
                "pull_request": {"number": 42},
                "issue": {"number": 7},
                "merge_group": {"head_ref": f"{QUEUE}main/pr-3-a"},
            },
            {"action": "", "repository": "", "number": 42},
        ),
        (
            {"pull_request": {"number": "42"}, "merge_group": {"head_ref": f"{QUEUE}main/pr-3-a"}},
            {"action": "", "repository": "", "number": 3},
        ),
        ({"merge_group": {"head_ref": 7}}, {"action": "", "repository": ""}),
    ],
)
def test_the_journal_shows_what_the_payload_has_of_its_subject(body: dict[str, Any], subject: dict[str, Any]) -> None:
    assert subject_of(delivery("ping", body)) == subject


def test_one_comment_delivered_by_two_hooks_is_one_intent() -> None:
    """The App's hook adds `installation`, a repository's hook does not; the GUIDs differ."""
    by_app = comment_body() | {"installation": {"id": 9}}
    assert intent_key(delivery("issue_comment", by_app, "a")) == intent_key(
        delivery("issue_comment", comment_body(), "b")
    )


def test_an_edit_is_another_intent_than_the_comment_and_than_the_next_edit() -> None:
    created = intent_key(delivery("issue_comment", comment_body()))
    edited = intent_key(delivery("issue_comment", comment_body() | {"action": "edited"}))
    edited_again = intent_key(
        delivery("issue_comment", comment_body(updated_at="2026-11-20T05:11:00Z") | {"action": "edited"})
    )
    assert len({created, edited, edited_again}) == 3


@pytest.mark.parametrize(
    "changed", ["changes", "label", "assignee", "requested_reviewer", "requested_team", "milestone"]
)
def test_two_changes_to_a_pull_request_in_one_second_are_two_intents(changed: str) -> None:
    def intent(name: str) -> str:
        pull = {"id": 5, "updated_at": "2026-11-20T05:10:00Z", "head": {"sha": "abc"}}
        return intent_key(delivery("pull_request", {"action": "edited", "pull_request": pull, changed: {"name": name}}))

    assert intent("hexagon") == intent("hexagon") != intent("pixel")


def test_a_repository_knows_its_installation_if_the_apps_hook_reports_it() -> None:
    body = {"repository": {"id": 1, "full_name": "octocat/compiler"}}
    for installation, installation_id in (({}, None), ({"installation": {"id": 9}}, 9)):
        repository = Repository.of(Payload(body | installation))
        assert repository == Repository(id=1, full_name="octocat/compiler", installation_id=installation_id)


def test_a_pull_request_has_a_merge_commit_once_it_is_merged_and_a_head_branch_that_may_be_a_forks() -> None:
    body: dict[str, Any] = {
        "number": 42,
        "user": {"id": 2, "login": "hubot", "type": "User"},
        "title": "Faster tiles",
        "body": "Twice as fast.",
        "draft": False,
        "state": "closed",
        "updated_at": "2026-11-20T05:10:00Z",
        "head": {"sha": "abc", "ref": "tiles", "repo": {"id": 1}},
        "base": {"ref": "main", "repo": {"id": 1}},
        "merged_at": "2026-11-20T05:09:00Z",
        "merged_by": {"login": "octocat"},
        "merge_commit_sha": "def",
    }
    merged = PullRequest(
        number=42,
        head_sha="abc",
        base_ref="main",
        author=Person(2, "hubot", is_bot=False),
        title="Faster tiles",
        body="Twice as fast.",
        draft=False,
        is_open=False,
        updated_at="2026-11-20T05:10:00Z",
        head_ref="tiles",
        repository_id=1,
        head_repository_id=1,
        head_branch="tiles",
        merged_at="2026-11-20T05:09:00Z",
        merged_by="octocat",
        merge_commit="def",
    )
    assert PullRequest.of(Payload(body)) == merged
    trial = body | {"state": "open", "draft": True, "merged_at": None, "merged_by": None}
    unmerged = replace(merged, is_open=True, draft=True, merged_at="", merged_by="", merge_commit="")
    assert PullRequest.of(Payload(trial)) == unmerged
    of_fork = PullRequest.of(Payload(trial | {"head": body["head"] | {"repo": {"id": 8}}}))
    assert of_fork == replace(unmerged, head_ref="", head_repository_id=8)
    of_deleted_fork = PullRequest.of(Payload(trial | {"head": body["head"] | {"repo": None}}))
    assert of_deleted_fork == replace(unmerged, head_ref="", head_repository_id=0)


def test_an_event_without_its_own_identity_uses_its_guid() -> None:
    assert intent_key(delivery("star", {"action": "created"}, "g-9")) == "guid:g-9"
    assert intent_key(delivery("issue_comment", {"action": "created"}, "g-9")) == "guid:g-9"
    assert intent_key(delivery("pull_request", {"action": 3, "pull_request": {}}, "g-9")) == "guid:g-9"


def test_a_comment_on_an_issue_is_no_comment_on_a_pull_request() -> None:
    body = comment_body() | {"issue": {"number": 42}}
    assert comment_in(delivery("issue_comment", body)) is None


def test_an_edit_carries_the_previous_text() -> None:
    body = comment_body() | {"action": "edited", "changes": {"body": {"from": "hello"}}}
    comment = comment_in(delivery("issue_comment", body))
    assert comment is not None
    assert (comment.created, comment.old_text, comment.text) == (False, "hello", "@ci rerun")


def test_a_deleted_account_becomes_the_ghost() -> None:
    comment = comment_in(delivery("issue_comment", comment_body(user=None)))
    assert comment is not None
    assert comment.author.login == "ghost"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"action": "opened"}, "pull_request"),
        ({"action": "opened", "pull_request": {"number": 1, "head": {}}}, "pull_request.head.sha"),
        ({"action": "opened", "pull_request": {"number": "1"}}, "pull_request.number"),
        ({"action": "opened", "pull_request": {"number": 1, "head": "main"}}, "pull_request.head"),
    ],
)
def test_a_payload_without_a_field_names_its_path(body: dict[str, Any], path: str) -> None:
    with pytest.raises(PayloadError) as caught:
        PullRequestEvent.of(Payload(body))
    assert caught.value.path == path


def test_every_example_of_github_has_a_lock_and_an_intent() -> None:
    examples = json.loads(lzma.decompress(EXAMPLES.read_bytes()))
    bodies = [(event["name"], body) for event in examples for body in event["examples"]]
    assert len(bodies) == 329
    for event, body in bodies:
        assert ":" in lock_key(event, body)
        assert ":" in intent_key(delivery(event, body))


@pytest.mark.parametrize(
    ("event", "subject", "actions", "kind", "moments"),
    [
        ("pull_request_review", "review", ("submitted", "edited"), "review", ("12:00", "13:00")),
        ("pull_request_review_comment", "comment", ("created", "edited"), "review_comment", ("12:00", "13:00")),
        ("pull_request", "pull_request", ("opened", "edited"), "pull_request", ("13:00", "13:00")),
    ],
)
def test_each_text_on_a_pull_request_is_a_comment_with_its_number(
    event: str, subject: str, actions: tuple[str, str], kind: str, moments: tuple[str, str]
) -> None:
    written = {"id": 7, "node_id": "N_7", "html_url": "https://github.example/c7", "body": "@ci rerun"}
    written |= {"user": {"id": 2, "login": "hubot", "type": "User"}, "submitted_at": "12:00"}
    pull = {"number": 42, "updated_at": "13:00"}
    sender = {"id": 3, "login": "octocat", "type": "User"}
    for action, moment in zip(actions, moments, strict=True):
        body = {"action": action, "pull_request": pull, "sender": sender, "changes": {"body": {"from": "before"}}}
        body[subject] = {**written, **pull} if subject == "pull_request" else written
        comment = comment_in(delivery(event, body))
        assert comment is not None
        assert (comment.kind, comment.number, comment.id, comment.node_id) == (kind, 42, 7, "N_7")
        assert (comment.author.login, comment.sender.login) == ("hubot", "octocat")
        assert (comment.text, comment.old_text, comment.url) == ("@ci rerun", "before", "https://github.example/c7")
        assert (comment.created, comment.written_at) == (action == actions[0], moment)
    assert comment_in(delivery(event, {**body, "action": "deleted"})) is None
    del body["changes"]
    unchanged = comment_in(delivery(event, body))
    assert unchanged is not None
    assert unchanged.old_text is None
