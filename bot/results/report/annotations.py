"""Annotations: new failures in the files where they are, at the lines where they happened."""

from __future__ import annotations

from bot.core.patterns import SPACE, Pattern, escape_pattern
from bot.github.check_runs import MOST_ANNOTATIONS, TITLE_LIMIT, Annotation, shortened
from bot.github.text.markdown import lines_of, plain
from bot.results.report import texts
from bot.results.report.findings import Findings, NewFailure
from bot.results.report.sentences import happened

MESSAGE_BYTES = 2_000
DETAILS_CHARACTERS = 6_000
"""Of the end of a failure's text: at most 24 kB for one annotation, and 1.3 MB in one request with fifty of them."""
MOST_READ = 500
"""New failures; reading the text of one may take a query, and those after so many would not be missed."""
LAST_LINE = 1_000_000
"""No file has more; GitHub refuses the whole check run for a line that it cannot store."""
TOP = 1
"""The line of an annotation if only the file is known: pytest's current JUnit form has no lines."""
FOREIGN = ("site-packages/", "dist-packages/")


def annotations_of(findings: Findings) -> tuple[Annotation, ...]:
    """Return the annotations of at most fifty new failures, those first that say most about the code."""
    about = findings.state.about
    title = shortened(plain(texts.ANNOTATION_TITLE.format(lab=about.lab, target=about.target)), TITLE_LIMIT)
    found = []
    for failure in findings.new_failures[:MOST_READ]:
        # None where the path does not exist at the commit: no annotation is better than a wrong one.
        if failure.path in (findings.files or ()):
            line = line_of(failure)
            found.append(Annotation(failure.path, line or TOP, title, _message(failure, line), _details(failure)))
        if len(found) == MOST_ANNOTATIONS:
            break
    return tuple(found)


def line_of(failure: NewFailure) -> int | None:
    """Return the line from the report, or the traceback's last line in the file, or None."""
    comparison_ = failure.detail.line
    if comparison_ is not None and 1 <= comparison_ <= LAST_LINE:
        return comparison_
    return _last_frame(failure.detail.text, failure.path)


def _last_frame(text: str, path: str) -> int | None:
    r"""Return the line of the last frame in a file: `path:12:` as pytest writes, or `File "path", line 12`.

    Before the path may stand the lab's own folder, but for files of one name that may lie anywhere, and for
    packages that are installed.
    """
    begins = rf"{SPACE}\"'(\["
    # A folder holds nothing that a place may begin behind: or for each place all that follows it would be read.
    folder = "" if "/" not in path else f"(?:[^{begins}]*/)?"
    frame = Pattern(rf"(?:^|[{begins}])(?P<folder>{folder}){escape_pattern(path)}(?::|\", line )(?P<line>\d{{1,7}})\b")
    last = None
    for written in text.splitlines():
        if path not in written:
            continue
        for found in frame.finditer(written):
            folder = found["folder"]
            if not folder.endswith(FOREIGN) and not any(name in folder for name in FOREIGN):
                last = int(found["line"])
    return last if last is not None and 1 <= last <= LAST_LINE else None


def _message(failure: NewFailure, line: int | None) -> str:
    said = f": {failure.message}" if failure.message else ""
    where = "" if line is not None else f" ({texts.UNKNOWN_LINE})"
    return shortened(f"{plain(failure.test)}{where}\n{happened(failure)}{plain(said)}", MESSAGE_BYTES)


def _details(failure: NewFailure) -> str:
    return lines_of(texts.output_end(failure.detail.text.strip(), DETAILS_CHARACTERS))
