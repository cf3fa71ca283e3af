"""app.yaml of a running process: read again on request, while the last good one stays in use.

docs/decisions/changes-of-app-yaml.md says why the parts of the process are built again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from bot.app.load import load_config
from bot.app.texts import CONFIG_NOT_IN_USE, FIRST_ERROR, SEE_LOG
from bot.config import ConfigError
from bot.config.load import files_beside
from bot.config.newest import NewestConfig
from bot.core.errors import SettingsError, StartError
from bot.core.health import HealthCheck
from bot.news.channels import check_channels

if TYPE_CHECKING:
    from bot.config import Config
    from bot.config.environment import Settings

WATCH_SECONDS = 2.0
"""The interval in which `--watch` compares the files: editors write them in several steps."""
MOST_REASONS = 20
"""Errors of one file in the log."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def config_check(newest: NewestConfig) -> HealthCheck:
    """Return the check for `/readyz`, which names no repository: strangers may read it."""

    def shown() -> str | None:
        if not newest.problem:
            return None
        reason = FIRST_ERROR.format(place=newest.place) if newest.place else SEE_LOG
        return CONFIG_NOT_IN_USE.format(reason=reason)

    return HealthCheck("config", shown, fatal=False)


@dataclass(slots=True)
class ConfigFile:
    """The file of a running process. `changed` asks to read it again; `newest` says why it is not in use."""

    path: Path
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    newest: NewestConfig = field(default_factory=NewestConfig)
    stamps: list[tuple[str, int, int, int]] = field(init=False)
    """Name, inode, size and time of each file, from before it was read."""

    def __post_init__(self) -> None:
        self.stamps = self._stamps()

    async def newer(self, current: Config, settings: Settings) -> Config | None:
        """Read the file; return None, with a line in the log, if it cannot be used or equals the `current` one."""
        self.changed.clear()
        try:
            # In a thread: a file of 10,000 repositories takes a second.
            config = await asyncio.to_thread(load_config, self.path)
            check_channels(config, settings)
        except (ConfigError, SettingsError) as error:
            self.refuse(error)
            return None
        self.newest.problem = self.newest.place = ""
        if config == current:
            log.info("app.yaml has no changes", path=str(self.path))
            return None
        return config

    def refuse(self, error: ConfigError | SettingsError | StartError) -> None:
        """Remember and log why the file cannot be used."""
        reasons, place = [str(error)], ""
        if isinstance(error, SettingsError):
            reasons = list(error.problems)
        elif isinstance(error, ConfigError):
            first, reasons = error.faults[0], [str(fault) for fault in error.faults]
            place = f"{Path(first.file).name}:{first.line}:{first.column}"
        self.newest.problem, self.newest.place = "; ".join(reasons), place
        for reason in reasons[:MOST_REASONS]:
            log.warning("app.yaml is not in use", reason=reason, errors=len(reasons))

    async def watch(self) -> None:
        """Set `changed` whenever a file has changed, until cancelled."""
        while True:
            stamps = await asyncio.to_thread(self._stamps)
            if stamps != self.stamps:
                self.stamps = stamps
                self.changed.set()
            await asyncio.sleep(WATCH_SECONDS)

    def _stamps(self) -> list[tuple[str, int, int, int]]:
        try:
            files = [self.path, *files_beside(self.path)]
            states = [(str(file), file.stat()) for file in files if file.exists()]
        except (ConfigError, OSError):
            return []
        return [(name, state.st_ino, state.st_size, state.st_mtime_ns) for name, state in states]


@contextmanager
def hangups(stop: asyncio.Event, file: ConfigFile) -> Iterator[None]:
    """Read app.yaml again after SIGHUP; stop if the reason is that the terminal of the process was closed."""
    loop = asyncio.get_running_loop()
    log_is_terminal = os.isatty(sys.stderr.fileno())

    def hang_up() -> None:
        is_closed = log_is_terminal and not os.isatty(sys.stderr.fileno())
        (stop if is_closed else file.changed).set()

    loop.add_signal_handler(signal.SIGHUP, hang_up)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
