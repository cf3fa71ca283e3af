"""Hostile JUnit reports, each read in its own process: `python -m tests.results.formats.junit_attacks NAME`.

The process prints its outcome and its cost as JSON. Reports are generated piece by piece, so they need no memory.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from nightjar_formats.readers import junit
from nightjar_formats.refused import Refused

MB = 1 << 20
BLOCK = 1 << 14
FAILED = b'<testsuite name="pytest"><testcase classname="c" name="t"><failure message="no">'
FAILED_END = b"</failure></testcase></testsuite>"
ENTITIES = b"".join(b'<!ENTITY l%d "%s">' % (number, b"&l%d;" % (number - 1) * 10) for number in range(1, 10))


def filled(head: bytes, unit: bytes, size: int, tail: bytes) -> Iterator[bytes]:
    """Yield a report with one unit in the middle, repeated to `size` bytes."""
    block = unit * (BLOCK // len(unit))
    yield head
    yield from itertools.repeat(block, size // len(block))
    yield tail


def numbered(head: bytes, unit: bytes, count: int, tail: bytes) -> Iterator[bytes]:
    """Yield a report with a numbered unit in the middle."""
    yield head
    yield from (unit % number for number in range(count))
    yield tail


REPORTS: dict[str, Iterable[bytes]] = {
    "billion laughs": [b'<!DOCTYPE a [<!ENTITY l0 "lol">', ENTITIES, b"]><testsuite>&l9;</testsuite>"],
    "billion laughs in an attribute": [b'<!DOCTYPE a [<!ENTITY l0 "lol">', ENTITIES, b']><testsuite name="&l9;"/>'],
    "quadratic blow-up": [
        b'<!DOCTYPE a [<!ENTITY x "', b"A" * 50_000, b'">]><testsuite>', b"&x;" * 50_000, b"</testsuite>",
    ],
    "a file of the machine": [b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite>&x;</testsuite>'],
    "200,000 elements inside of each other": filled(b"", b"<testsuite>", 200_000 * 11, b""),
    "200,000 elements inside of a case": filled(FAILED, b"<b>", 200_000 * 3, b""),
    "500,000 attributes": numbered(b"<testsuite ", b'a%d="" ', 500_000, b"/>"),
    "50,000 attributes": numbered(b"<testsuite ", b'a%d="" ', 50_000, b"/>"),
    "an attribute of 16 MB": filled(b'<testsuite name="', b"x", 16 * MB, b'"/>'),
    "an attribute of 100 MB": filled(b'<testsuite name="', b"x", 100 * MB, b'"/>'),
    "a message of just under 1 MB, a hundred times": itertools.chain(
        [b"<testsuite>"],
        *(
            filled(b'<testcase classname="c" name="t"><failure message="', b"x", MB - 3 * BLOCK, b'"/></testcase>')
            for _ in range(100)
        ),
        [b"</testsuite>"],
    ),
    "a comment of 16 MB": filled(b"<testsuite><!--", b"x", 16 * MB, b"--></testsuite>"),
    "a comment of 100 MB": filled(b"<testsuite><!--", b"x", 100 * MB, b"--></testsuite>"),
    "a comment of 100 MB before the root": filled(b"<!--", b"x", 100 * MB, b"--><testsuite/>"),
    "a processing instruction of 100 MB": filled(b"<testsuite><?x ", b"x", 100 * MB, b"?></testsuite>"),
    "a tag of 100 MB": filled(b"<", b"x", 100 * MB, b"/>"),
    "100 MB of text in one failure": filled(FAILED, b"x" * 79 + b"\n", 100 * MB, FAILED_END),
    "100 MB of text on one line": filled(FAILED, b"x", 100 * MB, FAILED_END),
    "100 MB of CDATA in one failure": filled(FAILED + b"<![CDATA[", b"x" * 79 + b"\n", 100 * MB, b"]]>" + FAILED_END),
    "100 MB of text in a log": filled(
        b'<testsuite><testcase classname="c" name="t"><system-out>', b"x" * 79 + b"\n", 100 * MB,
        b"</system-out></testcase></testsuite>",
    ),
    "200,000 failures of one test": filled(
        FAILED + b"</failure>", b"<failure>x</failure>", 200_000 * 20, b"<failure>" + FAILED_END,
    ),
    "30 MB of control characters": filled(FAILED, b"\x01", 30 * MB, FAILED_END),
    "30 MB of bytes that are no UTF-8": filled(FAILED, b"\xff", 30 * MB, FAILED_END),
    "20 MB of bytes that are now UTF-8 and now not": filled(FAILED, b"\xff\xc3\xa9", 20 * MB, FAILED_END),
    "20 MB of references to control characters": filled(FAILED, b"&#1;&#27;&#x0000FFFF;", 20 * MB, FAILED_END),
    "100 MB of text after the report": filled(
        b'<testsuite><testcase classname="c" name="t"/></testsuite>', b"Done. <testsuit\n", 100 * MB, b"",
    ),
    "a million different elements": numbered(b"<testsuite>", b"<n%d/>", 1_000_000, b"</testsuite>"),
    "a million different attributes": numbered(b"<testsuite>", b'<p a%d=""/>', 1_000_000, b"</testsuite>"),
}  # fmt: skip


class Pieces:
    """A stream of pieces that are generated as they are read."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._rest = b""
        self.taken = 0
        """Bytes that were read."""

    def read(self, size: int) -> bytes:
        """Read as a file does."""
        gathered, length = [self._rest], len(self._rest)
        while length < size and (piece := next(self._pieces, None)) is not None:
            gathered.append(piece)
            length += len(piece)
        content = b"".join(gathered)
        self._rest = content[size:]
        self.taken += len(content[:size])
        return content[:size]


def main(name: str) -> None:
    """Read one report, and print its outcome."""
    pieces = Pieces(REPORTS[name])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kind, words, cases = "", "", []
    try:
        cases = [case._replace(message=case.message[:80]) for case in junit.read(cast("BinaryIO", pieces))]
    except Refused as refused:
        kind, words = type(refused).__name__, str(refused)
    stated = {
        "read": pieces.taken,
        "grown": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * 1024,
        "refused": kind,
        "words": words,
        "cases": len(cases),
        "characters": len(cases[0].text) if cases else 0,
    }
    sys.stdout.write(json.dumps(stated) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
