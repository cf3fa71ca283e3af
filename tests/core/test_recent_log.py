"""The last minutes of the log: redacted, and of limited size."""

from __future__ import annotations

import io
import logging

import structlog

from bot.core import logs
from bot.core.recent_log import LAST_SECONDS, LONGEST_LINE, MOST_LINES, RECENT_LOG, RecentLog


def test_lines_are_few_short_and_recent() -> None:
    clock = [0.0]
    log = RecentLog(lambda: clock[0])
    for number in range(MOST_LINES + 10):
        log.add({"event": "x" * 9_000, "level": "info", "number": number, "text": "y" * 9_000})
    lines = log.lines()
    assert len(lines) == MOST_LINES
    assert {(len(line.event), len(line.fields)) for line in lines} == {(LONGEST_LINE, LONGEST_LINE + 1)}
    assert f'"number": {MOST_LINES + 9}' in lines[0].fields
    clock[0] = LAST_SECONDS + 1
    assert log.lines() == []


def test_logged_lines_are_there_without_secrets() -> None:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        logs.configure(["sesame-sesame"], stream=io.StringIO(), pretty=False)
        structlog.get_logger("test").warning("something odd", token="ghu_0123456789abcdef", key="sesame-sesame")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()
    line = RECENT_LOG.lines()[0]
    assert (line.level, line.event) == ("warning", "something odd")
    assert "ghu_" not in line.fields
    assert "sesame" not in line.fields
