"""All checks, and the loop that repeats them in a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog

from bot.app.doctor.findings import Check, Finding, findings_of
from bot.app.doctor.github import check_github
from bot.app.doctor.installed import InstallationScan
from bot.app.doctor.places import check_buckets, check_jenkins
from bot.app.doctor.texts import (
    CHECK_CRASHED,
    CHECK_FAILS,
    CHECK_GITHUB,
    CLIENT_REFUSED,
    GITHUB_SILENT,
    NOT_ENCRYPTED_PAGES,
    OPERATORS_CANNOT,
    RENEW_CLIENT,
    SEE_LOG,
    SET_SIGN_IN,
    SIGN_IN_IS_OFF,
    SIGN_IN_OK,
    THIS_MACHINE,
    USE_HTTPS,
)
from bot.app.sign_in import sign_in_client
from bot.core.errors import TryAgain
from bot.core.health import CheckResult, HealthCheck
from bot.github.limits.ranks import Rank, ranked
from bot.github.sign_in import TokenEnded
from bot.web.login import CALLBACK_PATH
from bot.web.sign_in.cookies import OwnOrigin

if TYPE_CHECKING:
    import aiohttp

    from bot.aws.client import Aws
    from bot.config import Config
    from bot.config.environment import Settings
    from bot.github.app import GitHubApp
    from bot.github.repositories.installed import InstalledRepositories
    from bot.github.repositories.known import Repositories

EVERY = 600.0
"""Seconds between two rounds of all checks: four requests to GitHub, and few more (`bot.app.doctor.installed`)."""
SOON = 15.0
"""Seconds between two rounds while GitHub refuses the App, so that the process is ready soon after a fix, and from a
webhook about an installation to the next round."""
CHECKED_ELSEWHERE = frozenset({Check.DATABASE, Check.CLOCK, Check.APP, Check.KEY})
"""Checks that `/readyz` makes itself, and sooner."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class Doctor:
    """The checks of one process."""

    config: Config
    settings: Settings
    app: GitHubApp
    http: aiohttp.ClientSession
    aws: Aws
    repositories: Repositories | None = None
    clock: Callable[[], float] = time.monotonic
    installed: InstalledRepositories | None = None
    scan: InstallationScan = field(init=False)

    def __post_init__(self) -> None:
        self.scan = InstallationScan(self.app, self.config, self.clock, self.installed)

    async def examine(self, *, idle: bool = False) -> list[Finding]:
        """Run all checks except that of the database concurrently. None raises an error.

        With `idle`, use GitHub's lists of earlier checks while they are valid.
        """
        database_url = self.settings.database_url.get_secret_value()
        rounds = await asyncio.gather(
            _guarded(Check.APP, lambda: check_github(self.app, self.config, self.scan, self.repositories, idle=idle)),
            _guarded(Check.BUCKET, lambda: check_buckets(self.config, self.aws, database_url)),
            _guarded(Check.JENKINS, lambda: check_jenkins(self.config, self.settings, self.http)),
            _guarded(Check.SIGN_IN, lambda: check_sign_in(self.config, self.settings, self.http)),
        )
        order = list(Check)
        return sorted(
            (finding for findings in rounds for finding in findings), key=lambda finding: order.index(finding.check)
        )


@dataclass(slots=True)
class HealthWatch:
    """Repeats the checks in a server. `findings` are those of the last round; `checked` is set after each.

    `checked_at` is when the last round ended, in seconds since 1970; None before the first.
    """

    doctor: Doctor
    findings: dict[Check, Sequence[Finding]] = field(default_factory=dict)
    checked: asyncio.Event = field(default_factory=asyncio.Event)
    checked_at: float | None = None
    _requested: asyncio.Event = field(default_factory=asyncio.Event)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])

    @property
    def checks(self) -> list[HealthCheck]:
        """Return the checks for `/readyz` and the metrics. They only warn: see docs/decisions."""
        return [
            # `check=check` binds the check of this round; mypy cannot infer a lambda with a default.
            HealthCheck(check.value, lambda check=check: self._shown(check), fatal=False)  # type: ignore[misc]
            for check in Check
            if check not in CHECKED_ELSEWHERE
        ]

    def results(self) -> Sequence[CheckResult]:
        """Return the results of the last round; none before the first."""
        return [
            CheckResult(finding.check.value, finding.text, finding.remedy)
            for check in Check
            for finding in self.findings.get(check, ())
        ]

    async def check_now(self) -> None:
        """Run a round of checks, and return when it has ended. All requests during a round share the next one."""
        ended = asyncio.get_running_loop().create_future()
        self._waiting.append(ended)
        self._requested.set()
        await ended

    async def run(self) -> None:
        """Check now, periodically and on request until cancelled; log what has changed."""
        while True:
            findings: dict[Check, list[Finding]] = {}
            waiting, self._waiting = self._waiting, []
            self._requested.clear()
            with ranked(Rank.SWEEP):
                examined = await self.doctor.examine(idle=not waiting)
            for finding in examined:
                findings.setdefault(finding.check, []).append(finding)
                previous = self.findings.get(finding.check, ())
                if not finding.ok and finding not in previous:
                    log.warning("check failed", check=finding.check.value, reason=finding.text, remedy=finding.remedy)
                elif finding.ok and not all(previous_finding.ok for previous_finding in previous):
                    log.info("check passes again", check=finding.check.value)
            self.findings = {**self.findings, **findings}
            self.checked_at = time.time()
            self.checked.set()
            for ended in waiting:
                if not ended.done():
                    ended.set_result(None)
            with suppress(TimeoutError):
                async with asyncio.timeout(EVERY):
                    await self._needed()
            self.checked.clear()

    async def _needed(self) -> None:
        """Wait for a request for a round, or until GitHub refuses the App, or a list of repositories is outdated."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(SOON):
                    await self._requested.wait()
                return
            if self.doctor.app.refused is not None or self.doctor.scan.is_outdated:
                return

    def _shown(self, check: Check) -> str | None:
        fine = all(finding.ok for finding in self.findings.get(check, ()))
        return None if fine else CHECK_FAILS.format(what=check.value)


async def _guarded(check: Check, examine: Callable[[], Awaitable[list[Finding]]]) -> list[Finding]:
    """Run checks; an unexpected error becomes a finding, so that the server and the other checks continue."""
    try:
        return await examine()
    except Exception as error:
        log.exception("check crashed", check=check.value)
        return [Finding(check, CHECK_CRASHED.format(kind=type(error).__name__), SEE_LOG)]


NO_TOKEN = f"ghu_{'0' * 36}"
"""A token that does not exist: GitHub checks the client before it checks the token to revoke."""


async def check_sign_in(config: Config, settings: Settings, http: aiohttp.ClientSession) -> list[Finding]:
    """Ask GitHub to revoke a token that does not exist: the answer says whether it accepts the client of the App."""
    client = sign_in_client(settings, http)
    if client is None:
        off = [(OPERATORS_CANNOT, SET_SIGN_IN)] if config.operators else []
        return findings_of(Check.SIGN_IN, off, SIGN_IN_IS_OFF)
    problems = []
    try:
        await client.revoke(NO_TOKEN)
    except TokenEnded:
        problems.append((CLIENT_REFUSED, RENEW_CLIENT))
    except TryAgain as error:
        problems.append((GITHUB_SILENT.format(reason=error), CHECK_GITHUB))
    if config.public_url and not OwnOrigin(config.public_url).is_trusted:
        problems.append((NOT_ENCRYPTED_PAGES.format(url=config.public_url), USE_HTTPS))
    origin = OwnOrigin(config.public_url).public
    callback = f"{origin}{CALLBACK_PATH}" if origin else THIS_MACHINE
    return findings_of(Check.SIGN_IN, problems, SIGN_IN_OK.format(callback=callback))
