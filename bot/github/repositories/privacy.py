"""Remember which repositories a payload has described as private since GitHub last answered that they are public.

The records are shared, so a process that receives no webhooks knows it too. A payload may be days old, so it can only
make a repository private; only GitHub's own answer reverts that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.engine.records import Key, Record

if TYPE_CHECKING:
    from bot.engine.records import RecordReader, Records

NOBODY = ""


@dataclass(frozen=True, slots=True)
class CalledPrivateBy:
    """The GUID of the delivery that called a repository private, empty if none did."""

    delivery: str = NOBODY


CALLED_PRIVATE = Record(
    "called-private", 1, CalledPrivateBy, "the last delivery that called a repository private", days=None
)


def is_called_public(repository: Payload) -> bool:
    """Return whether GitHub describes a repository as public; the visibility `internal` is not public.

    https://docs.github.com/rest/repos/repos#get-a-repository
    """
    return repository.raw.get("private") is False and repository.text("visibility") in ("", "public")


def is_called_private(repository: Payload) -> bool:
    """Return whether GitHub describes a repository as private; not every description says it."""
    return repository.has("private") and not is_called_public(repository)


class CalledPrivate:
    """The records, by the repositories' names in app.yaml. All methods raise DatabaseFailure without a database."""

    def __init__(self, records: Records) -> None:
        self._records = records

    async def delivery_of(self, name: str, records: RecordReader | None = None) -> str:
        """Return the GUID of the delivery that called `owner/name` private, empty if none did.

        Whoever has fetched its record passes `records`.
        """
        return (await (records or self._records).get(called_private_key(name)) or CalledPrivateBy()).delivery

    async def deliveries_of(self, names: Collection[str]) -> dict[str, str]:
        """Return the GUIDs of the deliveries that called some repositories private, by the names that were given."""
        stored = await self._records.get_some([called_private_key(name) for name in names])
        return {
            name: called.delivery
            for name in names
            if (called := stored.get(called_private_key(name).name)) and called.delivery
        }

    async def note(self, name: str, delivery: str, *, changed: bool) -> None:
        """Remember that the delivery with this GUID calls `owner/name` private.

        `changed`: the delivery reports the change itself. Its GUID replaces that of an older delivery, so that an
        answer that GitHub sent before the change cannot undo it. Other payloads don't replace it, so all events of a
        private repository together write once.
        """
        if changed or not await self.delivery_of(name):
            await self._records.put(called_private_key(name), CalledPrivateBy(delivery))

    async def take_back(self, name: str, delivery: str) -> None:
        """Forget that this delivery called `owner/name` private, unless a later one has called it private since."""
        record = CalledPrivateBy(delivery)
        # Change the record only if it still names this delivery.
        await self._records.change(
            called_private_key(name), lambda stored: CalledPrivateBy() if stored == record else None
        )


def called_private_key(name: str) -> Key[CalledPrivateBy]:
    """Return the key of the record of `owner/name`, a name in app.yaml."""
    return CALLED_PRIVATE.of(name.lower())
