"""Mention the subscribers of a topic once, if a title's `[tag]` or a label names the topic.

The feature mentions people in the sticky comment of issues and pull requests, waits until a draft is ready for review
(TVM #12824), and reads the list again when it changes. The predecessor edited the author's own text (TVM #12637),
dropped names from it, mentioned people for an empty `[]` (TVM #11454), read only the first hundred comments of its
list, and failed on an empty text.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from bot.commands.conclusion import WHAT, answer_text
from bot.commands.texts import COMMENT
from bot.core.events import ISSUE_COMMENT, PULL_REQUEST_BODY, Payload, person_or_ghost
from bot.core.listing import counted
from bot.core.run_in_thread import run_in_thread
from bot.core.titles import tags_of
from bot.effects.comments import Reply
from bot.effects.reactions import CONFUSED, React
from bot.github.errors import is_not_found, is_refusal, status_of
from bot.github.repositories.permissions import role_of
from bot.plan.effect import Effect
from bot.plan.handler import NOTHING, Context, Plan, Router
from handlers.teams.config import TEAMS
from handlers.teams.effects import MentionSubscribers, StoreTeamList
from handlers.teams.records import MENTIONED_PEOPLE, TEAM_LIST, MentionedPeople, Topics
from handlers.teams.texts import (
    FAILURE_OVER,
    ISSUE_AUTHOR_WITHOUT_ROLE,
    ISSUE_REFUSED,
    LAST_LIST_COUNTS,
    NO_ROLE,
    NO_SUBSCRIBERS,
    ONLY_APP_YAML,
    SUBSCRIBED,
    TOPICS_LISTED,
    WHY_FAILED,
)
from handlers.teams.topics import (
    LISTERS,
    OpenedThread,
    configured_topics,
    joined_topics,
    listed_topics,
    read_lines,
    topic_subscribers,
    unreadable_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.config import RepositoryConfig
    from bot.core.events import Delivery, Person
    from bot.github.client import GitHub
    from handlers.teams.config import Teams

NAME, LIST_NAME = "team-tags", "team-list"
KEY = "teams"
READ_AGAIN_SECONDS = 24 * 3600.0
"""Seconds after which a list is read again although no event reported a change, in case a webhook was lost."""


log = structlog.get_logger(__name__)

router = Router()


def accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether an issue or pull request may have topics: it is open, is not a draft, and has tags or labels.

    An edit matters only if it changes the title: the description names no topics.
    """
    subject, teams = _subject(delivery), config.of(TEAMS)
    # A draft gets another event, `ready_for_review`, when people are to be notified.
    if subject.text("state") != "open" or subject.flag("draft") or teams is None:
        return False
    if delivery.action == "edited" and not delivery.payload.has("changes", "title"):
        return False
    tagged = bool(tags_of(subject.text("title"))) or any(True for _ in subject.items("labels"))
    # The issue with the list has tags and labels too, and names everybody already.
    return tagged and subject.integer("number") != teams.issue


async def report_failure(context: Context, message: str) -> Plan:
    """Say in the section why the subscribers of the topics could not be mentioned."""
    number = _subject(context.delivery).integer("number")
    return Plan((MentionSubscribers(number, NAME, (), (), failure=message),), why=WHY_FAILED)


@router.on(
    "pull_request",
    *("opened", "reopened", "edited", "labeled", "ready_for_review"),
    name=NAME,
    feature=KEY,
    on_failure=report_failure,
    accepts=accepts,
)
@router.on(
    "issues",
    *("opened", "reopened", "edited", "labeled"),
    name=NAME,
    feature=KEY,
    on_failure=report_failure,
    accepts=accepts,
)
async def mention(context: Context) -> Plan:
    """Mention the subscribers of the topics who were not mentioned yet.

    This sends no request to GitHub, unless the list was last read more than a day ago.
    """
    config = context.config.of(TEAMS)
    if config is None:
        return NOTHING
    opened = OpenedThread.of(_subject(context.delivery))
    known_topics = await topics_of(context, config)
    effects: list[Effect] = [known_topics.store] if known_topics.store else []
    not_meant = [mention.removeprefix("@").lower() for mention in context.app_config.mentions]
    owner = context.repository.full_name.partition("/")[0]
    subscribers = await run_in_thread(
        partial(topic_subscribers, opened, known_topics.topics, owner, not_meant), opened.body
    )
    mentioned = (
        await context.records.get(MENTIONED_PEOPLE.of(context.repository.id, opened.number)) or MentionedPeople()
    )
    is_new = mentioned.with_others(subscribers) != mentioned
    if not is_new and not mentioned.failure:
        return Plan(tuple(effects), why=known_topics.with_note(NO_SUBSCRIBERS))
    effects.append(MentionSubscribers(opened.number, NAME, subscribers.people, subscribers.topics))
    reason = SUBSCRIBED.format(topics=", ".join(subscribers.topics)) if is_new else FAILURE_OVER
    return Plan(tuple(effects), why=known_topics.with_note(reason))


def is_list_event(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether the list may have changed; text by bots is not part of it."""
    teams = config.of(TEAMS)
    if teams is None or delivery.payload.integer("issue", "number") != teams.issue:
        return False
    return not person_or_ghost(_post_of(delivery)).is_bot


def _post_of(delivery: Delivery) -> Payload:
    """Return the comment of a delivery, or the issue whose description is its text."""
    return delivery.payload.at("comment" if delivery.event == "issue_comment" else "issue")


@router.on("issues", "opened", "edited", name=LIST_NAME, feature=KEY, accepts=is_list_event)
@router.on("issue_comment", "created", "edited", "deleted", name=LIST_NAME, feature=KEY, accepts=is_list_event)
async def read_list_again(context: Context) -> Plan:
    """Read the list again because it changed, and report the lines of the new text that cannot be read."""
    config, post = context.config.of(TEAMS), _post_of(context.delivery)
    if config is None or config.issue is None:
        return NOTHING
    author = person_or_ghost(post)
    # One request here prevents a stranger's comment from making us read the whole list.
    if await role_of(context.github, context.repository.full_name, author) not in LISTERS:
        return Plan(why=NO_ROLE)
    listing = await _read_list(context.github, context.repository.full_name, config.issue)
    effects: list[Effect] = [listing.store] if listing.store else []
    if context.delivery.action != "deleted":
        lines = await run_in_thread(partial(read_lines, post.text("body")), post.text("body"))
        effects += _report_unreadable(context.delivery, config.issue, lines.unreadable)
    why = TOPICS_LISTED.format(issue=config.issue, topics=counted(len(listing.topics), "topic"))
    return Plan(tuple(effects), why=listing.with_note(why))


def _report_unreadable(delivery: Delivery, number: int, lines: Sequence[str]) -> list[Effect]:
    if not lines:
        return []
    post = _post_of(delivery)
    comment = delivery.event == "issue_comment"
    kind, subject = (ISSUE_COMMENT, post.integer("id")) if comment else (PULL_REQUEST_BODY, number)
    reaction = React(kind, subject, post.text("node_id"), CONFUSED, number)
    place = COMMENT if comment else WHAT[PULL_REQUEST_BODY]
    text = answer_text(post.text("html_url"), [unreadable_text(lines)], place)
    return [reaction, Reply(number, text, post.text("updated_at"))]


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """The subscribers of each topic.

    `store` stores the list if it was read just now; `note` says why a part of it is missing.
    """

    topics: Topics
    store: StoreTeamList | None = None
    note: str = ""

    def with_note(self, reason: str) -> str:
        """Return a reason, followed by the note if there is one."""
        return f"{reason}; {self.note}" if self.note else reason


async def topics_of(context: Context, config: Teams) -> KnownTopics:
    """Return the subscribers by app.yaml and the issue's list.

    If GitHub refuses to show the issue, the stored list is used, and a note says so.
    """
    configured = configured_topics(config)
    if config.issue is None:
        return KnownTopics(configured)
    stored = await context.records.get(TEAM_LIST.of(context.repository.id))
    stored_topics = stored.topics if stored is not None and stored.issue == config.issue else None
    if stored is not None and stored_topics is not None and time.time() - stored.read_at < READ_AGAIN_SECONDS:
        return KnownTopics(joined_topics((*configured.items(), *stored_topics.items())))
    try:
        listing = await _read_list(context.github, context.repository.full_name, config.issue)
    except Exception as error:
        # Only a final refusal falls back to the stored list: after a time-out the delivery is retried.
        if not is_refusal(error):
            raise
        instead = ONLY_APP_YAML if stored_topics is None else LAST_LIST_COUNTS
        note = ISSUE_REFUSED.format(issue=config.issue, status=status_of(error), instead=instead)
        return KnownTopics(joined_topics((*configured.items(), *(stored_topics or {}).items())), note=note)
    return replace(listing, topics=joined_topics((*configured.items(), *listing.topics.items())))


def _subject(delivery: Delivery) -> Payload:
    return delivery.payload.at("pull_request" if delivery.event == "pull_request" else "issue")


async def _read_list(github: GitHub, repository: str, number: int) -> KnownTopics:
    """Read the list with one request, and one more for each hundred comments. A missing issue lists nobody."""
    read_at, url_vars = time.time(), {"repo": repository, "number": str(number)}
    posts: list[tuple[Person, str]] = []
    try:
        issue = Payload(await github.getitem("/repos/{+repo}/issues/{number}", url_vars=url_vars), "issue")
        posts.append((person_or_ghost(issue), issue.text("body")))
        async for item in github.getiter("/repos/{+repo}/issues/{number}/comments", url_vars=url_vars):
            comment = Payload(item, "comment")
            posts.append((person_or_ghost(comment), comment.text("body")))
    except Exception as error:
        if not is_not_found(error):
            raise
        log.warning("the issue that lists the teams does not exist", repository=repository, issue=number)
    by_author = [(author, await run_in_thread(partial(listed_topics, text), text)) for author, text in posts]
    # One request for each author who lists somebody, and none for other commenters.
    people = {author.id: author for author, topics in by_author if topics and not author.is_bot}
    roles = {author_id: await role_of(github, repository, person) for author_id, person in people.items()}
    entries = [topics for author, topics in by_author if roles.get(author.id) in LISTERS]
    first = by_author[0] if by_author else None
    note = (
        ISSUE_AUTHOR_WITHOUT_ROLE.format(issue=number)
        if first and first[1] and roles.get(first[0].id) not in LISTERS
        else ""
    )
    topics = joined_topics(entry for topics in entries for entry in topics.items())
    return KnownTopics(topics, StoreTeamList(number, read_at, topics), note)
