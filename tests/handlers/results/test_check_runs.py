"""Which check run is written for a lab's results, and what its buttons do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from nightjar_formats.model import Detail

from bot.core.events import Delivery, Payload, Person
from bot.effects.checks import PutCheckRun
from bot.effects.remember import StoreRecord
from bot.engine.records import Key
from bot.plan.effect import Effect
from bot.results.report.findings import Findings, IgnoredFailures
from bot.results.report.sentences import title
from handlers.results.check_runs import (
    MOST_IGNORED,
    ButtonPress,
    RequestedCheck,
    deadline_passed,
    decide_check_run,
    read_request,
)
from handlers.results.records import IGNORED
from tests.handlers.driver import FULL_NAME
from tests.handlers.labs import CHECK, MATMUL, TILE
from tests.results.reported import ABOUT, AT, SHA, a_suite, compared, findings

HUBOT = Person(7, "hubot", False)
PRESSED = "2026-11-20T05:30:00Z"
PAGE = "https://ci.example.org/r/octocat/compiler/runs/example-lab/hexagon-v73/x/night-2"
KEY = IGNORED.of(5, 42, "example-lab", "hexagon-v73")


def findings_with(*tests: str, ignored: IgnoredFailures | None = None) -> Findings:
    """Return findings in which these tests are new failures."""
    return findings((a_suite({test: Detail() for test in tests}), compared(*tests)), pull_request=42, ignored=ignored)


def ignored_tests(*tests: str) -> IgnoredFailures:
    return IgnoredFailures(
        "octocat", "c" * 40, "2026-11-19T05:00:00Z", frozenset(("operators", test) for test in tests)
    )


def effects_of(
    findings: Findings, button: str | None = None, *, may_ignore: bool = True, key: Key[IgnoredFailures] | None = KEY
) -> list[Effect]:
    """Return the effects of pressing a button while the newest results are shown."""
    seen = (title(findings), findings.external_id)
    press = None if button is None else ButtonPress(button, HUBOT, PRESSED, seen)
    request = RequestedCheck(ABOUT, SHA, press, even_if_same=button == "")
    return list(decide_check_run(findings, request, key, 7.0, PAGE, may_ignore=may_ignore).effects)


def check_of(effects: list[Effect]) -> PutCheckRun:
    check = effects[-1]
    assert isinstance(check, PutCheckRun)
    return check


def stored_record(effects: list[Effect]) -> Mapping[str, Any] | None:
    """Return the record that the effects store, or None."""
    first = effects[0]
    return first.stored.value if isinstance(first, StoreRecord) and first.stored else None


@pytest.mark.parametrize(
    ("new_findings", "button", "may_ignore", "title", "conclusion", "ignored"),
    [
        (findings_with(TILE), None, False, "1 new failure", "neutral", None),
        (findings_with(TILE), "", False, "1 new failure", "neutral", None),
        (findings_with(TILE), "re-check", False, "1 new failure", "neutral", None),
        (findings_with(TILE), "ignore", False, "1 new failure", "neutral", None),
        (findings_with(TILE), "ignore", True, "1 new failure ignored by hubot", "success", [TILE]),
        (findings_with(), "ignore", True, "Nothing changed", "success", None),
        (
            findings_with(TILE, ignored=ignored_tests(TILE)),
            None,
            False,
            "1 new failure ignored by octocat",
            "success",
            None,
        ),
        (
            findings_with(TILE, MATMUL, ignored=ignored_tests(TILE)),
            None,
            False,
            "1 new failure, 1 new failure ignored by octocat",
            "neutral",
            None,
        ),
        (
            findings_with(TILE, MATMUL, ignored=ignored_tests(TILE)),
            "ignore",
            True,
            "2 new failures ignored by hubot",
            "success",
            [MATMUL, TILE],
        ),
        (findings_with(MATMUL, ignored=ignored_tests(TILE)), None, False, "1 new failure", "neutral", None),
    ],
)
def test_the_check_run_and_the_stored_record_after_a_button(
    new_findings: Findings,
    button: str | None,
    may_ignore: bool,
    title: str,
    conclusion: str,
    ignored: list[str] | None,
) -> None:
    effects = effects_of(new_findings, button, may_ignore=may_ignore)
    check = check_of(effects)
    assert (check.name, check.sha, check.external_id, check.details_url) == (CHECK, SHA, "night-2", PAGE)
    assert (check.content.title.partition(" · ")[0], check.content.conclusion) == (title, conclusion)
    record = stored_record(effects)
    assert (record or {}).get("tests") == ([["operators", test] for test in ignored] if ignored else None)
    assert bool(record and record.get("why")) == (button == "ignore" and not ignored)


def test_a_rerun_check_is_written_again() -> None:
    assert check_of(effects_of(findings_with(TILE), "")).again is True
    assert check_of(effects_of(findings_with(TILE), "ignore")).again is False
    assert check_of(effects_of(findings_with(TILE))).again is False


@pytest.mark.parametrize(
    ("new_findings", "may_ignore", "key", "notice"),
    [
        (findings_with(TILE), False, KEY, "which needs write access. Ask a maintainer to press"),
        (findings_with(), True, KEY, "`hubot` asked to ignore new failures, but there are none to ignore"),
        (findings_with(TILE), True, None, "`hubot` asked to ignore new failures, but there are none to ignore"),
        (
            findings_with(*(f"a::{n}" for n in range(MOST_IGNORED + 1))),
            True,
            KEY,
            "asked to ignore more than 2,000 failures",
        ),
    ],
)
def test_somebody_who_may_not_ignore_failures_gets_the_reason(
    new_findings: Findings, may_ignore: bool, key: Key[IgnoredFailures] | None, notice: str
) -> None:
    effects = effects_of(new_findings, "ignore", may_ignore=may_ignore, key=key)
    assert notice in check_of(effects).content.summary
    assert (stored_record(effects) is None) == (key is None)
    assert not any(isinstance(effect, StoreRecord) and effect.key == KEY.name for effect in effects)


def test_ignored_failures_are_stored_with_person_and_time() -> None:
    record = stored_record(effects_of(findings_with(TILE), "ignore"))
    assert record == {"by": "hubot", "sha": SHA, "at": PRESSED, "tests": [["operators", TILE]]}


def button_delivery(name: str, app: int = 9, **fields: Any) -> Delivery:
    """Return the delivery of a button of a check run, with further fields of the payload."""
    run = {"name": name, "head_sha": SHA, "external_id": "x", "app": {"id": app}}
    sender = {"id": 7, "login": "hubot", "type": "User"}
    body = {"action": "rerequested", "check_run": run, "sender": sender, "repository": {"full_name": FULL_NAME}}
    return Delivery("guid", "check_run", Payload({**body, **fields}), AT)


@pytest.mark.parametrize(
    ("delivery", "request_read"),
    [
        (
            button_delivery(CHECK),
            RequestedCheck(ABOUT, SHA, ButtonPress("", HUBOT, "2026-11-20T05:26:40Z", ("", "x")), even_if_same=True),
        ),
        (
            button_delivery(CHECK, requested_action={"identifier": "re-check"}),
            RequestedCheck(
                ABOUT, SHA, ButtonPress("re-check", HUBOT, "2026-11-20T05:26:40Z", ("", "x")), even_if_same=True
            ),
        ),
        (
            button_delivery(CHECK, requested_action={"identifier": "ignore"}),
            RequestedCheck(ABOUT, SHA, ButtonPress("ignore", HUBOT, "2026-11-20T05:26:40Z", ("", "x"))),
        ),
        (
            button_delivery("hardware/example-lab/rpi-4@lab:1", requested_action={"identifier": "re-check"}),
            RequestedCheck(
                replace(ABOUT, target="rpi-4@lab:1"),
                SHA,
                ButtonPress("re-check", HUBOT, "2026-11-20T05:26:40Z", ("", "x")),
                even_if_same=True,
            ),
        ),
        (button_delivery(CHECK, app=8), None),
        (button_delivery("unit"), None),
        (button_delivery("software/example-lab/hexagon-v73"), None),
        (button_delivery("hardware/example-lab"), None),
    ],
)
def test_only_our_own_hardware_checks_are_handled(delivery: Delivery, request_read: RequestedCheck | None) -> None:
    assert read_request(delivery, 9) == request_read


def test_after_the_deadline_the_check_does_not_wait_for_missing_shards() -> None:
    missing = findings((a_suite(shard_total=2, missing_shards=(2,)), compared())).state
    assert not deadline_passed(missing, 60, AT + 59)
    assert deadline_passed(missing, 60, AT + 61)
    assert not deadline_passed(findings((a_suite(), compared())).state, 60, AT + 61)
