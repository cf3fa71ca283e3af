"""Which repositories a payload called private since GitHub last answered that they are public.

The record `called-private:<owner/name>`, in small letters, is shared by all processes, so one that receives no webhook
knows it too. A payload may be days old, so it only ever makes a repository private; GitHub's own answer takes it back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.payload import Payload

if TYPE_CHECKING:
    from bot.engine.records import Records

PREFIX = "called-private:"
NOBODY = ""


def is_called_public(repository: Payload) -> bool:
    """Say whether GitHub's description of a repository calls it public; `internal` is a visibility of its own.

    https://docs.github.com/rest/repos/repos#get-a-repository
    """
    return repository.raw.get("private") is False and repository.text("visibility") in ("", "public")


class CalledPrivate:
    """The records, by what app.yaml calls the repositories. All methods raise ConnectorException without a database."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def by(self, name: str) -> str:
        """Return the GUID of the delivery that called `owner/name` private, empty where none did."""
        stored = await self._records.get(_key(name))
        return stored["delivery"] if stored is not None else NOBODY

    async def note(self, name: str, delivery: str, *, changed: bool) -> None:
        """Remember that the delivery with this GUID calls `owner/name` private.

        `changed`: it tells of the change itself. It takes the place of an older one, so that no answer that was on its
        way meanwhile can take it back. Other payloads do not, so that the events of a private repository write once.
        """
        if changed or not await self.by(name):
            await self._records.put(_key(name), {"delivery": delivery})

    async def take_back(self, name: str, delivery: str) -> None:
        """Forget that this delivery called `owner/name` private; what another has said since stands."""
        await self._records.exchange(_key(name), {"delivery": delivery}, {"delivery": NOBODY})


def _key(name: str) -> str:
    return f"{PREFIX}{name.lower()}"
