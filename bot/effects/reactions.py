"""Reactions: the quickest way to say that a command was seen."""

from __future__ import annotations

from dataclasses import dataclass

from gidgethub import GitHubException

from bot.effects.base import Applied, EffectContext
from bot.events import ISSUE_COMMENT, PULL_REQUEST_BODY, REVIEW, REVIEW_COMMENT, Remark
from bot.github.errors import is_not_found

EYES = "eyes"
DONE = "+1"
CONFUSED = "confused"

# Reviews have no reactions in the REST API, so they take GraphQL's addReaction
# (https://docs.github.com/en/graphql/reference/mutations#addreaction).
_GRAPHQL_CONTENT = {EYES: "EYES", DONE: "THUMBS_UP", CONFUSED: "CONFUSED"}
_ADD_REACTION = """
mutation($subject: ID!, $content: ReactionContent!) {
  addReaction(input: {subjectId: $subject, content: $content}) { reaction { content } }
}
"""
_PATHS = {
    ISSUE_COMMENT: "/repos/{+repo}/issues/comments/{id}/reactions",
    REVIEW_COMMENT: "/repos/{+repo}/pulls/comments/{id}/reactions",
    PULL_REQUEST_BODY: "/repos/{+repo}/issues/{id}/reactions",
}


@dataclass(frozen=True, slots=True)
class React:
    """Put one reaction on what a person wrote. GitHub itself keeps it to one of a kind for each user.

    https://docs.github.com/en/rest/reactions/reactions
    """

    remark_kind: str
    id: int
    node_id: str
    content: str

    @classmethod
    def to(cls, remark: Remark, content: str) -> React:
        """React to a remark; the body of a pull request is addressed by the number of its issue."""
        number = remark.number if remark.kind == PULL_REQUEST_BODY else remark.id
        return cls(remark_kind=remark.kind, id=number, node_id=remark.node_id, content=content)

    @property
    def target(self) -> str:
        """The reaction and what it is put on."""
        return f"react:{self.remark_kind}:{self.id}:{self.content}"

    async def apply(self, context: EffectContext) -> Applied:
        """React; what was deleted meanwhile needs no reaction any more."""
        try:
            if self.remark_kind == REVIEW:
                await context.github.graphql(
                    _ADD_REACTION, subject=self.node_id, content=_GRAPHQL_CONTENT[self.content]
                )
            else:
                await context.github.post(
                    _PATHS[self.remark_kind],
                    url_vars={"repo": context.repository.full_name, "id": str(self.id)},
                    data={"content": self.content},
                )
        except GitHubException as error:
            if is_not_found(error):
                return Applied("what was to be reacted to is gone", changed=False)
            raise
        return Applied(f"reacted with {self.content}")
