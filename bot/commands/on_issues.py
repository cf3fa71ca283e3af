"""Commands on issues that are no pull requests: read the command of a comment, and answer it.

The dialogue reads commands on pull requests only, so a feature whose command is for issues has a handler of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.commands.grammar import Command, CommandRegistry, parse
from bot.core.events import UserComment, issue_comment_in
from bot.core.run_in_thread import run_in_thread
from bot.effects.comments import Reply
from bot.effects.reactions import CONFUSED, DONE, React
from bot.plan.handler import Handler

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery
    from bot.plan.handler import Context, PlanFunction


def handler_on_issues(name: str, plan: PlanFunction) -> Handler:
    """Return the handler of comments with a mention that people write on issues that are no pull requests."""
    events = frozenset({("issue_comment", "created")})
    return Handler(name, events, plan, accepts=_is_of_person, needs_mention=True)


def _is_of_person(delivery: Delivery, _: RepositoryConfig) -> bool:
    comment = issue_comment_in(delivery)
    return comment is not None and not comment.author.is_bot


async def first_command(context: Context, comment: UserComment, registry: CommandRegistry) -> Command | None:
    """Return the first command of a registry that a comment has; None if it has none."""
    written = await run_in_thread(
        lambda: parse(comment.text, registry=registry, mentions=context.app_config.mentions), comment.text
    )
    return next((item for item in written if isinstance(item, Command)), None)


def answer_to(comment: UserComment, text: str, *, done: bool) -> tuple[Reply, React]:
    """Return the effects that answer a comment and react to it: 👍 if it is `done`, else 😕."""
    return Reply(comment.number, text, since=comment.written_at), React.to(comment, DONE if done else CONFUSED)
