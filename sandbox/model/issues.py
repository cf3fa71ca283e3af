"""Issues, with the parts that pull requests share: the conversation, labels and the state."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sandbox.model.home import Home
from sandbox.model.labels import Label
from sandbox.model.reactions import REACTIONS, Reactable, Reaction
from sandbox.users import By, User, node_id

if TYPE_CHECKING:
    from sandbox.model.apps import App


@dataclass(eq=False)
class Comment:
    """A comment in the conversation of an issue or pull request."""

    id: int
    issue: Issue
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    app: App | None = None
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("IC", self.id)

    def __repr__(self) -> str:
        return f"<comment {self.id} by {self.user}: {self.body!r}>"


class Issue:
    """An issue and its conversation. Every change made here sends the webhooks that GitHub would send."""

    event = "issues"

    def __init__(self, repository: Home, number: int, user: User, title: str, body: str | None) -> None:
        self.repository = repository
        self.github = repository.github
        self.id = self.github.new_id()
        self.number = number
        self.user = user
        self.title = title
        self.body = body
        self.state = "open"
        self.created_at = self.updated_at = self.github.clock.now()
        self.closed_at: datetime | None = None
        self.closed_by: User | None = None
        self.comments: list[Comment] = []
        self.reactions_to_body: list[Reaction] = []
        self.labels: list[Label] = []
        self.locked = False
        """Whether only people with write access may comment and react, and no App."""
        self.last_edited: tuple[datetime, User] | None = None
        """The time of the last change of the text, and who made it."""
        self.history: list[tuple[str, User, datetime]] = []
        """What was announced: the action, the person and the time. A new title is `renamed`."""

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("I", self.id)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.repository.full_name}#{self.number}>"

    def comment(self, actor: By, body: str, app: App | None = None) -> Comment:
        """Write a comment."""
        moment = self.github.clock.now()
        made = Comment(self.github.new_id(), self, self.github.user(actor), body, moment, moment, app)
        self.comments.append(made)
        self.touch()
        self.github.events.comment("created", made.user, made)
        return made

    def edit_comment(self, comment: Comment, body: str, by: By | None = None) -> None:
        """Change the text of a comment, as its author unless `by` says otherwise."""
        old_body, comment.body = comment.body, body
        comment.updated_at = self.github.clock.now()
        actor = comment.user if by is None else self.github.user(by)
        self.github.events.comment("edited", actor, comment, {"body": {"from": old_body}})

    def delete_comment(self, comment: Comment, by: By | None = None) -> None:
        """Delete a comment, as its author unless `by` says otherwise."""
        actor = comment.user if by is None else self.github.user(by)
        self.comments.remove(comment)
        self.github.events.comment("deleted", actor, comment)

    def comments_by(self, login: str) -> list[Comment]:
        """Return the comments of one person or bot, oldest first."""
        return [comment for comment in self.comments if comment.user.login == login]

    def reactions(self, subject: Issue | Reactable | None = None, by: str = "") -> list[str]:
        """Return the reactions to a comment or review (or to the body), as names such as `eyes`, in order."""
        reactions = reactions_of(self if subject is None else subject)
        return [reaction.content for reaction in reactions if by in {"", reaction.user.login}]

    def react(self, actor: By, content: str, subject: Issue | Reactable | None = None) -> tuple[Reaction, bool]:
        """Add a reaction; return it and whether it is new. GitHub sends no webhook for reactions."""
        assert content in REACTIONS, f"{content!r} is not one of {sorted(REACTIONS)}"
        return add_reaction(self.github.user(actor), content, self if subject is None else subject, self)

    def edit(self, actor: By, *, title: str | None = None, body: str | None = None) -> None:
        """Change title or body."""
        changes: dict[str, Any] = {}
        if title is not None and title != self.title:
            changes["title"], self.title = {"from": self.title}, title
        if body is not None and body != self.body:
            changes["body"], self.body = {"from": self.body or ""}, body
            self.last_edited = self.github.clock.now(), self.github.user(actor)
        if changes:
            self.announce("edited", actor, {"changes": changes})

    def label(self, actor: By, *names: str) -> None:
        """Add labels, each with its own webhook."""
        for name in names:
            added = self.repository.label(name)
            if added not in self.labels:
                self.labels.append(added)
                self.announce("labeled", actor, {"label": added})

    def unlabel(self, actor: By, name: str) -> None:
        """Remove a label."""
        removed = self.repository.label(name)
        self.labels.remove(removed)
        self.announce("unlabeled", actor, {"label": removed})

    def close(self, actor: By) -> None:
        """Close without merging."""
        self.state = "closed"
        self.closed_at, self.closed_by = self.github.clock.now(), self.github.user(actor)
        self.announce("closed", actor)

    def reopen(self, actor: By) -> None:
        """Open again."""
        self.state, self.closed_at, self.closed_by = "open", None, None
        self.announce("reopened", actor)

    def announce(self, action: str, actor: By, members: dict[str, Any] | None = None) -> None:
        """Send the webhook of a change and wake whoever waits for one."""
        self.touch()
        renamed = "title" in (members or {}).get("changes", {})
        self.history.append(("renamed" if renamed else action, self.github.user(actor), self.github.clock.now()))
        self.github.events.issue(action, self.github.user(actor), self, members or {})

    def touch(self) -> None:
        """Set the time of the last update to now."""
        self.updated_at = self.github.clock.now()


def reactions_of(subject: Issue | Reactable) -> list[Reaction]:
    """Return the list of a subject's reactions."""
    return subject.reactions_to_body if isinstance(subject, Issue) else subject.reactions


def add_reaction(user: User, content: str, subject: Issue | Reactable, issue: Issue) -> tuple[Reaction, bool]:
    """Add a reaction unless the user has left the same one before; return it and whether it is new."""
    reactions = reactions_of(subject)
    for reaction in reactions:
        if reaction.user is user and reaction.content == content:
            return reaction, False
    added = Reaction(issue.github.new_id(), user, content, issue.github.clock.now())
    reactions.append(added)
    issue.github.changed()
    return added, True
