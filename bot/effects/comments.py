"""Comments: the one sticky comment, and answers to what people asked."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from bot.core.errors import TryAgain
from bot.core.events import Payload
from bot.effects import texts
from bot.engine.records import Record
from bot.github.access import ISSUES, PULL_REQUESTS, WritePermissions
from bot.github.addresses import GitHubPage, comment_on_github, pull_on_github
from bot.github.errors import is_not_found
from bot.github.text import sticky
from bot.plan.effect import Applied, EffectContext

REPLY_LIMIT = sticky.SIZE_LIMIT - 100
"""The most characters of an answer; the rest of GitHub's limit is for its marker."""


@dataclass(frozen=True, slots=True)
class StickyComment:
    """The number of a sticky comment."""

    id: int


STICKY = Record("sticky", 1, StickyComment, "the sticky comment of a pull request or an issue", days=365)

Change = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Returns the new sections for the existing ones, by name."""

ISSUE_COMMENTS = "/repos/{+repo}/issues/{number}/comments"
ONE_COMMENT = "/repos/{+repo}/issues/comments/{id}"


@dataclass(frozen=True, slots=True)
class UpsertSection:
    """Write one section of the pull request's sticky comment; an empty text removes the section.

    The comment is found by its marker and our user ID, over all pages. Twins from a race are merged into the oldest and
    deleted. A comment without sections is deleted.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES})

    number: int
    section: str
    text: str
    first: bool = False
    """Whether it comes before all other sections."""

    @property
    def effect_key(self) -> str:
        """The pull request's section."""
        return f"section:{self.number}:{self.section}"

    async def apply(self, context: EffectContext) -> Applied:
        """Read all comments, then create, edit or delete at most what must change.

        Raises `TryAgain` if somebody deletes the comment at the same moment.
        """
        return await write_section(context, self.number, self.section, self.text, first=self.first)


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer on a pull request with a separate comment, once for each intent or subject.

    `since` (ISO 8601) is the time of the comment that is answered: no older comment can be the answer. `text` has at
    most `REPLY_LIMIT` characters.
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES, PULL_REQUESTS})
    """The same permissions as for `React`, which almost always accompanies a reply, so that one token serves both."""

    number: int
    text: str
    since: str
    subject: str = ""
    """What the answer is about, if several deliveries write one answer: the last one counts."""

    @property
    def effect_key(self) -> str:
        """The pull request, and the subject if there is one."""
        return f"reply:{self.number}:{self.subject}" if self.subject else f"reply:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Find the answer by its marker and our user ID; write it if it is missing, edit it if its text differs.

        Twins are deleted.
        """
        digest = hashlib.sha256(f"{context.repository.id}:{self.subject or context.intent}".encode()).hexdigest()[:24]
        marker = f"<!-- nightjar:answer:{digest} -->"
        body = f"{marker}\n{self.text}"
        answers = await marked_comments(context, self.number, marker, since=self.since)
        if not answers:
            url_vars = {"repo": context.repository.full_name, "number": str(self.number)}
            created = Payload(
                await context.github.post(ISSUE_COMMENTS, url_vars=url_vars, data={"body": body}), "comment"
            )
            return Applied(texts.ANSWERED, page=comment_on_github(self.number, created.integer("id")))
        page = comment_on_github(self.number, answers[0].id)
        for twin in answers[1:]:
            await delete_comment(context, twin.id)
        if answers[0].body == body:
            return Applied(texts.ANSWER_SAME, changed=len(answers) > 1, page=page)
        # A replay may end differently than the first run.
        await _edit(context, answers[0].id, body)
        return Applied(texts.ANSWER_CORRECTED, page=page)


async def write_section(
    context: EffectContext, number: int, section: str, text: str, *, first: bool = False
) -> Applied:
    """Ensure that one section of a pull request's sticky comment has this text; see `UpsertSection`."""
    changed, page = await change_sections(
        context, number, lambda present: sticky.with_section(present, section, text, first=first)
    )
    outcome = (texts.SECTION_WRITTEN if text else texts.SECTION_REMOVED) if changed else texts.SECTION_SAME
    return Applied(outcome.format(section=section), changed=changed, page=page)


async def marked_comments(
    context: EffectContext, number: int, marker: str, since: str = ""
) -> list[sticky.PostedComment]:
    """Return our comments of an issue or pull request that begin with a marker, oldest first.

    There is more than one only if a write took effect late and was sent again meanwhile: all but the first are twins.
    `since` (ISO 8601) is the earliest time at which the first can have been written.
    """
    comments = [
        comment
        async for comment in _comments(context, number, since=since)
        if comment.author_id == context.me.user_id and comment.body.startswith(marker)
    ]
    return sorted(comments, key=lambda comment: comment.id)


async def change_sections(context: EffectContext, number: int, change: Change) -> tuple[bool, GitHubPage]:
    """Apply `change` to the sections of a pull request's sticky comment; return whether it changed, and its page.

    This is one write, and one more for each twin that is deleted. Raises `TryAgain` if somebody deletes the comment at
    the same moment.
    """
    comments = await marked_comments(context, number, sticky.MARKER) or await _recorded_sticky(context, number)
    body = sticky.render(change(sticky.merged_sections(comments)))
    twins = comments[1:] if body else comments
    is_written, comment_id = True, comments[0].id if body and comments else None
    if body and not comments:
        url_vars = {"repo": context.repository.full_name, "number": str(number)}
        created = Payload(await context.github.post(ISSUE_COMMENTS, url_vars=url_vars, data={"body": body}), "comment")
        comment_id = created.integer("id")
        await context.records.put(STICKY.of(context.repository.id, number), StickyComment(comment_id))
    elif body and comments[0].body != body:
        await _edit(context, comments[0].id, body)
    else:
        is_written = False
    # Twins last: the remaining comment must have their sections before they are deleted.
    for twin in twins:
        await delete_comment(context, twin.id)
    page = pull_on_github(number) if comment_id is None else comment_on_github(number, comment_id)
    return is_written or bool(twins), page


async def _recorded_sticky(context: EffectContext, number: int) -> list[sticky.PostedComment]:
    """Return the sticky comment by its stored number, because GitHub's list may not show a new comment yet."""
    recorded = await context.records.get(STICKY.of(context.repository.id, number))
    if recorded is None:
        return []
    url_vars = {"repo": context.repository.full_name, "id": str(recorded.id)}
    try:
        comment = _comment(Payload(await context.github.getitem(ONE_COMMENT, url_vars=url_vars), "comment"))
    except Exception as error:
        if is_not_found(error):  # somebody deleted it, and a new one is made
            return []
        raise
    return [comment] if sticky.is_sticky(comment, context.me.user_id) else []


async def _comments(context: EffectContext, number: int, since: str = "") -> AsyncIterator[sticky.PostedComment]:
    url_vars = {"repo": context.repository.full_name, "number": str(number)}
    url = ISSUE_COMMENTS + "{?since}"
    async for item in context.github.getiter(url, url_vars={**url_vars, "since": since} if since else url_vars):
        yield _comment(Payload(item, "comment"))


def _comment(item: Payload) -> sticky.PostedComment:
    return sticky.PostedComment(
        id=item.integer("id"),
        author_id=item.integer("user", "id") if item.has("user", "id") else 0,
        body=item.text("body"),
        updated_at=item.text("updated_at"),
    )


async def _edit(context: EffectContext, comment_id: int, body: str) -> None:
    url_vars = {"repo": context.repository.full_name, "id": str(comment_id)}
    try:
        await context.github.patch(ONE_COMMENT, url_vars=url_vars, data={"body": body})
    except Exception as error:
        if is_not_found(error):
            raise TryAgain(texts.COMMENT_DELETED_MEANWHILE) from error
        raise


async def delete_comment(context: EffectContext, comment_id: int) -> None:
    """Delete a comment of ours; do nothing if somebody has deleted it already."""
    try:
        await context.github.delete(ONE_COMMENT, url_vars={"repo": context.repository.full_name, "id": str(comment_id)})
    except Exception as error:
        if not is_not_found(error):  # somebody has deleted it already
            raise
