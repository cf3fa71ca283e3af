"""Reports from real tools, and the text form of their expected cases, in files next to them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nightjar_formats.model import Case
from nightjar_formats.runs.identity import Resolver

from tests.results.formats.samples import DATA, cases

WRITTEN = ".txt"
SHOWN = 60


def reports(folder: str) -> list[str]:
    """Return the reports of a folder that have a file with their expected cases."""
    beside = sorted((DATA / folder).glob(f"*{WRITTEN}"))
    return [str(path.with_suffix("").relative_to(DATA)) for path in beside if path.with_suffix("").exists()]


def written_beside(report: str) -> str:
    """Return the expected cases of a report."""
    return Path(f"{DATA / report}{WRITTEN}").read_text(encoding="utf-8")


def written_down(report: str) -> str:
    """Read a report, and return its cases in text form."""
    return as_lines(cases(report))


def as_lines(cases_: Iterable[Case]) -> str:
    """Return cases as lines: `status [flaky] [trouble] | ID | place | seconds | message | text`."""
    resolve = Resolver(None).resolve
    return "".join(_line(case, resolve(case)[0]) + "\n" for case in cases_)


def _line(case: Case, test_id: str) -> str:
    ended = " ".join(filter(None, (case.status.value, "flaky" if case.flaky else "", case.trouble.value)))
    place = f"{case.path}:{case.line}" if case.line is not None else case.path
    took = "" if case.seconds is None else f"{case.seconds:g} s"
    first, _, rest = case.text.partition("\n")
    text = f"{first[:SHOWN]} … {rest.rstrip().rpartition(chr(10))[2][-SHOWN:]}" if rest.strip() else first[:SHOWN]
    return " | ".join((ended, test_id, place, took, case.message, text)).rstrip(" |")
