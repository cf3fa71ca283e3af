"""What the check of an App's permissions and events says, as a whole."""

from __future__ import annotations

from bot.app.doctor.findings import Check, Finding
from bot.app.doctor.judge import InstallationState, judge_events, judge_permissions
from bot.app.doctor.texts import ACCEPT, ADD_PERMISSIONS, NEEDS_MET, SUBSCRIBE
from bot.app.registration import EVENTS, PERMISSIONS


def test_permissions_that_the_app_lacks_are_listed_once_and_not_for_each_owner() -> None:
    all_permissions = dict(PERMISSIONS)
    assert judge_permissions(all_permissions, []) == [Finding(Check.PERMISSIONS, NEEDS_MET)]
    granted = {**all_permissions, "checks": "read", "statuses": ""}
    without_issues = {name: level for name, level in granted.items() if name != "issues"}
    installed = [
        InstallationState("octocat/compiler", without_issues),
        InstallationState("octocat/runtime", granted),
        InstallationState("octocat/removed"),
        InstallationState("octocat/empty", {**without_issues, "contents": ""}),
    ]
    assert judge_permissions(granted, installed) == [
        Finding(
            Check.PERMISSIONS, "the App lacks the permissions Commit statuses: write, Checks: write", ADD_PERMISSIONS
        ),
        Finding(
            Check.PERMISSIONS,
            "octocat/compiler: its owner has not accepted the permissions Issues: write",
            ACCEPT,
        ),
        Finding(
            Check.PERMISSIONS,
            "octocat/empty: its owner has not accepted the permissions Issues: write, Contents: write",
            ACCEPT,
        ),
    ]


def test_events_that_the_app_is_not_subscribed_to_are_named_as_on_its_page() -> None:
    assert judge_events(EVENTS) == judge_events([*EVENTS, "star"]) == Finding(Check.EVENTS, NEEDS_MET)
    some = [event for event in EVENTS if event not in ("issue_comment", "check_run", "merge_group")]
    text = "the App is not subscribed to Check run, Issue comment"
    assert judge_events(some) == Finding(Check.EVENTS, text, SUBSCRIBE)


def test_a_finding_is_json() -> None:
    finding = Finding(Check.PERMISSIONS, "the App lacks a permission", ADD_PERMISSIONS)
    assert finding.as_json() == {
        "check": str(Check.PERMISSIONS),
        "text": "the App lacks a permission",
        "remedy": ADD_PERMISSIONS,
        "ok": False,
    }
    assert Finding(Check.PERMISSIONS, NEEDS_MET).as_json()["ok"] is True
