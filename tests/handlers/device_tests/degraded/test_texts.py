"""What people read about a degraded target."""

from __future__ import annotations

import pytest
from nightjar_formats.model import TargetKey

from bot.results.report.check_run import MOST_CONTACTS
from handlers.device_tests.degraded.rule import DegradedTarget
from handlers.device_tests.degraded.texts import degraded_notice, issue_of_target, refusal

TARGET = TargetKey("octocat/compiler", "example-lab", "adreno")
STATE = DegradedTarget("a" * 40, since=1_795_152_400.0, order=1_795_150_000.0, infra=1, missing=2)
KEY = "degraded:example-lab/adreno"
COUNTS = "1 nightly run was an infrastructure failure, 2 are missing"


def test_the_issue_is_open_while_the_target_is_degraded() -> None:
    issue = issue_of_target(TARGET, STATE, 1, ["@hubot"])
    assert (issue.key, issue.title) == (KEY, "Target example-lab/adreno is degraded")
    assert (issue.begins, issue.news_key) == (True, f"{KEY}:{'a' * 40}")
    assert "of target `adreno` of lab `example-lab`" in issue.body
    assert f"since 2026-11-20 05:26 UTC: {COUNTS}." in issue.body
    assert "Until then pushes are not tested here." in issue.body
    assert "after 2 good nightly runs in a row" in issue.body
    assert issue.body.endswith("Questions about this lab: `@hubot` (not notified).")


@pytest.mark.parametrize(
    ("tier", "effect"), [(1, "pushes are not"), (2, "accepts no requests"), (None, "pushes are not")]
)
def test_the_issue_says_what_does_not_work_until_then(tier: int | None, effect: str) -> None:
    assert f"Until then {effect}" in issue_of_target(TARGET, STATE, tier, []).body.replace("the target ", "")


def test_a_limited_number_of_contacts_is_named() -> None:
    contacts = [f"@octocat-{number}" for number in range(MOST_CONTACTS + 1)]
    body = issue_of_target(TARGET, STATE, 1, contacts).body
    assert [name in body for name in contacts] == [True] * MOST_CONTACTS + [False]
    assert "@" not in issue_of_target(TARGET, STATE, 1, []).body


@pytest.mark.parametrize(
    ("tier", "reason"), [(1, "2 nightly runs in a row were good"), (None, "app.yaml no longer enables requests for it")]
)
def test_the_issue_is_closed_when_the_target_is_restored(tier: int | None, reason: str) -> None:
    restored = DegradedTarget(STATE.sha, STATE.since, STATE.order, 1, 2, restored=True)
    issue = issue_of_target(TARGET, restored, tier, ["@hubot"])
    assert (issue.key, issue.title, issue.body, issue.begins) == (KEY, "", "", False)
    assert issue.news == f"Target `example-lab/adreno` is restored: {reason}."
    assert issue.news_key == f"{KEY}:{'a' * 40}:restored"


def test_requests_and_check_runs_say_since_when() -> None:
    since = f"no nightly run has had usable results since 2026-11-20 05:26 UTC ({COUNTS})"
    assert refusal("example-lab/adreno", STATE) == (
        f"`example-lab/adreno` accepts no requests now: {since}. "
        "It will accept requests again after 2 good nightly runs in a row."
    )
    assert degraded_notice(STATE, 2) == f"This target is degraded: {since}. Until then the target accepts no requests."
    assert degraded_notice(STATE, 3) == degraded_notice(None, 1) == ""
    restored = DegradedTarget(STATE.sha, STATE.since, STATE.order, 1, 2, restored=True)
    assert degraded_notice(restored, 1) == ""
