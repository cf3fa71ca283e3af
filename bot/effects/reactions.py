"""Reactions: the quickest way to show that the bot has seen a command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gidgethub import GitHubException

from bot.core.events import ISSUE_COMMENT, PULL_REQUEST_BODY, REVIEW, REVIEW_COMMENT, Payload, UserComment
from bot.effects import texts
from bot.github.access import ISSUES, PULL_REQUESTS, WritePermissions
from bot.github.addresses import NO_PAGE, GitHubPage, comment_on_github
from bot.github.errors import is_not_found, is_unprocessable
from bot.plan.effect import Applied, EffectContext

EYES = "eyes"
DONE = "+1"
CONFUSED = "confused"


# The REST API has no reactions for reviews, so these use GraphQL's addReaction and removeReaction
# (https://docs.github.com/en/graphql/reference/mutations#addreaction).
_GRAPHQL_CONTENT = {EYES: "EYES", DONE: "THUMBS_UP", CONFUSED: "CONFUSED"}
_ADD_REACTION = """
mutation($subject: ID!, $content: ReactionContent!) {
  addReaction(input: {subjectId: $subject, content: $content}) { reaction { content } }
}
"""
_REMOVE_REACTION = """
mutation($subject: ID!, $content: ReactionContent!) {
  removeReaction(input: {subjectId: $subject, content: $content}) { reaction { content } }
}
"""
_PATHS = {
    ISSUE_COMMENT: "/repos/{+repo}/issues/comments/{id}/reactions",
    REVIEW_COMMENT: "/repos/{+repo}/pulls/comments/{id}/reactions",
    PULL_REQUEST_BODY: "/repos/{+repo}/issues/{id}/reactions",
}


@dataclass(frozen=True, slots=True)
class React:
    """Add one reaction to a comment. GitHub allows each user one reaction of a kind.

    https://docs.github.com/en/rest/reactions/reactions
    """

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES, PULL_REQUESTS})

    comment_kind: str
    id: int
    node_id: str
    content: str
    number: int = 0
    """The pull request or the issue; 0 if it is not known."""

    @classmethod
    def to(cls, comment: UserComment, content: str) -> React:
        """Return the reaction to a comment; GitHub addresses the body of a pull request by its issue number."""
        comment_id = comment.number if comment.kind == PULL_REQUEST_BODY else comment.id
        return cls(comment.kind, comment_id, comment.node_id, content, comment.number)

    @property
    def effect_key(self) -> str:
        """The reaction and the comment."""
        return f"react:{self.comment_kind}:{self.id}:{self.content}"

    async def apply(self, context: EffectContext) -> Applied:
        """React; succeed without a reaction if the comment was deleted meanwhile."""
        page = _page(self.number, self.comment_kind, self.id)
        try:
            if self.comment_kind == REVIEW:
                await _mutate(context, _ADD_REACTION, self.node_id, self.content)
            else:
                url_vars = _url_vars(context, self.id)
                # This may be sent twice: GitHub answers 200 and adds nothing if the App already has this reaction.
                # https://docs.github.com/en/rest/reactions/reactions#create-reaction-for-an-issue-comment
                await context.github.post(_PATHS[self.comment_kind], url_vars=url_vars, data={"content": self.content})
        # Not only BadRequest: for a review, GraphQL raises another error.
        except GitHubException as error:
            if is_not_found(error):
                return Applied(texts.COMMENT_DELETED, changed=False, page=page)
            raise
        return Applied(texts.REACTED.format(content=self.content), page=page)


@dataclass(frozen=True, slots=True)
class RemoveReaction:
    """Remove our reaction from a comment; the reactions of others stay."""

    permissions: ClassVar[WritePermissions] = frozenset({ISSUES, PULL_REQUESTS})

    comment_kind: str
    id: int
    node_id: str
    content: str
    number: int = 0
    """The pull request or the issue; 0 if it is not known."""

    @property
    def effect_key(self) -> str:
        """The reaction and the comment."""
        return f"unreact:{self.comment_kind}:{self.id}:{self.content}"

    async def apply(self, context: EffectContext) -> Applied:
        """Find our reaction, and remove it."""
        try:
            if self.comment_kind == REVIEW:
                await _mutate(context, _REMOVE_REACTION, self.node_id, self.content)
                removed = True
            else:
                removed = await self._remove(context)
        except GitHubException as error:
            if not (is_not_found(error) or is_unprocessable(error)):
                raise
            removed = False
        text = texts.REACTION_REMOVED if removed else texts.NO_REACTION
        page = _page(self.number, self.comment_kind, self.id)
        return Applied(text.format(content=self.content), changed=removed, page=page)

    async def _remove(self, context: EffectContext) -> bool:
        """Remove our reaction with the REST API; return whether there was one."""
        path, url_vars = _PATHS[self.comment_kind], _url_vars(context, self.id)
        removed = False
        async for item in context.github.getiter(path + "{?content}", url_vars={**url_vars, "content": self.content}):
            reaction = Payload(item, "reaction")
            if reaction.has("user", "id") and reaction.integer("user", "id") == context.me.user_id:
                reaction_vars = {**url_vars, "reaction_id": str(reaction.integer("id"))}
                await context.github.delete(path + "/{reaction_id}", url_vars=reaction_vars)
                removed = True
        return removed


async def _mutate(context: EffectContext, mutation: str, node_id: str, content: str) -> None:
    await context.github.graphql(mutation, subject=node_id, content=_GRAPHQL_CONTENT[content])


def _page(number: int, kind: str, comment_id: int) -> GitHubPage:
    return comment_on_github(number, comment_id, kind) if number else NO_PAGE


def _url_vars(context: EffectContext, number: int) -> dict[str, str]:
    return {"repo": context.repository.full_name, "id": str(number)}
