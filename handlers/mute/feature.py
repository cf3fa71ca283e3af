"""The feature `mute`: mute a failing test from its page, by a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.config.environment import SETTINGS
from bot.feature import Feature, Services
from bot.web.openapi import Operation
from handlers.mute.config import KEYS
from handlers.mute.handler import NAME, REFRESH_NAME, router
from handlers.mute.page import mute_page
from handlers.mute.records import MUTE_EVENT, MUTED_TEST
from handlers.mute.route import mute_operation


def routes(services: Services) -> Sequence[Operation]:
    """Return the routes of the page, of its JSON twin, and of the button."""
    github = services.part(SETTINGS).github_url
    return [*mute_page(services, github).operations(), mute_operation(services, github)]


FEATURE = Feature(
    name="mute",
    config=KEYS,
    records=(MUTED_TEST,),
    events=(MUTE_EVENT,),
    router=router,
    titles={NAME: "Muted tests", REFRESH_NAME: "Muted tests"},
    routes=routes,
    templates=Path(__file__).parent / "templates",
)
