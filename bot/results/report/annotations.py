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
"""New failures that are read, at most: reading the text of one may take a query, and nobody misses later ones."""
LAST_LINE = 1_000_000
"""No file has more lines; GitHub refuses a whole check run because of one line number that it cannot store."""
TOP = 1
"""The line of an annotation if only the file is known: pytest's current JUnit form has no lines."""
FOREIGN = ("site-packages/", "dist-packages/")


def annotations_of(findings: Findings) -> tuple[Annotation, ...]:
    """Return the annotations of at most fifty new failures, those that say most about the code first."""
    target = findings.state.target
    title = shortened(plain(texts.ANNOTATION_TITLE.format(lab=target.lab, target=target.target)), TITLE_LIMIT)
    annotations = []
    for failure in findings.new_failures[:MOST_READ]:
        # None where the path does not exist at the commit: no annotation is better than a wrong one.
        if failure.path in (findings.files or ()):
            line = line_of(failure)
            annotations.append(Annotation(failure.path, line or TOP, title, _message(failure, line), _details(failure)))
        if len(annotations) == MOST_ANNOTATIONS:
            break
    return tuple(annotations)


def line_of(failure: NewFailure) -> int | None:
    """Return the line from the report, or the traceback's last line in the file, or None."""
    line = failure.detail.line
    if line is not None and 1 <= line <= LAST_LINE:
        return line
    return _last_frame(failure.detail.text, failure.path)


def _last_frame(text: str, path: str) -> int | None:
    r"""Return the line of the last frame in a file: pytest writes `path:12:`, Python `File "path", line 12`.

    The path may follow the lab's own folder, as in `/home/lab/src/tests/test_a.py:12:`, unless it has no folder itself
    (then it may be another file of the same name), or that folder has installed packages.
    """
    begins = rf"{SPACE}\"'(\["
    # A folder excludes the characters in `begins`; otherwise the match from each place would read the rest of the line.
    folder = "" if "/" not in path else f"(?:[^{begins}]*/)?"
    frame = Pattern(rf"(?:^|[{begins}])(?P<folder>{folder}){escape_pattern(path)}(?::|\", line )(?P<line>\d{{1,7}})\b")
    last = None
    for text_line in text.splitlines():
        if path not in text_line:
            continue
        for match in frame.finditer(text_line):
            folder = match["folder"]
            if not folder.endswith(FOREIGN) and not any(name in folder for name in FOREIGN):
                last = int(match["line"])
    return last if last is not None and 1 <= last <= LAST_LINE else None


def _message(failure: NewFailure, line: int | None) -> str:
    message = f": {failure.message}" if failure.message else ""
    line_note = "" if line is not None else f" ({texts.UNKNOWN_LINE})"
    return shortened(f"{plain(failure.test)}{line_note}\n{happened(failure)}{plain(message)}", MESSAGE_BYTES)


def _details(failure: NewFailure) -> str:
    return lines_of(texts.output_end(failure.detail.text.strip(), DETAILS_CHARACTERS))
