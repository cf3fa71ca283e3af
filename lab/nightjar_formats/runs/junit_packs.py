"""Join small JUnit reports into few files, for runners that write one for each class or program.

Documents whose `<testsuites>` have the same name stand in one of that name: readers recognize a dialect by it. A joined
file is used only if its cases are those of its parts, so a report that the reader must repair stays as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from nightjar_formats import readers
from nightjar_formats.model import Case
from nightjar_formats.refused import Refused

MAX_PART_BYTES = 1 << 20
"""The most bytes of a report that is joined with others."""
MAX_PACK_BYTES = 8 << 20
PACK = "nightjar-junit-{number}.xml"
FORMAT = "junit"
_ROOTS = ("testsuites", "testsuite")
_UTF_8 = (None, "utf-8", "us-ascii", "ascii")

Document = tuple[str, bytes]
"""The name of a report's `<testsuites>`, empty without one, and its root element with everything in it."""


class _HasDoctype(Exception):
    """The document has a DOCTYPE, which no reader accepts."""


def joined(paths: Sequence[Path], into: Path) -> list[Path]:
    """Write joined reports into a folder; return their paths, and those of the reports that cannot be joined.

    The same reports become the same files. Raises OSError.
    """
    remaining: list[Path] = []
    groups: dict[str, list[tuple[Path, bytes]]] = defaultdict(list)
    for path in paths:
        document = _document(path)
        if document is None:
            remaining.append(path)
        else:
            name, element = document
            groups[name].append((path, element))
    into.mkdir(parents=True, exist_ok=True)
    packs: list[Path] = []
    for name, parts in groups.items():
        for batch in _batches(parts):
            content = _pack(name, [element for _, element in batch])
            if _cases(content) == [case for path, _ in batch for case in _cases(path.read_bytes()) or ()]:
                packs.append(into / PACK.format(number=len(packs) + 1))
                packs[-1].write_bytes(content)
            else:
                remaining += [path for path, _ in batch]
    return packs + remaining


def _batches(parts: Sequence[tuple[Path, bytes]]) -> Iterator[list[tuple[Path, bytes]]]:
    batch: list[tuple[Path, bytes]] = []
    size = 0
    for part in parts:
        if size + len(part[1]) > MAX_PACK_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(part)
        size += len(part[1])
    if batch:
        yield batch


def _pack(name: str, elements: Sequence[bytes]) -> bytes:
    attribute = f" name={quoteattr(name)}" if name else ""
    start = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites{attribute}>\n'
    return start.encode() + b"\n".join(elements) + b"\n</testsuites>\n"


def _document(path: Path) -> Document | None:
    """Return the document of a file; None if it is large, not well-formed JUnit in UTF-8, or has a DOCTYPE."""
    if path.stat().st_size > MAX_PART_BYTES:
        return None
    raw = path.read_bytes()
    parser = expat.ParserCreate()
    depth = 0
    starts: list[tuple[int, str, str]] = []
    ends: list[int] = []
    faults: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        if not depth:
            name = attributes.get("name", "") if tag == "testsuites" else ""
            starts.append((parser.CurrentByteIndex, tag, name))
        depth += 1

    def end(_tag: str) -> None:
        nonlocal depth
        depth -= 1
        if not depth:
            ends.append(parser.CurrentByteIndex)

    def declaration(_version: str, encoding: str | None, _standalone: int) -> None:
        if encoding and encoding.lower() not in _UTF_8:
            faults.append(encoding)

    def doctype(*_: object) -> None:
        # With it, entities could grow without a limit.
        raise _HasDoctype

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.XmlDeclHandler = declaration
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(raw, True)
    except (expat.ExpatError, _HasDoctype):
        return None
    [(first, tag, name)], [last] = starts, ends
    if faults or tag not in _ROOTS or raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    closing = raw.find(b">", last) + 1
    return name, raw[first:closing]


def _cases(content: bytes) -> list[Case] | None:
    try:
        return list(readers.read(BytesIO(content), PACK, FORMAT))
    except Refused:
        return None
