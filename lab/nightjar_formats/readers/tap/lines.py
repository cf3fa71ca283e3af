"""Parse single lines of TAP and KTAP.

TAP 12 to 14: https://testanything.org/tap-version-14-specification.html. KTAP:
https://docs.kernel.org/dev-tools/ktap.html. Additions of tools are read too: a duration in the name (bats `--timing`)
or after it (node-tap's `# time=`), and a brace after the name of a test whose subtests follow. In KTAP, and in TAP from
version 13 on, a text after ` # ` that is no directive is a comment, which may differ in every run.
"""

from __future__ import annotations

from typing import NamedTuple

from nightjar_formats.model import Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import values

MAX_NUMBER = 10_000_000

_RESULT = Pattern(r"(not )?ok(?:\s+(\d{1,9})\b)?(?:(\s+-)(?:\s+|$)|\s+|$)(.*)")
_DIRECTIVE = Pattern(r"(?:^|\s)#\s*(skip\w*|todo|xfail|timeout|error)\b:?\s*(.*)", ignore_case=True)
_TIME = Pattern(
    r"(?:^|\s)#\s*(?:time=([0-9.]+)(ms|s)?|(?:time|duration|took)?[ :=]*\(?([0-9.]+) ?(ms|s|sec|seconds)\)?)"
    r"\s*(?:\{\s*)?$"
)
_IN_NAME = Pattern(r" in (\d{1,9})(ms|sec)$|\s\((\d{1,9}\.\d{2,9}) ?(ms|s)\)$|\s\[[^\[\]]*?([\d.]+) elapsed\]$")
"""bats --timing; Criterion and others; TAP::Formatter::Elapsed. No test has a duration of two decimals as its name."""
_DATA = Pattern(r"\s#\s+(.*)$")
_ESCAPE = Pattern(r"\\([\\#])")
_PLAN = Pattern(r"1\.\.(\d{1,9})\s*(?:#\s*(.*))?$")
_SKIP = Pattern(r"skip\w*:?\s*", ignore_case=True)
_VERSION = Pattern(r"K?TAP version \d+\s*$")
_SUBTEST = Pattern(r"# Subtest(?:: (.*))?$")
_BAIL_OUT = Pattern(r"(?:Bail out!|Bailout called\.  Further testing stopped:)\s*(.*)$")
"""prove writes the second one before the first, or in its place (-j)."""


class ResultLine(NamedTuple):
    """A line `ok` or `not ok`. `data` is the comment after the name; `is_dashed`: a dash precedes the name."""

    is_ok: bool
    number: int | None
    name: str
    directive: str = ""
    reason: str = ""
    data: str = ""
    seconds: float | None = None
    opens: bool = False
    is_dashed: bool = False

    def verdict(self) -> tuple[Status, Trouble]:
        """Return how the test ended. A skipped test did not run, whatever else the line says."""
        good = Status.PASSED if self.is_ok else Status.FAILED
        if self.directive == "skip":
            return Status.SKIPPED, Trouble.NONE
        # TAP calls a `todo` test that passes a bonus:
        # https://testanything.org/tap-version-14-specification.html#directives
        if self.directive == "todo":
            return Status.XPASSED if self.is_ok else Status.XFAILED, Trouble.NONE
        # These three are KTAP's: https://docs.kernel.org/dev-tools/ktap.html
        if self.directive == "xfail":
            return Status.XFAILED, Trouble.NONE
        if self.directive == "timeout" and not self.is_ok:
            return Status.FAILED, Trouble.TIMEOUT
        if self.directive == "error" and not self.is_ok:
            return Status.ERRORED, Trouble.NONE
        return good, Trouble.NONE


class PlanLine(NamedTuple):
    """The number of planned tests, and the reason if there are none."""

    tests: int
    reason: str = ""


def result_line(line: str, *, is_ktap: bool = False, has_comments: bool = False) -> ResultLine | None:
    """Parse a result; return None for any other line. `has_comments`: a text after ` # ` is no part of the name."""
    if not line.startswith(("ok", "not ok")):
        return None
    match = _RESULT.fullmatch(line)
    if match is None:
        return None
    rest: str = match[4]
    opens = rest.endswith(("{", "{ ")) and not is_ktap
    seconds = None
    if "#" in rest and (time := _TIME.search(rest)) is not None:
        seconds = values.seconds(time[1] or time[3], 0.001 if "ms" in (time[2], time[4]) else 1.0)
        rest = rest[: time.start()]
    elif opens:
        rest = rest.rstrip("{ ")
    directive = reason = data = ""
    if "#" in rest and (directive_match := _DIRECTIVE.search(rest)) is not None:
        directive, reason, rest = (
            directive_match[1].lower(),
            directive_match[2].strip(),
            rest[: directive_match.start()],
        )
        directive = "skip" if directive.startswith("skip") else directive
    elif (is_ktap or has_comments) and "#" in rest and (directive_match := _DATA.search(rest)) is not None:
        data, rest = directive_match[1].strip(), rest[: directive_match.start()]
    if rest.endswith(("ms", "sec", ")", "]")) and (time := _IN_NAME.search(rest)) is not None:
        if seconds is None:
            seconds = values.seconds(time[1] or time[3] or time[5], 0.001 if "ms" in (time[2], time[4]) else 1.0)
        rest = rest[: time.start()]
    name = rest.strip()
    if "\\" in name:
        name = _ESCAPE.sub(lambda escaped: escaped[1], name)
    number = int(match[2]) if match[2] else None
    return ResultLine(not match[1], number, name, directive, reason, data, seconds, opens, bool(match[3]))


def plan_line(line: str) -> PlanLine | None:
    """Parse a plan; return None for any other line."""
    match = _PLAN.fullmatch(line) if line.startswith("1..") else None
    if match is None:
        return None
    reason = match[2] or ""
    skip = _SKIP.match(reason)
    return PlanLine(min(int(match[1]), MAX_NUMBER), reason[skip.end() :] if skip is not None else reason)


def is_version(line: str) -> bool:
    """Say whether a line begins a report, or the subtests of a test in KTAP."""
    return line.startswith(("TAP version", "KTAP version")) and _VERSION.match(line) is not None


def subtest_name(line: str) -> str | None:
    """Return the name of the test whose subtests follow, "" if it has none; None for any other line."""
    match = _SUBTEST.fullmatch(line) if line.startswith("# Subtest") else None
    return None if match is None else _ESCAPE.sub(lambda escaped: escaped[1], (match[1] or "").strip())


def bail_out_reason(line: str) -> str | None:
    """Return the reason why the tests were aborted; None for any other line."""
    match = _BAIL_OUT.match(line) if line.startswith("Bail") else None
    return None if match is None else match[1].strip()
