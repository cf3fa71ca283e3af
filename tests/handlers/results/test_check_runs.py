"""Which check run is written for a lab's results, and what its buttons do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from nightjar_formats.model import Detail

from bot.core.events import Delivery, Person
from bot.core.payload import Payload
from bot.effects.checks import PutCheckRun
from bot.effects.remember import StoreRecord
from bot.engine.records import Key
from bot.plan.effect import Effect
from bot.results.report.findings import Findings, IgnoredFailures
from bot.results.report.sentences import title
from handlers.results.check_runs import (
    IGNORED,
    MOST_IGNORED,
    ButtonPress,
    RequestedCheck,
    asked_of,
    decide_check_run,
    is_over,
)
from tests.handlers.driver import FULL_NAME
from tests.handlers.labs import CHECK, MATMUL, TILE
from tests.results.reported import ABOUT, AT, SHA, a_suite, compared, findings

HUBOT = Person(7, "hubot", False)
PRESSED = "2026-11-20T05:30:00Z"
PAGE = "https://ci.example.org/r/octocat/compiler/runs/example-lab/hexagon-v73/x/night-2"
KEY = IGNORED.of(5, 42, "example-lab", "hexagon-v73")


def found(*tests: str, ignored: IgnoredFailures | None = None) -> Findings:
    return findings((a_suite({t: Detail() for t in tests}), compared(*tests)), pull_request=42, ignored=ignored)


def ignoring(*tests: str) -> IgnoredFailures:
    return IgnoredFailures(
        "octocat", "c" * 40, "2026-11-19T05:00:00Z", frozenset(("operators", test) for test in tests)
    )


def decided(
    known: Findings, button: str | None = None, *, may: bool = True, key: Key[IgnoredFailures] | None = KEY
) -> list[Effect]:
    """Return the effects of pressing a button while the newest results are shown."""
    shown = (title(known), known.external_id)
    press = None if button is None else ButtonPress(button, HUBOT, PRESSED, shown)
    return list(
        decide_check_run(known, RequestedCheck(ABOUT, SHA, press, again=button == ""), key, 7.0, PAGE, may=may).effects
    )


def check_of(effects: list[Effect]) -> PutCheckRun:
    check = effects[-1]
    assert isinstance(check, PutCheckRun)
    return check


def remembered(effects: list[Effect]) -> Mapping[str, Any] | None:
    first = effects[0]
    return first.stored.value if isinstance(first, StoreRecord) and first.stored else None


@pytest.mark.parametrize(
    ("known", "button", "may", "title", "conclusion", "ignored"),
    [
        (found(TILE), None, False, "1 new failure", "neutral", None),
        (found(TILE), "", False, "1 new failure", "neutral", None),
        (found(TILE), "re-check", False, "1 new failure", "neutral", None),
        (found(TILE), "ignore", False, "1 new failure", "neutral", None),
        (found(TILE), "ignore", True, "1 new failure ignored by hubot", "success", [TILE]),
        (found(), "ignore", True, "Nothing changed", "success", None),
        (found(TILE, ignored=ignoring(TILE)), None, False, "1 new failure ignored by octocat", "success", None),
        (
            found(TILE, MATMUL, ignored=ignoring(TILE)),
            None,
            False,
            "1 new failure, 1 new failure ignored by octocat",
            "neutral",
            None,
        ),
        (
            found(TILE, MATMUL, ignored=ignoring(TILE)),
            "ignore",
            True,
            "2 new failures ignored by hubot",
            "success",
            [MATMUL, TILE],
        ),
        (found(MATMUL, ignored=ignoring(TILE)), None, False, "1 new failure", "neutral", None),
    ],
)
def test_the_check_run_and_the_stored_record_after_a_button(
    known: Findings, button: str | None, may: bool, title: str, conclusion: str, ignored: list[str] | None
) -> None:
    effects = decided(known, button, may=may)
    check = check_of(effects)
    assert (check.name, check.sha, check.external_id, check.details_url) == (CHECK, SHA, "night-2", PAGE)
    assert (check.content.title.partition(" · ")[0], check.content.conclusion) == (title, conclusion)
    record = remembered(effects)
    assert (record["tests"] if record else None) == ([["operators", test] for test in ignored] if ignored else None)


def test_a_rerun_check_is_written_again() -> None:
    assert check_of(decided(found(TILE), "")).again is True
    assert check_of(decided(found(TILE), "ignore")).again is False
    assert check_of(decided(found(TILE))).again is False


@pytest.mark.parametrize(
    ("known", "may", "key", "notice"),
    [
        (found(TILE), False, KEY, "which needs write access. Ask a maintainer to press"),
        (found(), True, KEY, "`hubot` asked to ignore new failures, but there are none to ignore"),
        (found(TILE), True, None, "`hubot` asked to ignore new failures, but there are none to ignore"),
        (found(*(f"a::{n}" for n in range(MOST_IGNORED + 1))), True, KEY, "asked to ignore more than 2,000 failures"),
    ],
)
def test_somebody_who_may_not_ignore_failures_gets_the_reason(
    known: Findings, may: bool, key: Key[IgnoredFailures] | None, notice: str
) -> None:
    effects = decided(known, "ignore", may=may, key=key)
    assert notice in check_of(effects).content.summary
    assert remembered(effects) is None


def test_ignored_failures_are_stored_with_person_and_time() -> None:
    record = remembered(decided(found(TILE), "ignore"))
    assert record == {"by": "hubot", "sha": SHA, "at": PRESSED, "tests": [["operators", TILE]]}


def pressed(name: str, app: int = 9, **more: Any) -> Delivery:
    run = {"name": name, "head_sha": SHA, "external_id": "x", "app": {"id": app}}
    sender = {"id": 7, "login": "hubot", "type": "User"}
    body = {"action": "rerequested", "check_run": run, "sender": sender, "repository": {"full_name": FULL_NAME}}
    return Delivery("guid", "check_run", Payload({**body, **more}), AT)


@pytest.mark.parametrize(
    ("delivery", "asked"),
    [
        (
            pressed(CHECK),
            RequestedCheck(ABOUT, SHA, ButtonPress("", HUBOT, "2026-11-20T05:26:40Z", ("", "x")), again=True),
        ),
        (
            pressed(CHECK, requested_action={"identifier": "re-check"}),
            RequestedCheck(ABOUT, SHA, ButtonPress("re-check", HUBOT, "2026-11-20T05:26:40Z", ("", "x")), again=True),
        ),
        (
            pressed(CHECK, requested_action={"identifier": "ignore"}),
            RequestedCheck(ABOUT, SHA, ButtonPress("ignore", HUBOT, "2026-11-20T05:26:40Z", ("", "x"))),
        ),
        (
            pressed("hardware/example-lab/rpi-4@lab:1", requested_action={"identifier": "re-check"}),
            RequestedCheck(
                replace(ABOUT, target="rpi-4@lab:1"),
                SHA,
                ButtonPress("re-check", HUBOT, "2026-11-20T05:26:40Z", ("", "x")),
                again=True,
            ),
        ),
        (pressed(CHECK, app=8), None),
        (pressed("unit"), None),
        (pressed("software/example-lab/hexagon-v73"), None),
        (pressed("hardware/example-lab"), None),
    ],
)
def test_only_our_own_hardware_checks_are_handled(delivery: Delivery, asked: RequestedCheck | None) -> None:
    assert asked_of(delivery, 9) == asked


def test_after_the_deadline_the_check_does_not_wait_for_missing_shards() -> None:
    missing = findings((a_suite(shard_total=2, missing_shards=(2,)), compared())).state
    assert not is_over(missing, 60, AT + 59)
    assert is_over(missing, 60, AT + 61)
    assert not is_over(findings((a_suite(), compared())).state, 60, AT + 61)
