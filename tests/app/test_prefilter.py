"""A delivery that the prefilter ignores has no effect in a job either; in doubt the prefilter decides nothing."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.app.features import NOTES, full_router
from bot.app.load import parse_config
from bot.app.prefilter import CERTAIN_SECONDS, REFRESH_SECONDS, RepositoryView, WebhookPrefilter
from bot.app.processor import Pipeline
from bot.core.events import Delivery, Payload, Repository
from bot.engine.processor import Routing
from bot.engine.sql.errors import DatabaseFailure
from bot.github.repositories.known import Repositories
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.robustness.test_webhook_examples import examples, repositories
from tests.waiting import until

ALL_ON: Mapping[str, Any] = {
    "slow_tests": True,
    "cc_reviewers": True,
    "merge": {"label": "merge"},
    "main_failures": {"branches": ["changes"]},
    "welcome": {},
    "lint": {},
}
ID = 7


def delivery(event: str = "status", *, guid: str = "g", **body: Any) -> Delivery:
    described = {"id": ID, "full_name": FULL_NAME, "private": False}
    return Delivery(guid, event, Payload({"repository": described, **body}), 0.0)


def pipeline_of(world: World, keys: Mapping[str, Any], names: list[str]) -> Pipeline:
    config = parse_config(json.dumps({"repositories": dict.fromkeys(names, keys)}).encode(), "app.yaml")
    prefilter = WebhookPrefilter(full_router(), config.mentions, NOTES, clock=lambda: 0.0)
    known = Repositories(config, world.records)
    return replace(world.pipeline, config=config, repositories=known, prefilter=prefilter)


@pytest.mark.parametrize("keys", [{}, ALL_ON, {**ALL_ON, "repository_file": False}], ids=["plain", "all", "no file"])
async def test_an_ignored_delivery_changes_no_record_and_no_handler_accepts_it(
    tmp_path: Path, keys: Mapping[str, Any]
) -> None:
    decided: Counter[bool] = Counter()
    async with a_world(tmp_path) as world:
        # Half of them, so that some are of repositories that app.yaml does not name.
        pipeline = world.pipeline = pipeline_of(world, keys, repositories()[::2])
        for number, (event, body) in enumerate(examples()):
            one = Delivery(str(number), event, Payload(body), 0.0)
            await pipeline.note(one)
            reason = pipeline.prefilter.why_ignored(one)
            decided[bool(reason)] += 1
            if reason:
                before = await world.stored()
                await pipeline.note(one)
                assert await pipeline.handlers_for(one) == Routing(reason=reason), event
                assert await world.stored() == before, event
    assert decided[True] > 2 * decided[False]


class Clock:
    """A clock that a test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def prefilter(clock: Clock) -> WebhookPrefilter:
    """Return the prefilter of a bot with one public repository."""
    config = parse_config(json.dumps({"repositories": {FULL_NAME: {}}}).encode(), "app.yaml")
    made = WebhookPrefilter(full_router(), config.mentions, NOTES, clock)
    view = RepositoryView(FULL_NAME, config.repository(FULL_NAME), called_private=False, at=clock())
    made.remember(Repository(ID, FULL_NAME, None), view)
    return made


ON_A_PULL = {"number": 1, "pull_request": {"url": "https://api.github.com"}}


def comment(text: str | None, **more: Any) -> Delivery:
    return delivery("issue_comment", action="created", **{"comment": {"body": text}, "issue": ON_A_PULL, **more})


def test_a_comment_without_a_mention_has_no_effect(prefilter: WebhookPrefilter) -> None:
    assert prefilter.why_ignored(comment("looks good")) == "no handler accepts it"
    assert prefilter.why_ignored(comment(None)) == "no handler accepts it"
    assert prefilter.why_ignored(comment("`@CI help`")) == "", "its job names the missing field"
    assert prefilter.why_ignored(comment("@ci help", issue={"number": 1})) == "", "some commands are for issues"
    assert prefilter.why_ignored(comment("looks good", issue={"number": 1})) == "no handler accepts it"
    incomplete = delivery("issue_comment", action="created", issue=ON_A_PULL)
    assert prefilter.why_ignored(incomplete) == "", "its job names the missing field"


HUBOT, BOT = {"id": 5, "login": "hubot", "type": "User"}, {"id": 6, "login": "nightjar[bot]", "type": "Bot"}


@pytest.mark.parametrize(
    ("author", "sender", "ignored"),
    [(HUBOT, HUBOT, False), (BOT, BOT, True), (HUBOT, BOT, True), (BOT, HUBOT, False)],
    ids=["a person", "a bot", "a bot edits", "a person edits a bot's"],
)
def test_a_mention_by_a_bot_has_no_effect(
    prefilter: WebhookPrefilter, author: Mapping[str, Any], sender: Mapping[str, Any], ignored: bool
) -> None:
    written = {"id": 9, "body": "> @ci help", "user": author, "updated_at": "2026-11-26T08:00:00Z"}
    assert prefilter.why_ignored(comment(None, comment=written, sender=sender)) == (
        "no handler accepts it" if ignored else ""
    )


def test_an_event_that_no_handler_accepts_has_no_effect(prefilter: WebhookPrefilter) -> None:
    assert prefilter.why_ignored(delivery("star", action="created")) == "no feature uses star.created"
    assert prefilter.why_ignored(delivery("status")) == "the features that use it are off for this repository"
    assert prefilter.why_ignored(Delivery("g", "ping", Payload({}), 0.0)) == "no feature uses ping"


@pytest.mark.parametrize(
    "one",
    [
        delivery("installation", action="created"),
        delivery("repository", action="edited"),
        delivery("pull_request", action="assigned"),
        delivery("star", action=1),
        delivery("star", repository={"id": ID, "full_name": "octocat/other"}),
        delivery("star", repository={"id": ID + 1, "full_name": FULL_NAME}),
        delivery("star", repository={"full_name": FULL_NAME}),
        delivery("star", repository={"id": ID, "full_name": FULL_NAME, "private": True}),
        delivery("nightjar.timer"),
    ],
    ids=lambda one: one.event,
)
def test_in_doubt_there_is_a_job(prefilter: WebhookPrefilter, one: Delivery) -> None:
    assert prefilter.why_ignored(one) == ""


def test_records_count_as_certain_for_a_moment(prefilter: WebhookPrefilter, clock: Clock) -> None:
    clock.now += CERTAIN_SECONDS - 0.1
    assert prefilter.why_ignored(delivery())
    clock.now += 0.2
    assert not prefilter.why_ignored(delivery())


def test_records_that_an_effect_may_have_changed_are_not_certain(prefilter: WebhookPrefilter, clock: Clock) -> None:
    repository = Repository(ID, FULL_NAME, None)
    view = prefilter.view_of(repository)
    assert view is not None
    prefilter.forget(repository)
    assert not prefilter.why_ignored(delivery())
    # It was read before the change, and arrives after it.
    prefilter.remember(repository, view)
    assert not prefilter.why_ignored(delivery())
    clock.now += 0.1
    prefilter.remember(repository, replace(view, at=clock.now))
    assert prefilter.why_ignored(delivery())


async def test_while_deliveries_arrive_records_are_read_again_even_without_jobs(
    prefilter: WebhookPrefilter, clock: Clock
) -> None:
    view, asked, away = prefilter.view_of(Repository(ID, FULL_NAME, None)), list[int](), [True]
    assert view is not None

    async def read(repository: Repository) -> RepositoryView:
        asked.append(repository.id)
        if away[0]:
            raise DatabaseFailure
        return replace(view, at=clock())

    clock.now += CERTAIN_SECONDS + 1
    refreshing = asyncio.create_task(prefilter.refresh_views(read, pause=0))
    assert not prefilter.why_ignored(delivery())
    await until(lambda: asked == [ID])
    assert not prefilter.why_ignored(delivery()), "without the database nothing is certain"
    away[0] = False
    await until(lambda: bool(prefilter.why_ignored(delivery())))
    refreshing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await refreshing


async def test_a_view_that_was_just_read_is_not_read_again(prefilter: WebhookPrefilter, clock: Clock) -> None:
    """A command and its answer are two deliveries in one moment, and the job of the first has read the view."""
    read_at: list[float] = []

    async def read(repository: Repository) -> RepositoryView:
        view = prefilter.view_of(repository)
        assert view is not None
        read_at.append(clock.now)
        return replace(view, at=clock.now)

    refreshing = asyncio.create_task(prefilter.refresh_views(read, pause=0))
    began = clock.now
    # In every round a delivery arrives, so the view never expires, but only some rounds read it.
    for _ in range(12):
        assert prefilter.why_ignored(delivery())
        for _ in range(5):
            await asyncio.sleep(0)
        clock.now += REFRESH_SECONDS
    assert [moment - began for moment in read_at] == [1.0, 2.0, 3.0, 4.0, 5.0]
    refreshing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await refreshing
