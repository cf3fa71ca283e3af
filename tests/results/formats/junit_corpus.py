"""The corpus of JUnit reports, and the text form of their expected cases."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nightjar_formats.model import Case

FOLDER = Path(__file__).parents[2] / "data" / "results" / "junit"
SHOWN = 60


def normal_form(cases: Iterable[Case]) -> str:
    """Return cases as lines: `status [flaky] [trouble] | class | name | place | seconds | message | text`."""
    return "".join(_line(case) + "\n" for case in cases)


def _line(case: Case) -> str:
    ended = " ".join(filter(None, (case.status.value, "flaky" if case.flaky else "", case.trouble.value)))
    place = f"{case.path}:{case.line}" if case.line is not None else case.path
    took = "" if case.seconds is None else f"{case.seconds:g} s"
    first, _, rest = case.text.partition("\n")
    text = f"{first[:SHOWN]} … {rest.rpartition(chr(10))[2][-SHOWN:]}" if rest else first[:SHOWN]
    name = case.name if case.name.isprintable() else ascii(case.name)
    return " | ".join((ended, case.classname, name, place, took, case.message, text)).rstrip(" |")
