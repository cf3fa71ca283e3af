"""Which deliveries request the sections about CI's tests."""

from __future__ import annotations

from typing import Any

import pytest

from bot.app.load import parse_config
from bot.core.events import Delivery, Payload
from handlers.runtime import feature as runtime
from handlers.skipped_tests import handler as skipped_tests
from tests.settings import repository_config


@pytest.mark.parametrize("feature", [skipped_tests, runtime])
@pytest.mark.parametrize(("name", "expected"), [("CI", True), ("Docs", False), ("ci", False)])
def test_a_run_of_another_workflow_gets_no_job(feature: Any, name: str, expected: bool) -> None:
    keys = f"{feature.KEY}: {{workflow: CI, artifacts: ['*']}}"
    config = parse_config(f"repositories: {{octocat/compiler: {{{keys}}}}}".encode(), "app.yaml")
    message = Delivery("guid", "workflow_run", Payload({"workflow_run": {"name": name}}), 0.0)
    handler = next(candidate for candidate in feature.router.handlers if candidate.name == f"{feature.NAME}-run")
    assert handler.accepts(message, config.repositories["octocat/compiler"]) is expected
    assert handler.accepts(message, repository_config()) is False
