"""What the store holds as compressed bytes: columns, names, and why tests did not simply pass."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain, islice

import zstandard

from bot.results.collect import LEVEL, Columns, Reason, split
from bot.results.model import Trouble

PIECE = 4096
"""Names that are made into text, or out of it, at once: the names of 300,000 tests are 20 MB of text."""
DIGEST = 32
_HEAD = struct.Struct("<III")


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A run in the order of its suite's names: its columns compressed, and the names that the suite did not have."""

    tests: int
    statuses: bytes
    durations: bytes
    reasons: bytes | None
    new_names: list[str]


@dataclass(frozen=True, slots=True)
class Reasons:
    """Why tests did not simply pass: places of tests in ascending order, and for each the number of its reason."""

    ordinals: list[int]
    numbers: list[int]
    whys: list[Reason]


@dataclass(frozen=True, slots=True)
class Stored:
    """What one run says of its tests."""

    statuses: bytes
    reasons: Reasons


def compressed(raw: bytes) -> bytes:
    """Compress a blob."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(raw)


def raw(blob: bytes) -> bytes:
    """Return what was compressed."""
    return zstandard.ZstdDecompressor().decompress(blob)


def lay_out(columns: Columns, known: Iterable[str], count: int) -> LaidOut:
    """Bring a run into the order of its suite's `count` known names; names that it alone has follow them."""
    left = dict(columns.tests)
    length = count + len(left)
    statuses, durations = bytearray(length), bytearray(length)
    ordinals: list[int] = []
    numbers: list[int] = []
    reason_of = columns.reasons.get
    for ordinal, name in enumerate(known):
        if (packed := left.pop(name, None)) is not None:
            statuses[ordinal], durations[ordinal] = split(packed)
            if (number := reason_of(name)) is not None:
                ordinals.append(ordinal)
                numbers.append(number)
    for ordinal, (name, packed) in enumerate(left.items(), count):
        statuses[ordinal], durations[ordinal] = split(packed)
        if (number := reason_of(name)) is not None:
            ordinals.append(ordinal)
            numbers.append(number)
    return LaidOut(
        len(columns.tests),
        compressed(bytes(statuses.rstrip(b"\0"))),
        compressed(bytes(durations.rstrip(b"\0"))),
        reasons_blob(Reasons(ordinals, numbers, list(columns.whys))) if ordinals else None,
        list(left),
    )


def reasons_blob(reasons: Reasons) -> bytes:
    """Write reasons down: as JSON, then texts' digests, the distances between tests, and reasons' numbers."""
    digests = list(dict.fromkeys(why.text for why in reasons.whys if why.text))
    place = {digest: number for number, digest in enumerate(digests, 1)} | {b"": 0}
    # A line of each field: like stands beside like, which compresses better.
    fields = [
        [why.trouble for why in reasons.whys],
        [why.message for why in reasons.whys],
        [place[why.text] for why in reasons.whys],
        [why.path for why in reasons.whys],
        [why.line for why in reasons.whys],
        [why.measures for why in reasons.whys],
    ]
    text = json.dumps(fields, separators=(",", ":")).encode()
    distances = [one - before for before, one in zip(chain([0], reasons.ordinals), reasons.ordinals, strict=False)]
    count = len(reasons.ordinals)
    numbers = struct.pack(f"<{2 * count}I", *distances, *reasons.numbers)
    return compressed(_HEAD.pack(len(text), len(digests), count) + text + b"".join(digests) + numbers)


def read_reasons(blob: bytes | None) -> Reasons:
    """Read what `reasons_blob` wrote."""
    if blob is None:
        return Reasons([], [], [])
    data = raw(blob)
    length, texts, count = _HEAD.unpack_from(data)
    start = _HEAD.size + length
    fields = json.loads(data[_HEAD.size : start])
    digests = [b"", *(data[start + DIGEST * n : start + DIGEST * (n + 1)] for n in range(texts))]
    numbers = struct.unpack_from(f"<{2 * count}I", data, start + DIGEST * texts)
    whys = [
        Reason(Trouble(trouble), message, digests[text], path, line, measures)
        for trouble, message, text, path, line, measures in zip(*fields, strict=True)
    ]
    return Reasons(list(accumulate(numbers[:count])), list(numbers[count:]), whys)


def names_blob(names: list[str]) -> bytes:
    """Write names down, a line each; none of them holds a line's end."""
    compressor = zstandard.ZstdCompressor(level=LEVEL).compressobj()
    parts = []
    every = iter(names)
    while piece := list(islice(every, PIECE)):
        parts.append(compressor.compress(("\n".join(piece) + "\n").encode("utf-8", "surrogatepass")))
    return b"".join((*parts, compressor.flush()))


def read_names(blobs: Iterable[bytes]) -> Iterator[str]:
    """Yield the names of blocks, in order, without ever holding all of them."""
    for blob in blobs:
        rest = b""
        for piece in zstandard.ZstdDecompressor().read_to_iter(blob):
            lines, _, rest = (rest + piece).rpartition(b"\n")
            if lines:
                yield from lines.decode("utf-8", "surrogatepass").split("\n")


def find_name(blobs: Mapping[int, bytes], name: str) -> int | None:
    """Return the place of a name in blocks, given by the place of their first name; None if it is in none."""
    wanted = b"\n" + name.encode("utf-8", "surrogatepass") + b"\n"
    for first, blob in blobs.items():
        names = b"\n" + zstandard.ZstdDecompressor().decompressobj().decompress(blob)
        if (found := names.find(wanted)) >= 0:
            return first + names.count(b"\n", 0, found)
    return None
