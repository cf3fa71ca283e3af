"""Store each text of a failure once. New texts of a run are compressed together in packs, because most are alike.

Each text has a number. A pack holds the texts with consecutive numbers from its own number on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.columns.collect import Columns
from nightjar_formats.columns.text_packs import TextPack, TextPacker, unpacked

from bot.results.store.tables import schema

DIGEST_BYTES = 16
"""Bytes of a text's SHA-256 that are stored: enough that nobody can construct two texts with the same."""


@dataclass(frozen=True, slots=True)
class NewTexts:
    """The texts of a run: the number of each by its position, and those that are new, numbered from `start`.

    `new_digests` and `packs` are in the order of these numbers.
    """

    start: int
    numbers: dict[int, int]
    new_digests: list[bytes]
    packs: list[TextPack]


_KNOWN = sa.select(schema.digests).where(schema.digests.c.digest.in_(sa.bindparam("digests", expanding=True)))
_NEXT = sa.select(schema.texts.c.id + schema.texts.c.count).order_by(schema.texts.c.id.desc()).limit(1)
_PACK_OF = (
    sa.select(schema.texts.c.id, schema.texts.c.texts)
    .where(schema.texts.c.id <= sa.bindparam("number"))
    .order_by(schema.texts.c.id.desc())
    .limit(1)
)
_NEW_PACKS, _NEW_DIGESTS = schema.texts.insert(), schema.digests.insert()


def prepare(connection: sa.Connection, columns: Columns) -> NewTexts:
    """Find the new texts of a run and pack them. This is the slow part, so it runs before the write transaction."""
    if not columns.texts:
        return NewTexts(0, {}, [], [])
    digests = [digest[:DIGEST_BYTES] for digest in columns.texts]
    known_numbers, start = _known(connection, digests), _next(connection)
    digest_at = dict(zip(columns.texts.values(), digests, strict=True))
    new_positions = [position for position, digest in digest_at.items() if digest not in known_numbers]
    numbers = {position: known_numbers[digest] for position, digest in digest_at.items() if digest in known_numbers}
    numbers |= zip(new_positions, range(start, start + len(new_positions)), strict=True)
    packs = list(_with_new(columns.packs, set(new_positions))) if new_positions else []
    return NewTexts(start, numbers, [digest_at[position] for position in new_positions], packs)


def save(connection: sa.Connection, prepared: NewTexts, columns: Columns) -> dict[int, int]:
    """Store the new texts of a run, and return the number of each by its position."""
    if prepared.new_digests:
        if _next(connection) != prepared.start:  # somebody else has added texts meanwhile
            prepared = prepare(connection, columns)
        _write(connection, prepared)
    return prepared.numbers


def _write(connection: sa.Connection, prepared: NewTexts) -> None:
    """Store packs of new texts, and the number of each text by its digest."""
    pack_rows, first = [], prepared.start
    for pack in prepared.packs:
        pack_rows.append({"id": first, "count": pack.size, "texts": pack.blob})
        first += pack.size
    if pack_rows:  # perhaps somebody else has stored all of them meanwhile
        connection.execute(_NEW_PACKS, pack_rows)
        numbered = enumerate(prepared.new_digests, prepared.start)
        digest_rows = [{"digest": digest, "number": number} for number, digest in numbered]
        connection.execute(_NEW_DIGESTS, digest_rows)


def _known(connection: sa.Connection, digests: Sequence[bytes]) -> dict[bytes, int]:
    """Return the numbers of the texts that are stored, by digest."""
    numbers = dict[bytes, int]()
    for chunk in schema.in_chunks(digests):
        parameters = {"digests": chunk}
        numbers |= {row.digest: row.number for row in connection.execute(_KNOWN, parameters)}
    return numbers


def _next(connection: sa.Connection) -> int:
    return connection.execute(_NEXT).scalar() or 1


def _with_new(packs: Sequence[TextPack], new_positions: Collection[int]) -> Iterator[TextPack]:
    """Yield packs of the new texts only; texts are numbered from 1."""
    packer, first = TextPacker(), 1
    for pack in packs:
        numbers = range(first, first + pack.size)
        first += pack.size
        new_numbers = [number for number in numbers if number in new_positions]
        # A pack of only new texts stays as it is, mostly without compressing it again.
        if len(new_numbers) == pack.size:
            packer.add_pack(pack)
        elif new_numbers:
            texts = unpacked(pack.blob)
            for number in new_numbers:
                packer.add(texts[number - numbers.start])
    yield from packer.finish()


class TextReader:
    """Reads texts by number. It remembers the last pack, because consecutive requests are mostly for one pack."""

    def __init__(self, reading: Callable[[], AbstractContextManager[sa.Connection]]) -> None:
        self._reading = reading
        self._last: tuple[int, list[bytes]] = (0, [])

    def text(self, number: int) -> str:
        """Return the text that has a number."""
        first, texts = self._last
        if not first <= number < first + len(texts):
            with self._reading() as connection:
                row = connection.execute(_PACK_OF, {"number": number}).one()
            first, texts = self._last = row.id, unpacked(row.texts)
        return texts[number - first].decode("utf-8", "surrogatepass")
