"""Messages in channels: sent over HTTP, once if that can be known, and never with the webhook's address."""

from __future__ import annotations

import traceback
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.config.environment import SETTINGS
from bot.core.errors import TryAgain, UserError
from bot.core.events import Payload
from bot.effects.issues import EnsureIssue
from bot.news.channels import Channel
from bot.news.effects import MESSAGE_EVENT, IssueState, PostMessage, PostNews, message_effects
from bot.news.message import News, NewsItem
from bot.news.texts import MAYBE_POSTED_BEFORE
from sandbox.channels import ChannelSandbox, DiscordSandbox
from tests.conversations.channels import Channels, channels
from tests.handlers.driver import World, a_world

NEWS = News("main: gpu/branch fails", (NewsItem("gpu/branch", "failure", "https://ci.example.org/7"),))
SAID = "❌ main: gpu/branch fails\n- gpu/branch: failure (details)"
SAID_AGAIN = f"{SAID}\n{MAYBE_POSTED_BEFORE}"


@dataclass
class ChannelSender:
    """A world with one of the two channels."""

    world: World
    place: Channel
    channel: ChannelSandbox

    async def report(self, key: str = "alarm:1", news: News = NEWS) -> str:
        """Send news; return its text in the audit record."""
        return (await self.world.apply_alone(PostNews(self.place, key, news))).text

    async def fails(self, kind: type[Exception] = TryAgain) -> Exception:
        """Send news to a channel that refuses it; return the error, after checking that it hides the address."""
        with pytest.raises(kind) as raised:
            await self.report()
        printed = "".join(traceback.format_exception(raised.value)) + repr(raised.value)
        assert self.channel.path not in printed
        assert raised.value.__cause__ is None
        assert raised.value.__context__ is None
        return raised.value


@pytest.fixture
async def chats() -> AsyncIterator[Channels]:
    async with channels() as opened:
        yield opened


@pytest.fixture
async def world(tmp_path: Path, chats: Channels) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        addresses = {
            "discord_webhook_url": SecretStr(chats.discord.url),
            "slack_webhook_url": SecretStr(chats.slack.url),
        }
        parts = world.pipeline.parts
        parts[SETTINGS] = parts[SETTINGS].model_copy(update=addresses)
        yield world


@pytest.fixture(params=["discord", "slack"])
def sender(request: pytest.FixtureRequest, world: World, chats: Channels) -> ChannelSender:
    place: Channel = request.param
    return ChannelSender(world, place, chats.discord if place == "discord" else chats.slack)


def test_each_place_gets_its_message_and_none_twice() -> None:
    issue_state = IssueState("alarm:main", "main is broken", "`gpu/branch` fails.")
    discord, issue, slack = message_effects(("discord", "issue", "slack", "discord"), "alarm:1", NEWS, issue_state)
    assert discord == PostMessage("discord", "alarm:1", NEWS)
    assert slack == PostMessage("slack", "alarm:1", NEWS)
    assert isinstance(issue, EnsureIssue)
    assert (issue.key, issue.title, issue.body) == ("alarm:main", "main is broken", "`gpu/branch` fails.")
    assert issue.news.startswith("❌ **main: gpu/branch fails**")
    assert issue.news_key == "alarm:1"
    assert len({discord.effect_key, slack.effect_key, issue.effect_key}) == 3


async def test_a_channel_gets_its_news_one_after_another_and_once_each(sender: ChannelSender) -> None:
    """A handler's plan does not wait for it: it becomes a delivery, of which there is one for each key."""
    name, texts = sender.place.title(), []
    for key in ("alarm:1", "alarm:1", "alarm:2"):
        texts.append((await sender.world.apply_alone(PostMessage(sender.place, key, NEWS))).text)
    assert texts == [f"queued for {name}", f"already queued for {name}", f"queued for {name}"]
    events = await sender.world.stored_events()
    assert [(event.event, event.lock) for event in events] == [(MESSAGE_EVENT.name, f"news:{sender.place}")] * 2
    assert MESSAGE_EVENT.read(Payload(events[0].body)) == PostNews(sender.place, "alarm:1", NEWS)
    assert sender.channel.messages == []


async def test_a_message_is_posted_once_however_often_it_is_requested(sender: ChannelSender) -> None:
    first_text, *later_texts = [await sender.report() for _ in range(3)]
    assert first_text == f"posted in {sender.place.title()}"
    assert later_texts == [f"already posted in {sender.place.title()}"] * 2
    assert sender.channel.said == [SAID]
    await sender.report("alarm:2", News("well", good=True))
    assert sender.channel.said == [SAID, "✅ well"]


async def test_discord_is_asked_to_answer_only_once_the_message_exists(world: World, chats: Channels) -> None:
    await world.apply_alone(PostNews("discord", "alarm:1", NEWS))
    assert chats.discord.requests == [f"{chats.discord.path}?wait=true"]


async def test_a_message_is_posted_after_the_requested_pause(sender: ChannelSender) -> None:
    sender.channel.faults.add("POST", "*", status=429, headers={"Retry-After": "7"})
    error = await sender.fails()
    assert isinstance(error, TryAgain)
    assert (str(error), error.retry_in) == (f"{sender.place.title()} is limiting our messages for now", 7.0)
    await sender.report()
    assert sender.channel.said == [SAID]


async def test_discord_may_name_the_pause_only_in_its_answer(world: World, chats: Channels) -> None:
    chats.discord.faults.add("POST", "*", status=429)
    error = await ChannelSender(world, "discord", chats.discord).fails()
    assert isinstance(error, TryAgain)
    assert error.retry_in == DiscordSandbox.PAUSE


async def test_a_pause_of_unknown_length_is_left_to_the_engine(world: World, chats: Channels) -> None:
    chats.slack.faults.add("POST", "*", status=429)
    error = await ChannelSender(world, "slack", chats.slack).fails()
    assert isinstance(error, TryAgain)
    assert error.retry_in is None


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_after_an_error_of_the_service_the_next_message_says_that_it_may_be_a_repetition(
    sender: ChannelSender, status: int
) -> None:
    sender.channel.faults.add("POST", "*", status=status)
    assert str(await sender.fails()) == f"{sender.place.title()} answered {status}"
    await sender.report()
    assert sender.channel.said == [SAID_AGAIN]


async def test_a_message_whose_answer_is_lost_is_posted_twice_and_the_second_says_so(sender: ChannelSender) -> None:
    sender.channel.faults.add("POST", "*", drop="after")
    assert "did not answer" in str(await sender.fails())
    await sender.report()
    await sender.report()
    assert sender.channel.said == [SAID, SAID_AGAIN]


async def test_after_an_unreachable_service_the_message_is_not_marked_as_a_repetition(sender: ChannelSender) -> None:
    await sender.channel.stop()
    assert "did not answer" in str(await sender.fails())
    async with sender.channel.serve():
        addresses = {f"{sender.place}_webhook_url": SecretStr(sender.channel.url)}
        parts = sender.world.pipeline.parts
        parts[SETTINGS] = parts[SETTINGS].model_copy(update=addresses)
        await sender.report()
        assert sender.channel.said == [SAID]


async def test_a_possible_repetition_is_marked_even_after_a_later_refused_try(sender: ChannelSender) -> None:
    sender.channel.faults.add("POST", "*", drop="after")
    await sender.fails()
    sender.channel.faults.add("POST", "*", status=429)
    await sender.fails()
    await sender.report()
    assert sender.channel.said == [SAID, SAID_AGAIN]


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_a_removed_webhook_is_reported_with_its_variable(sender: ChannelSender, status: int) -> None:
    sender.channel.faults.add("POST", "*", status=status, message="no_service")
    name, variable = sender.place.title(), f"{sender.place.upper()}_WEBHOOK_URL"
    answer = f"code {DiscordSandbox.CODES.get(status, 0)}" if sender.place == "discord" else "no_service"
    assert str(await sender.fails(UserError)) == (
        f"{name} no longer accepts messages at the webhook of {variable} ({status}, {answer}). "
        f"The webhook or its channel may have been removed: create a new one, set {variable} to its address, and "
        "restart the bot."
    )
    await sender.report()
    assert sender.channel.said == [SAID]


async def test_a_removed_webhook_is_recognized_by_its_answer(sender: ChannelSender) -> None:
    sender.channel.removed = True
    assert "(404, " in str(await sender.fails(UserError))


@pytest.mark.parametrize("status", [400, 413])
async def test_a_refused_message_names_the_variable_too(sender: ChannelSender, status: int) -> None:
    sender.channel.faults.add("POST", "*", status=status, message="invalid_payload", times=None)
    name, variable = sender.place.title(), f"{sender.place.upper()}_WEBHOOK_URL"
    assert str(await sender.fails(UserError)).startswith(f"{name} refused a message ({status}, ")
    assert f"{variable} must be the full address of a webhook of {name}" in str(await sender.fails(UserError))


async def test_a_redirect_is_not_followed(sender: ChannelSender, chats: Channels) -> None:
    elsewhere = chats.slack if sender.place == "discord" else chats.discord
    sender.channel.faults.add("POST", "*", status=307, headers={"Location": elsewhere.url})
    assert "refused a message (307" in str(await sender.fails(UserError))
    assert elsewhere.requests == []


async def test_text_from_other_servers_is_not_repeated(sender: ChannelSender) -> None:
    sender.channel.faults.add("POST", "*", status=400, message="@everyone look at https://x.example", times=None)
    assert "x.example" not in str(await sender.fails(UserError))


async def test_a_channel_without_a_webhook_is_reported_with_its_variable(sender: ChannelSender) -> None:
    parts = sender.world.pipeline.parts
    parts[SETTINGS] = parts[SETTINGS].model_copy(update={f"{sender.place}_webhook_url": None})
    assert str(await sender.fails(UserError)) == (
        f"{sender.place.upper()}_WEBHOOK_URL is not set, so the bot cannot post in {sender.place.title()}: "
        "set it to a webhook's address, and restart."
    )
