"""The plugin is found by its entry point and can be turned off."""

from __future__ import annotations

import pytest


def test_the_plugin_is_registered_and_can_be_turned_off_by_name(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        def pytest_report_header(config):
            names = ["nightjar", "nightjar-targets", "nightjar-run"]
            return "has: " + " ".join(name for name in names if config.pluginmanager.has_plugin(name))
        """
    )
    with_targets = pytester.runpytest_subprocess("--collect-only")
    with_targets.stdout.fnmatch_lines(["has: nightjar nightjar-targets nightjar-run"])
    without = pytester.runpytest_subprocess("--collect-only", "-p", "no:nightjar")
    without.stdout.fnmatch_lines(["has: "])
