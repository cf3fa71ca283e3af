"""Reading one of GitHub's lists to its end, with a clear word where a permission is missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gidgethub import BadRequest

from bot.core.errors import UserError
from bot.core.payload import Payload
from bot.github.errors import is_forbidden, is_not_found

if TYPE_CHECKING:
    from bot.github.client import GitHub

UNSEEN = (
    "GitHub does not let me see the {what}: the App lacks the permission *{permission}*. "
    "Whoever owns the App grants it in the App's settings; an owner of the repository then accepts it."
)


@dataclass(frozen=True, slots=True)
class Listing:
    """A wrapped list: its URL template, the key it is under, and the permission that reading it takes."""

    url: str
    key: str
    permission: str

    async def read(self, github: GitHub, url_vars: Mapping[str, str]) -> list[Payload]:
        """Return all items, over all pages; raise `UserError` naming the permission where GitHub refuses."""
        try:
            items = github.getiter(self.url, url_vars=url_vars, iterable_key=self.key)
            return [Payload(item, f"{self.key}[]") async for item in items]
        except BadRequest as error:
            if not (is_forbidden(error) or is_not_found(error)):
                raise
            raise UserError(UNSEEN.format(what=self.key.replace("_", " "), permission=self.permission)) from error
