"""Greet first-time contributors with one line in the sticky comment, once.

The predecessor greeted everybody on every pull request, and greeted nobody where another of its sections failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.commands.dialogue import help_url
from bot.core.events import Payload, PullRequest
from bot.effects.comments import UpsertSection
from bot.feature import Feature
from bot.github.text.markdown import code, escape
from bot.plan.handler import NOTHING, Context, Plan, Router
from handlers.help.config import HELP
from handlers.welcome.config import KEYS, WELCOME
from handlers.welcome.texts import COMMANDS, FIRST, GREETING, NOT_FIRST

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery

NAME, KEY = "welcome", "welcome"
FIRST_TIME = frozenset({"FIRST_TIMER", "FIRST_TIME_CONTRIBUTOR"})
"""GitHub's names for people who have not contributed before, to anything or to this repository
(https://docs.github.com/en/graphql/reference/enums#commentauthorassociation)."""
MAY_BE_FIRST = FIRST_TIME | {"NONE"}
"""What webhooks say about newcomers, but about some others too: only GraphQL distinguishes them."""
QUERY = """
query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { authorAssociation } }
}
"""


router = Router()


def greeting(text: str, mention: str, url: str | None, *, with_help: bool) -> str:
    """Return the greeting in Markdown; `url` is the page that lists the commands, None if there is none."""
    greeting_text = GREETING.format(text=escape(text))
    if not with_help:
        return greeting_text
    command = code(f"{mention} help")
    return f"{greeting_text} {COMMANDS.format(help=f'[{command}]({url})' if url else command)}"


def accepts(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether a delivery may be about a person's first pull request."""
    pull = delivery.payload.at("pull_request")
    return pull.text("author_association") in MAY_BE_FIRST and not PullRequest.of(pull).author.is_bot


@router.on("pull_request", "opened", name=NAME, feature=KEY, accepts=accepts)
async def welcome(context: Context) -> Plan:
    """Greet the author at the top of the sticky comment, also on a draft."""
    welcome = context.config.of(WELCOME)
    if welcome is None:
        return NOTHING
    number = context.delivery.payload.integer("pull_request", "number")
    if not await _is_first(context, number):
        return Plan(why=NOT_FIRST)
    with_help = context.config.of(HELP) is not None
    text = greeting(welcome.text, context.app_config.mentions[0], help_url(context), with_help=with_help)
    return Plan((UpsertSection(number, NAME, text, first=True),), why=FIRST)


async def _is_first(context: Context, number: int) -> bool:
    owner, _, name = context.repository.full_name.partition("/")
    data = Payload(await context.github.graphql(QUERY, owner=owner, name=name, number=number), "graphql")
    return data.text("repository", "pullRequest", "authorAssociation") in FIRST_TIME


FEATURE = Feature(name="welcome", config=KEYS, router=router, titles={"welcome": "Welcome"})
