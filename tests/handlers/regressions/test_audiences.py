"""Which part of a message each audience gets, and which subscriptions app.yaml may have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.app.load import parse_config
from bot.config.faults import ConfigError
from bot.results.store.failures.failures import Failure
from handlers.regressions.audiences import audiences_of
from handlers.regressions.config import REGRESSIONS, Regressions
from handlers.regressions.decide import RegressionChanges

RELAY, MUL = (Failure("ops", test, "b" * 40, "a" * 40) for test in ("tests/relay/test_add.py::test", "a.py::test_mul"))
HEXAGON, ADRENO = "example-lab/hexagon-v73", "example-lab/adreno"


def settings(*subscriptions: dict[str, Any]) -> Regressions:
    repository = {
        "results": {"labs": {"example-lab": {"targets": ["hexagon-v73", "adreno"]}}},
        "regressions": {"to": ["discord"], "subscriptions": subscriptions},
    }
    text = json.dumps({"repositories": {"octocat/compiler": repository}}).encode()
    config = parse_config(text, "app.yaml").repository("octocat/compiler")
    assert config is not None
    regressions = config.of(REGRESSIONS)
    assert regressions is not None
    return regressions


def test_each_place_has_one_audience_with_all_that_its_subscriptions_name() -> None:
    regressions = settings(
        {"to": ["slack", "discord"], "targets": [HEXAGON], "paths": ["tests/relay/*"]},
        {"to": ["slack"], "paths": ["a.py::test_mul"]},
        {"to": ["issue"], "targets": [ADRENO]},
    )
    everything, slack, issue = audiences_of(regressions)
    assert [audience.places for audience in (everything, slack, issue)] == [("discord",), ("slack",), ("issue",)]
    changes = RegressionChanges((RELAY, MUL), (RELAY,), (MUL,), ("ops",), ())
    for audience, target, part in (
        (everything, HEXAGON, changes),
        (slack, HEXAGON, RegressionChanges((RELAY, MUL), (RELAY,), (MUL,))),
        (slack, ADRENO, RegressionChanges((MUL,), (), (MUL,))),
        (issue, ADRENO, changes),
        (issue, HEXAGON, RegressionChanges()),
    ):
        assert audience.changes(target, changes) == part, (audience.places, target)


@pytest.mark.parametrize(
    ("subscription", "error"),
    [
        ({"to": ["slack"], "targets": ["example-lab/mali"]}, "example-lab/mali"),
        ({"to": []}, "to"),
        ({"to": ["slack"], "paths": ["tests/*/a.py"]}, "only at its end"),
    ],
)
def test_an_invalid_subscription_is_an_error_at_start(subscription: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        settings(subscription)
