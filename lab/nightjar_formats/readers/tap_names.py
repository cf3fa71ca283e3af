"""Part the description of a TAP result into the test's name and what the tool appended, which differs between runs."""

from __future__ import annotations

from typing import NamedTuple

from nightjar_formats.patterns import Pattern
from nightjar_formats.readers.tap_lines import ResultLine

CRITERION = "Criterion "
"""The beginning of the comment with which a report of Criterion begins."""

# Check, all of whose descriptions end with an outcome: `tests/check_dma.c:Core:copies: Passed`
# (`tap_lfun` in https://github.com/libcheck/check/blob/master/src/check_log.c).
_CHECK = Pattern(r"((?:[A-Za-z]:)?[^:]+\.[A-Za-z]\w{0,3}):([^:]*):([A-Za-z_]\w*): ?(.*)")
_PASSED = "Passed"
# PHPUnit before version 6: `not ok 2 - Failure: DmaTest::testCopies`.
_PHPUNIT = Pattern(r"(?:Failure|Error|Warning|Risky): (\S+::.*)")
# GLib, whose names are paths: `not ok 5 /dma/copies - ERROR:../tests/dma.c:12:copies: assertion failed (3 == 4)`.
_GLIB_ERROR = " - ERROR:"
# Criterion: `not ok - dma::copies unexpected signal after dma.c:14`, `ok - dma::fills a description (0.00s)`
# (https://github.com/Snaipe/Criterion/blob/master/src/io/tap.c).
_CRITERION = Pattern(r"(\S+::\S+)\s*(.*)")
_ABORTED = Pattern(r"unexpected signal after |timed out\b")


class TapName(NamedTuple):
    """A test's name without its outcome, the file that is part of it, and the reason that was appended."""

    name: str
    path: str = ""
    reason: str = ""


def tap_name(result: ResultLine, *, is_criterion: bool = False) -> TapName:
    """Return the name of a result's test, the same whether it passed or failed.

    >>> tap_name(ResultLine(True, 1, "check_dma.c:Core:copies: Passed"))
    TapName(name='Core::copies', path='check_dma.c', reason='')
    """
    described = result.name
    if is_criterion and (found := _CRITERION.fullmatch(described)) is not None:
        return TapName(found[1], reason=found[2] if _ABORTED.match(found[2]) is not None else "")
    if ":" in described and (found := _CHECK.fullmatch(described)) is not None:
        if result.is_ok and found[4] == _PASSED:
            return TapName(f"{found[2]}::{found[3]}", found[1])
        if not result.is_ok:
            return TapName(f"{found[2]}::{found[3]}", found[1], found[4])
    if result.is_ok:
        return TapName(described)
    if (found := _PHPUNIT.fullmatch(described)) is not None:
        return TapName(found[1])
    separator = " - " if described.startswith("/") and not result.is_dashed else _GLIB_ERROR
    name, _, reason = described.partition(separator)
    return TapName(name.rstrip(), reason=reason.removeprefix("ERROR:"))
