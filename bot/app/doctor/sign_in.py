"""The check of sign-in on the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.app.doctor.findings import Check, Finding, findings_of
from bot.app.doctor.texts import (
    CHECK_GITHUB,
    CLIENT_REFUSED,
    GITHUB_SILENT,
    NOT_ENCRYPTED_PAGES,
    OPERATORS_CANNOT,
    RENEW_CLIENT,
    SET_SIGN_IN,
    SIGN_IN_IS_OFF,
    SIGN_IN_OK,
    THIS_MACHINE,
    USE_HTTPS,
)
from bot.app.sign_in import sign_in_client
from bot.core.errors import TryAgain
from bot.github.sign_in import TokenEnded
from bot.web.login import CALLBACK_PATH
from bot.web.sign_in.cookies import OwnOrigin

if TYPE_CHECKING:
    import aiohttp

    from bot.config import Config
    from bot.config.environment import Settings

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
