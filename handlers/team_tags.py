"""Whoever follows a topic is mentioned where a title's `[tag]` or a label names it, once.

The predecessor wrote into the author's own text (TVM #12637), lost a name there (`cc @a, @c` and then b), told some of
an empty `[]` (TVM #11454), read the first hundred comments of its list and failed on an empty text. Here people are
mentioned in the sticky comment, on issues too; drafts wait (TVM #12824); and the list is read when it changes.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.aside import aside
from bot.effects.base import Effect
from bot.effects.teams import KeepTeamList, MentionFollowers
from bot.github.errors import is_not_found
from bot.payload import Payload
from bot.plan import NOTHING, Context, Plan, Router
from bot.teams import TRUSTED, Opened, TeamList, Told, followers, given, joined, list_key, listed, told_key
from bot.titles import tags_of

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.config.teams import Teams
    from bot.events import Delivery
    from bot.github.client import GitHub

NAME, LIST_NAME = "team-tags", "team-list"
FEATURE = "teams"
READ_AGAIN_SECONDS = 24 * 3600.0
"""After which a list is read again although no event has told of a change: webhooks get lost."""

NOBODY = "nobody new follows what it is about"
FOLLOWED, LISTS = "they follow {topics}", "issue {issue} lists {count} topics"

log = structlog.get_logger(__name__)

router = Router()


def concerns(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether somebody may have to hear of it: it is open, no draft, and has tags or labels.

    Of edits those of the title alone: a text names no topics.
    """
    subject = _subject(delivery)
    if subject.text("state") != "open" or subject.flag("draft") or config.teams is None:
        return False
    if delivery.action == "edited" and not delivery.payload.has("changes", "title"):
        return False
    tagged = bool(tags_of(subject.text("title"))) or any(True for _ in subject.items("labels"))
    return tagged and subject.integer("number") != config.teams.issue


@router.on(
    "pull_request",
    *("opened", "reopened", "edited", "labeled", "ready_for_review"),
    name=NAME,
    feature=FEATURE,
    concerns=concerns,
)
@router.on("issues", "opened", "reopened", "edited", "labeled", name=NAME, feature=FEATURE, concerns=concerns)
async def mention(context: Context) -> Plan:
    """Mention whoever follows what was opened and has not heard of it.

    Nothing is asked of GitHub for that, unless a list has not been read for a day.
    """
    config = context.config.teams
    if config is None:
        return NOTHING
    opened = Opened.of(_subject(context.delivery))
    topics, keep = await topics_of(context, config)
    effects: list[Effect] = [keep] if keep else []
    not_meant = [mention.removeprefix("@").lower() for mention in context.app_config.mentions]
    owner = context.repository.full_name.partition("/")[0]
    found = await aside(partial(followers, opened, topics, owner, not_meant), opened.body)
    before = Told.read(await context.records.get(told_key(context.repository.id, opened.number)))
    if before.and_then(found) == before:
        return Plan(tuple(effects), why=NOBODY)
    effects.append(MentionFollowers(opened.number, NAME, found.people, found.topics))
    return Plan(tuple(effects), why=FOLLOWED.format(topics=", ".join(found.topics)))


def tells_of_list(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether the list may have changed: comments of those who may not list people are no part of it."""
    if config.teams is None or delivery.payload.integer("issue", "number") != config.teams.issue:
        return False
    comment = delivery.event == "issue_comment"
    return not comment or delivery.payload.text("comment", "author_association") in TRUSTED


@router.on("issues", "opened", "edited", name=LIST_NAME, feature=FEATURE, concerns=tells_of_list)
@router.on("issue_comment", "created", "edited", "deleted", name=LIST_NAME, feature=FEATURE, concerns=tells_of_list)
async def read_again(context: Context) -> Plan:
    """Read the list again, for it has changed."""
    config = context.config.teams
    if config is None or config.issue is None:
        return NOTHING
    read = await _read(context.github, context.repository.full_name, config.issue)
    return Plan((_keep(read),), why=LISTS.format(issue=read.issue, count=len(read.topics)))


async def topics_of(context: Context, config: Teams) -> tuple[dict[str, tuple[str, ...]], KeepTeamList | None]:
    """Return who follows what, and the list where it had to be read."""
    mine = given(config)
    if config.issue is None:
        return mine, None
    known = TeamList.read(await context.records.get(list_key(context.repository.id)))
    if known is not None and known.issue == config.issue and time.time() - known.read_at < READ_AGAIN_SECONDS:
        return joined((*mine.items(), *known.topics.items())), None
    read = await _read(context.github, context.repository.full_name, config.issue)
    return joined((*mine.items(), *read.topics.items())), _keep(read)


def _subject(delivery: Delivery) -> Payload:
    return delivery.payload.at("pull_request" if delivery.event == "pull_request" else "issue")


def _keep(read: TeamList) -> KeepTeamList:
    return KeepTeamList(read.issue, read.read_at, read.topics)


async def _read(github: GitHub, repository: str, number: int) -> TeamList:
    """Read a list: a request, and one for each hundred comments. An issue that is not there lists nobody."""
    read_at, where = time.time(), {"repo": repository, "number": str(number)}
    texts = []
    try:
        texts.append(Payload(await github.getitem("/repos/{+repo}/issues/{number}", url_vars=where)).text("body"))
        async for item in github.getiter("/repos/{+repo}/issues/{number}/comments", url_vars=where):
            comment = Payload(item, "comment")
            if comment.text("author_association") in TRUSTED:
                texts.append(comment.text("body"))
    except Exception as error:
        if not is_not_found(error):
            raise
        log.warning("the issue that is to list people is not there", repository=repository, issue=number)
    entries = [await aside(partial(listed, text), text) for text in texts]
    return TeamList(number, read_at, joined(entry for found in entries for entry in found.items()))
