"""Reports that tools wrote, and the form in which their cases are written down beside them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nightjar_formats.model import Case
from nightjar_formats.runs.identity import Resolver

from tests.results.formats.samples import DATA, cases

WRITTEN = ".txt"
SHOWN = 60


def reports(folder: str) -> list[str]:
    """Return the reports of a folder of the data that have their cases written down beside them."""
    beside = sorted((DATA / folder).glob(f"*{WRITTEN}"))
    return [str(path.with_suffix("").relative_to(DATA)) for path in beside if path.with_suffix("").exists()]


def written_beside(report: str) -> str:
    """Return what is written down beside a report."""
    return Path(f"{DATA / report}{WRITTEN}").read_text(encoding="utf-8")


def written_down(report: str) -> str:
    """Read a report and write down its cases."""
    return as_lines(cases(report))


def as_lines(every: Iterable[Case]) -> str:
    """Write down cases, a line each: `status [flaky] [trouble] | ID | place | seconds | message | text`."""
    resolve = Resolver(None).resolve
    return "".join(_line(case, resolve(case)[0]) + "\n" for case in every)


def _line(case: Case, test_id: str) -> str:
    ended = " ".join(filter(None, (case.status.value, "flaky" if case.flaky else "", case.trouble.value)))
    place = f"{case.path}:{case.line}" if case.line is not None else case.path
    took = "" if case.seconds is None else f"{case.seconds:g} s"
    first, _, rest = case.text.partition("\n")
    text = f"{first[:SHOWN]} … {rest.rstrip().rpartition(chr(10))[2][-SHOWN:]}" if rest.strip() else first[:SHOWN]
    return " | ".join((ended, test_id, place, took, case.message, text)).rstrip(" |")
