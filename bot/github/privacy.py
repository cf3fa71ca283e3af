"""Remember which repositories a payload called private since GitHub last answered that they are public.

All processes share the record, so one that receives no webhook knows it too. A payload may be days old, so it only ever
makes a repository private; only GitHub's own answer reverts that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.payload import Payload
from bot.engine.records import Key, Record

if TYPE_CHECKING:
    from bot.engine.records import Records

NOBODY = ""


@dataclass(frozen=True, slots=True)
class CalledPrivateBy:
    """The GUID of the delivery that called a repository private, empty if none did."""

    delivery: str = NOBODY


CALLED_PRIVATE = Record(
    "called-private", 1, CalledPrivateBy, "the last delivery that called a repository private", days=None
)


def is_called_public(repository: Payload) -> bool:
    """Return whether GitHub's description of a repository calls it public; `internal` is a visibility of its own.

    https://docs.github.com/rest/repos/repos#get-a-repository
    """
    return repository.raw.get("private") is False and repository.text("visibility") in ("", "public")


class CalledPrivate:
    """The records, by the repositories' names in app.yaml. All methods raise ConnectorException without a database."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def by(self, name: str) -> str:
        """Return the GUID of the delivery that called `owner/name` private, empty if none did."""
        return (await self._records.get(_key(name)) or CalledPrivateBy()).delivery

    async def note(self, name: str, delivery: str, *, changed: bool) -> None:
        """Remember that the delivery with this GUID calls `owner/name` private.

        `changed`: the delivery reports the change itself. It replaces an older delivery's GUID, so that an answer that
        GitHub sent before the change cannot undo it. Other payloads do not, so that all events of a private repository
        together write once.
        """
        if changed or not await self.by(name):
            await self._records.put(_key(name), CalledPrivateBy(delivery))

    async def take_back(self, name: str, delivery: str) -> None:
        """Forget that this delivery called `owner/name` private; what another has said since stands."""
        said = CalledPrivateBy(delivery)
        # Remove the record only if it has not changed: a later delivery has the last word.
        await self._records.change(_key(name), lambda known: CalledPrivateBy() if known == said else None)


def _key(name: str) -> Key[CalledPrivateBy]:
    return CALLED_PRIVATE.of(name.lower())
