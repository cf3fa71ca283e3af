"""The half of the plugin that selects and reports tests: slow tests, shards, the report, the reproduce command.

Parts that a run does not use are not registered, so they cost nothing.
"""

from __future__ import annotations

import argparse

import pytest

from nightjar_formats.terminal import quoted_text
from nightjar_lab.few_tests import named_tests, repeats
from nightjar_lab.pytest import run_texts as texts
from nightjar_lab.pytest import slow
from nightjar_lab.pytest.few_tests_plugin import NamedTests, RepeatedTests
from nightjar_lab.pytest.measure import measure as measure
from nightjar_lab.pytest.report import REPORT, HeldBackCalls, Report, has_report, opened_report
from nightjar_lab.pytest.reproduce_plugin import Reproduce, prints_reproduce
from nightjar_lab.pytest.shard_plugin import Sharding, past_durations
from nightjar_lab.pytest.shards import MOST_SHARDS, ShardSpec, parse_shard


def _shard(value: str) -> ShardSpec:
    shard = parse_shard(value)
    if shard is None:
        raise argparse.ArgumentTypeError(texts.SHARD_BAD.format(value=quoted_text(value)))
    if shard.total > MOST_SHARDS:
        raise argparse.ArgumentTypeError(texts.SHARD_TOO_MANY.format(value=quoted_text(value), most=MOST_SHARDS))
    return shard


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("nightjar", "Nightjar")
    group.addoption("--slow-report", action="store_true", help=texts.SLOW_OPTION)
    group.addoption("--shard", type=_shard, metavar="NUMBER/TOTAL", help=texts.SHARD_OPTION)
    group.addoption("--durations-from", metavar="FILE_OR_URL", help=texts.DURATIONS_OPTION)
    group.addoption("--nightjar-report", metavar="FILE", help=texts.REPORT_OPTION)
    choices = ("auto", "always", "never")
    group.addoption("--nightjar-reproduce", choices=choices, default=choices[0], help=texts.REPRODUCE_OPTION)
    parser.addini("nightjar_reproduce_env", texts.REPRODUCE_INI, type="args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Register what this run asks for."""
    config.addinivalue_line("markers", texts.SLOW_MARKER)
    is_worker = hasattr(config, "workerinput")
    report, shard, source = (config.getoption(name) for name in ("slow_report", "shard", "durations_from"))
    if source and not shard and not report:
        raise pytest.UsageError(texts.DURATIONS_ALONE)
    plugins = config.pluginmanager
    try:
        tests = named_tests()
    except (OSError, UnicodeError) as error:
        raise pytest.UsageError(texts.TESTS_UNREADABLE.format(reason=error)) from None
    if tests:
        plugins.register(NamedTests(tests), "nightjar-named-tests")
        if (count := repeats()) > 1:
            plugins.register(RepeatedTests(count), "nightjar-repeated-tests")
    if slow.skips_slow_tests():
        plugins.register(slow.SkipSlowTests(), "nightjar-skip-slow")
    sharding = Sharding(config, shard, source) if shard else None
    if sharding:
        plugins.register(sharding, "nightjar-shard")
    if report:
        plugins.register(slow.MarkSlowReports(), "nightjar-mark-slow")
        if not is_worker:
            past, notice = (sharding.durations, "") if sharding else past_durations(source, texts.DURATIONS_NO_RATES)
            plugins.register(slow.SlowReport(past, notice), "nightjar-slow-report")
    if has_report(config):
        plugins.register(HeldBackCalls(), "nightjar-held-back")
    if not is_worker and prints_reproduce(config):
        plugins.register(Reproduce(config), "nightjar-reproduce")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin the report: before workers are started, and not for `pytest --help`, which has no session."""
    config = session.config
    if hasattr(config, "workerinput") or config.getoption("collectonly"):
        return
    report = opened_report(config)
    if report:
        config.pluginmanager.register(report, REPORT)
        report.start(config.getoption("shard"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the report."""
    report = config.pluginmanager.get_plugin(REPORT)
    if isinstance(report, Report):
        report.close()
