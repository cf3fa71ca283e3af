"""Which deliveries a person waits for."""

from __future__ import annotations

from typing import Any

import pytest

from bot.web.urgency import is_urgent

MENTIONS = ["@ci", "@tvm-bot"]


@pytest.mark.parametrize(
    ("event", "payload", "urgent"),
    [
        ("issue_comment", {"comment": {"body": "@ci rerun"}}, True),
        ("issue_comment", {"comment": {"body": "please\n@TVM-Bot merge"}}, True),
        ("issue_comment", {"comment": {"body": "looks good"}}, False),
        ("issue_comment", {"comment": {"body": None}}, False),
        ("issue_comment", {"comment": "@ci"}, False),
        ("issue_comment", {}, False),
        ("pull_request_review", {"review": {"body": "@ci merge"}}, True),
        ("pull_request_review_comment", {"comment": {"body": "@ci merge"}}, True),
        ("pull_request", {"pull_request": {"body": "@ci run slow tests"}}, True),
        ("pull_request", {"pull_request": {"body": "Faster"}}, False),
        ("check_run", {"action": "requested_action"}, True),
        ("check_run", {"action": "rerequested"}, True),
        ("check_run", {"action": "completed", "check_run": {"body": "@ci"}}, False),
        ("check_suite", {"action": "rerequested"}, True),
        ("push", {"head_commit": {"message": "@ci"}}, False),
        ("star", {"": {"body": "@ci"}}, False),
    ],
)
def test_texts_that_mention_us_and_buttons_are_urgent(event: str, payload: dict[str, Any], urgent: bool) -> None:
    assert is_urgent(event, payload, MENTIONS) is urgent
