"""Which statuses, check runs and workflow runs are the bot's own."""

from __future__ import annotations

from typing import Any

import pytest

from bot.core.events import Payload
from bot.github.commits.ours import Ours, app_of

OURS = Ours(app_id=15, user_id=7, contexts=frozenset({"ci/skip"}), branches=frozenset({"nightly", "last-good"}))
PICTURES = "https://avatars.githubusercontent.com"


@pytest.mark.parametrize(
    ("status", "is_ours", "app"),
    [
        ({}, False, 0),
        ({"creator": {"id": 7}}, True, 0),
        ({"creator": {"id": 8}, "context": "build"}, False, 0),
        ({"creator": None, "avatar_url": f"{PICTURES}/in/15?v=4"}, True, 15),
        ({"avatar_url": f"{PICTURES}/in/15"}, True, 15),
        ({"avatar_url": f"{PICTURES}/in/151?v=4"}, False, 151),
        ({"avatar_url": f"{PICTURES}/in/15/x"}, False, 0),
        ({"avatar_url": f"{PICTURES}/u/15?v=4"}, False, 0),
        ({"avatar_url": None, "context": "CI/Skip"}, True, 0),
    ],
)
def test_a_status_is_ours_by_its_creator_its_picture_or_its_context(
    status: dict[str, Any], is_ours: bool, app: int
) -> None:
    assert (OURS.has_status(Payload(status)), app_of(Payload(status))) == (is_ours, app)


@pytest.mark.parametrize(
    ("run", "is_ours"),
    [
        ({}, True),
        ({"event": "push"}, True),
        ({"event": "pull_request"}, False),
        ({"event": "pull_request_target"}, False),
        ({"head_branch": "main"}, False),
        ({"head_branch": "last-good"}, True),
        ({"head_repository": {"id": 2}}, False),
        ({"head_repository": None}, True),
        ({"repository": None}, True),
        ({"head_repository": None, "repository": None}, False),
    ],
)
def test_a_workflow_run_is_ours_if_we_pushed_its_branch(run: dict[str, Any], is_ours: bool) -> None:
    ours = {"head_branch": "nightly", "head_repository": {"id": 1}, "repository": {"id": 1}}
    assert OURS.has_run(Payload({**ours, **run})) is is_ours
    assert not OURS.on("nightly").on("last-good").has_run(Payload({**ours, **run}))


def test_a_check_run_is_ours_by_its_app() -> None:
    assert [app for app in (0, 7, 15, 16) if OURS.has_check(app)] == [15]
