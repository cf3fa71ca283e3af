"""Read one of GitHub's lists to its end; name the permission that the App lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gidgethub import BadRequest

from bot.ci.texts import NOT_SHOWN, cannot_see
from bot.core.errors import UserError
from bot.core.events import Payload
from bot.github.errors import is_forbidden, is_not_found, message_of
from bot.github.forbidden import is_generic
from bot.plan.failure_text import refusal_text

if TYPE_CHECKING:
    from bot.github.client import GitHub


class ListingDenied(UserError):
    """GitHub does not show a list to the App; `permission` is what the App needs, as in `Actions: read`."""

    def __init__(self, permission: str) -> None:
        super().__init__(cannot_see([permission]))
        self.permission = permission


@dataclass(frozen=True, slots=True)
class Listing:
    """A wrapped list: its URL template, the key it is under, and the permission that reading it needs."""

    url: str
    key: str
    permission: str

    async def read(self, github: GitHub, url_vars: Mapping[str, str]) -> list[Payload]:
        """Return all items, over all pages. Raises `UserError` if GitHub refuses.

        The error is a `ListingDenied` unless GitHub names another reason than a missing permission.
        """
        try:
            items = github.getiter(self.url, url_vars=url_vars, iterable_key=self.key)
            return [Payload(item, f"{self.key}[]") async for item in items]
        except BadRequest as error:
            # GitHub may answer 404 in place of a 403:
            # https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api#404-not-found-for-an-existing-resource
            if not (is_forbidden(error) or is_not_found(error)):
                raise
            if is_forbidden(error) and not is_generic(message_of(error)):
                raise UserError(NOT_SHOWN.format(reason=refusal_text(error))) from error
            raise ListingDenied(self.permission) from error
