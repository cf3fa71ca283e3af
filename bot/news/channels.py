"""Post news to chat channels through their webhooks, and check that the environment has the webhooks.

A webhook's address is a secret: no error, log or repr of this module shows it. So the errors of aiohttp, which contain
it, are neither chained nor quoted.
"""

from __future__ import annotations

from typing import Any, Literal

import aiohttp
from nightjar_formats.strict_json import read_json
from pydantic import SecretStr
from yarl import URL

from bot.config import Config
from bot.config.environment import Settings
from bot.core.errors import Away, SettingsError, TryAgain, UserError
from bot.core.patterns import Pattern
from bot.core.web_json import LONGEST_PAUSE, seconds_in
from bot.news.message import News
from bot.news.render import as_discord, as_slack
from bot.news.texts import (
    CHANNEL_BUSY,
    CHANNEL_ERROR,
    CHANNEL_UNREACHABLE,
    MESSAGE_REFUSED,
    WEBHOOK_NEEDED,
    WEBHOOK_REMOVED,
)

Channel = Literal["discord", "slack"]

_WORD = Pattern("[a-z_]{1,60}")

NAMES: dict[Channel, str] = {"discord": "Discord", "slack": "Slack"}
VARIABLES: dict[Channel, str] = {"discord": "DISCORD_WEBHOOK_URL", "slack": "SLACK_WEBHOOK_URL"}

TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
"""Seconds for one message."""
LONGEST_ANSWER = 4096
"""Bytes of a refusal that are read."""


def webhook_of(settings: Settings, place: Channel) -> SecretStr | None:
    """Return the address to post to, None if it is not set."""
    return settings.discord_webhook_url if place == "discord" else settings.slack_webhook_url


def check_channels(config: Config, settings: Settings) -> None:
    """Raise `SettingsError` with a line for each webhook that app.yaml asks for and the environment does not have."""
    missing: dict[str, str] = {}
    for repository, keys in config.configured.entries.items():
        for key, place in keys.places():
            if place != "issue" and webhook_of(settings, place) is None:
                words = {"variable": VARIABLES[place], "repository": repository, "place": place, "key": key}
                missing.setdefault(place, WEBHOOK_NEEDED.format(**words))
    if missing:
        raise SettingsError(missing.values())


async def post(http: aiohttp.ClientSession, place: Channel, webhook: SecretStr, news: News) -> Exception | None:
    """Post news; return None if it was posted, or the error if it certainly was not.

    Raises `Away` if it may have been posted: the answer was lost, or is a server error.
    """
    url = webhook.get_secret_value().rstrip("/")
    if place == "discord":
        url += "?wait=true"  # without it, Discord answers before it has stored the message, and hides errors
    try:
        async with http.post(
            URL(url, encoded=True),
            json=as_discord(news) if place == "discord" else as_slack(news),
            allow_redirects=False,
            timeout=TIMEOUT,
        ) as response:
            status = response.status
            if 200 <= status < 300:
                return None
            if status < 500:
                return _refusal(place, response, await response.content.read(LONGEST_ANSWER))
            problem = CHANNEL_ERROR.format(name=NAMES[place], status=status)
    # Return the error instead of raising it: without a connection, nothing was posted.
    except aiohttp.ClientConnectorError as error:
        return Away(CHANNEL_UNREACHABLE.format(name=NAMES[place], problem=type(error).__name__))
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        problem = CHANNEL_UNREACHABLE.format(name=NAMES[place], problem=type(error).__name__)
    raise Away(problem)


def _refusal(place: Channel, response: aiohttp.ClientResponse, body: bytes) -> Exception:
    """Return the error of an answer that refuses the message.

    https://docs.discord.com/developers/topics/rate-limits,
    https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks
    """
    name, status, answer = NAMES[place], response.status, _read_answer(body)
    if status == 429:
        wait = seconds_in(response.headers.get("Retry-After"))
        # Slack names the seconds in the header, Discord in both, with fractions in the body.
        return TryAgain(
            CHANNEL_BUSY.format(name=name), retry_in=_seconds(answer.get("retry_after")) if wait is None else wait
        )
    text = WEBHOOK_REMOVED if status in (401, 403, 404, 410) else MESSAGE_REFUSED
    reason = ", ".join([str(status), *_reason(answer)])
    return UserError(text.format(name=name, variable=VARIABLES[place], reason=reason))


def _read_answer(body: bytes) -> dict[str, Any]:
    """Return Discord's JSON as it is, and Slack's one word as `error`; ignore anything else."""
    try:
        answer = read_json(body)
    except ValueError:
        word = body.strip().decode(errors="replace")
        return {"error": word} if _WORD.fullmatch(word) else {}
    return answer if isinstance(answer, dict) else {}


def _seconds(value: object) -> float | None:
    return float(min(value, LONGEST_PAUSE)) if isinstance(value, int | float) and value >= 0 else None


def _reason(answer: dict[str, Any]) -> list[str]:
    code = answer.get("code")
    return [f"code {code}"] if isinstance(code, int) else [answer["error"]] if "error" in answer else []
