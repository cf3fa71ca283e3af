"""Read the results of builds from Jenkins: an aborted build may leave its commit status pending forever.

https://www.jenkins.io/doc/book/using/remote-access-api/
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import aiohttp
import structlog

from bot.core.errors import PayloadError, TryAgain, UserError
from bot.core.events import Payload
from bot.core.parts import PartKey
from bot.core.web_json import Reader

if TYPE_CHECKING:
    from bot.config.environment import Settings

TIMEOUT = aiohttp.ClientTimeout(total=5)
"""Seconds for one build: a person waits for the answer."""
LARGEST = 16 * 1024
"""Bytes of an answer that are read."""
MOST = 20
"""The most builds to ask about for one command; for the others, their statuses count."""
AT_ONCE = 5
"""The most concurrent requests."""
# `tree` selects two fields: a whole build lists its changes and artifacts, without a limit.
BUILD = "{url}/api/json?tree=building,result"

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JenkinsBuilds:
    """Asks Jenkins about builds; `authorization` is the header that goes with each request, if any."""

    reader: Reader
    authorization: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, http: aiohttp.ClientSession, settings: Settings) -> JenkinsBuilds:
        """Return an instance that reads as the user of `JENKINS_USER`, or anonymously if none is set."""
        user, token = settings.jenkins_user, settings.jenkins_token
        authorization = (
            aiohttp.encode_basic_auth(user, token.get_secret_value()) if user and token is not None else None
        )
        return cls(Reader(http), authorization)

    async def results(self, urls: Sequence[str]) -> dict[str, str]:
        """Return the result, such as `ABORTED`, of each build that is over, by its address.

        The caller must have found every address below a server of app.yaml (`parse_build`): the credentials go there.
        Builds are left out if Jenkins gives no clear answer within a few seconds.
        """
        first_urls, semaphore = urls[:MOST], asyncio.Semaphore(AT_ONCE)

        async def read_result(url: str) -> str:
            async with semaphore:
                return await self._result(url)

        results = await asyncio.gather(*map(read_result, first_urls))
        return {url: result for url, result in zip(first_urls, results, strict=True) if result}

    async def _result(self, url: str) -> str:
        headers = {"Authorization": self.authorization} if self.authorization else {}
        try:
            response_body = await self.reader.json(
                BUILD.format(url=url), headers=headers, within=TIMEOUT, limit=LARGEST
            )
            build = Payload(response_body, "Jenkins build")
            is_over = build.has("building") and not build.flag("building")
            return build.text("result") if is_over else ""
        except (TryAgain, UserError, PayloadError) as error:
            log.info("could not read the result of a build", build=url, reason=str(error))
            return ""


JENKINS = PartKey[JenkinsBuilds]("jenkins")
