"""Comments: the one sticky comment, and answers to what people asked."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from bot.effects.base import Applied, EffectContext
from bot.errors import TryAgain
from bot.github import sticky
from bot.github.errors import is_not_found
from bot.payload import Payload

REPLY_LIMIT = sticky.SIZE_LIMIT - 100
"""Characters of an answer; the rest is for its marker."""

ANSWERED = "answered"
"""What `Reply` says of an answer that it has just written; of any other, an earlier try has written one."""

Change = Callable[[Mapping[str, str]], Mapping[str, str]]
"""Makes other sections out of those that there are, by their names."""

ISSUE_COMMENTS = "/repos/{+repo}/issues/{number}/comments"
ONE_COMMENT = "/repos/{+repo}/issues/comments/{id}"


@dataclass(frozen=True, slots=True)
class UpsertSection:
    """Make one section of the pull request's sticky comment say this; an empty text takes the section away.

    The comment is found by its marker and our author id over all pages. Twins that a race left are merged into the
    oldest and deleted, and with nothing left to say the comment goes.
    """

    number: int
    section: str
    text: str
    first: bool = False
    """Whether it comes before all other sections."""

    @property
    def target(self) -> str:
        """The pull request's section."""
        return f"section:{self.number}:{self.section}"

    async def apply(self, context: EffectContext) -> Applied:
        """Read all comments, then create, edit or delete at most what must change.

        Raises `TryAgain` when the comment is deleted at this very moment.
        """
        changed = await change_sections(
            context,
            self.number,
            lambda present: sticky.with_section(present, self.section, self.text, first=self.first),
        )
        if not changed:
            return Applied(f"section {self.section} said so already", changed=False)
        return Applied(f"section {self.section} {'written' if self.text else 'taken away'}")


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer on a pull request with a comment of its own, once for each intent.

    `since` (ISO 8601) is when that was written which is answered: no older comment can be the answer. `text` has at
    most `REPLY_LIMIT` characters.
    """

    number: int
    text: str
    since: str

    @property
    def target(self) -> str:
        """The pull request."""
        return f"reply:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Look for the answer by its marker and our author id; write it if it is not there, edit it if it says else."""
        digest = hashlib.sha256(f"{context.repository.id}:{context.intent}".encode()).hexdigest()[:24]
        marker = f"<!-- nightjar:answer:{digest} -->"
        body = f"{marker}\n{self.text}"
        repo = context.repository.full_name
        async for comment in _comments(context, self.number, since=self.since):
            if comment.author_id != context.me.user_id or not comment.body.startswith(marker):
                continue
            if comment.body == body:
                return Applied("answered already", changed=False)
            # A replay has come to another end than the one that was told.
            await context.github.patch(ONE_COMMENT, url_vars={"repo": repo, "id": str(comment.id)}, data={"body": body})
            return Applied("answer corrected")
        where = {"repo": repo, "number": str(self.number)}
        await context.github.post(ISSUE_COMMENTS, url_vars=where, data={"body": body})
        return Applied(ANSWERED)


async def change_sections(context: EffectContext, number: int, change: Change) -> bool:
    """Let the sections of a pull request's sticky comment be what `change` makes of them; return whether they were not.

    All of it is one write, with one more for each twin that goes. Raises `TryAgain` when the comment is deleted at this
    very moment.
    """
    repo = context.repository.full_name
    mine = [c async for c in _comments(context, number) if sticky.is_sticky(c, context.me.user_id)]
    mine.sort(key=lambda comment: comment.id)
    wanted = sticky.render(change(sticky.merged(mine)))
    extra = mine[1:] if wanted else mine
    written = True
    if wanted and not mine:
        where = {"repo": repo, "number": str(number)}
        await context.github.post(ISSUE_COMMENTS, url_vars=where, data={"body": wanted})
    elif wanted and mine[0].body != wanted:
        await _edit(context, mine[0].id, wanted)
    else:
        written = False
    for twin in extra:
        await _delete(context, twin.id)
    return written or bool(extra)


async def _comments(context: EffectContext, number: int, since: str = "") -> AsyncIterator[sticky.Comment]:
    where = {"repo": context.repository.full_name, "number": str(number)}
    url = ISSUE_COMMENTS + "{?since}"
    async for item in context.github.getiter(url, url_vars={**where, "since": since} if since else where):
        comment = Payload(item)
        yield sticky.Comment(
            id=comment.integer("id"),
            author_id=comment.integer("user", "id") if comment.has("user", "id") else 0,
            body=comment.text("body"),
            updated_at=comment.text("updated_at"),
        )


async def _edit(context: EffectContext, comment_id: int, body: str) -> None:
    where = {"repo": context.repository.full_name, "id": str(comment_id)}
    try:
        await context.github.patch(ONE_COMMENT, url_vars=where, data={"body": body})
    except Exception as error:
        if is_not_found(error):
            raise TryAgain("the sticky comment was deleted while it was read") from error
        raise


async def _delete(context: EffectContext, comment_id: int) -> None:
    try:
        await context.github.delete(ONE_COMMENT, url_vars={"repo": context.repository.full_name, "id": str(comment_id)})
    except Exception as error:
        if not is_not_found(error):  # gone already: somebody was quicker
            raise
