"""The sandbox's chat channels:

they accept what the real ones accept, and refuse what those refuse or would notify for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from sandbox.channel_rules import discord_faults, slack_faults
from sandbox.channels import ChannelSandbox, DiscordSandbox, SlackSandbox

QUIET: dict[str, Any] = {"allowed_mentions": {"parse": []}}
DISCORD = {"content": "It fails", **QUIET}
SECTION = {"type": "rich_text_section", "elements": [{"type": "text", "text": "It fails"}]}
BLOCK = {"type": "rich_text", "elements": [SECTION]}
SLACK = {"text": "It fails", "blocks": [BLOCK], "unfurl_links": False, "unfurl_media": False}


def element(**values: str) -> dict[str, Any]:
    """Return a message with one element."""
    return {**SLACK, "blocks": [{"type": "rich_text", "elements": [{**SECTION, "elements": [values]}]}]}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (DISCORD, []),
        ([], ["not a JSON object"]),
        (QUIET, ["an empty message"]),
        ({**DISCORD, "content": "😀" * 1001}, ["content of 2002 characters"]),
        ({**DISCORD, "embeds": [{"description": "x" * 4097}]}, ["description of 4097 characters"]),
        ({**DISCORD, "embeds": [{"description": "x" * 4000}] * 2}, ["embeds of 8001 characters"]),
        ({**DISCORD, "embeds": [{"description": "x", "color": 1 << 24}]}, ["the color 16777216"]),
        ({**DISCORD, "embeds": [{"description": "x"}] * 11}, ["11 embeds"]),
        ({**DISCORD, "username": "x", "tts": True}, ["an unknown key tts", "an unknown key username"]),
        ({"content": "@everyone"}, ["mentions would notify people"]),
    ],
)
def test_discord_accepts_or_refuses_each_message(body: Any, expected: list[str]) -> None:
    assert discord_faults(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (SLACK, []),
        ([], ["not a JSON object"]),
        ({**SLACK, "text": "x" * 4001}, ["text of 4001 characters"]),
        ({**SLACK, "text": "<!channel> a"}, ["<!channel> in text would notify people or be a link"]),
        ({**SLACK, "unfurl_links": True}, ["unfurl_links is on"]),
        ({**SLACK, "blocks": [BLOCK] * 51}, ["51 blocks"]),
        ({**SLACK, "blocks": [{"type": "markdown", "text": "x"}]}, ["a block of type markdown"]),
        ({**SLACK, "blocks": [{"type": "rich_text", "elements": []}]}, ["a rich_text without elements"]),
        ({**SLACK, "channel": "#x"}, ["an unknown key channel"]),
        (element(type="text", text=""), ["the element {'type': 'text', 'text': ''}"]),
        (element(type="text", text="x" * 3001), ["block of 3001 characters"]),
        (element(type="broadcast", range="channel"), ["the element {'type': 'broadcast', 'range': 'channel'}"]),
        (element(type="link", url="javascript:x", text="x"), ["a link to javascript:x"]),
    ],
)
def test_slack_accepts_or_refuses_each_message(body: Any, expected: list[str]) -> None:
    assert slack_faults(body) == expected


@pytest.mark.parametrize(
    ("kind", "good", "answers"),
    [
        (DiscordSandbox, DISCORD, [(204, ""), (400, "50035"), (404, "10015"), (404, "10015")]),
        (SlackSandbox, SLACK, [(200, "ok"), (400, "invalid_payload"), (404, "no_service"), (404, "no_service")]),
    ],
)
async def test_a_channel_answers_as_the_real_one_does(
    kind: Callable[[], ChannelSandbox], good: dict[str, Any], answers: list[tuple[int, str]]
) -> None:
    channel = kind()
    async with channel.serve() as url, aiohttp.ClientSession() as session:

        async def post(url: str, body: dict[str, Any]) -> tuple[int, str]:
            async with session.post(url, json=body) as answer:
                return answer.status, await answer.text()

        responses = [await post(url, good), await post(url, {}), await post(f"{url}x", good)]
        channel.removed = True
        responses.append(await post(url, good))
    assert [status for status, _ in responses] == [status for status, _ in answers]
    assert all(word in text for (_, text), (_, word) in zip(responses, answers, strict=True)), responses
    assert channel.messages == [good]
    assert channel.refused != []
