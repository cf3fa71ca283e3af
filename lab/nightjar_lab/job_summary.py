"""Which tests of a CI job ran, which did not, and why: the summary that the job's page shows. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from html import escape
from typing import NamedTuple

from nightjar_formats.items import counted
from nightjar_formats.model import BAD, Case, Status
from nightjar_lab import texts
from nightjar_lab.pytest.printable import printable

MOST_FAILURES = 50
"""Failed tests that the summary names."""
MOST_REASONS, MOST_TESTS = 20, 10
"""Reasons of a kind, and tests of a reason, that the summary names."""
LONGEST = 300
"""Characters of a name or a reason. With the limits above, a summary is below 1 MiB, GitHub's limit."""


class SkipKind(Enum):
    """Why a test did not run; the values are found in the reasons that the pytest plugin and `slow.h` give."""

    LEVEL = ("SKIP_SLOW_TESTS", "NIGHTJAR_LEVEL")
    DEVICE = ("has no device",)
    TARGET = ("is not among the targets of", "is not compiled in", "is not declared in", "by exclude_targets")
    QUARANTINE = ("quarantine",)
    OTHER = ("",)


SWITCHES = {
    SkipKind.LEVEL: texts.LEVEL_SWITCH,
    SkipKind.DEVICE: texts.DEVICE_SWITCH,
    SkipKind.TARGET: texts.TARGET_SWITCH,
    SkipKind.QUARANTINE: texts.QUARANTINE_SWITCH,
    SkipKind.OTHER: texts.OTHER_SWITCH,
}


class EndedTest(NamedTuple):
    """How a test of the job ended, with the first line of its message."""

    name: str
    status: Status
    message: str


@dataclass
class JobTests:
    """The tests of a job. Of several attempts at a test, the last one counts."""

    tests: dict[str, EndedTest] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    """Why files could not be read."""

    def add(self, cases: Iterable[Case], id_of: Callable[[Case], str]) -> None:
        """Add the cases of a report; `id_of` returns the ID of a test as the bot names it."""
        for case in cases:
            name = id_of(case)
            message = next((line.strip() for line in case.message.splitlines() if line.strip()), "")
            self.tests[name] = EndedTest(name, case.status, message)

    @property
    def skipped(self) -> Mapping[SkipKind, Mapping[str, Sequence[str]]]:
        """The tests that did not run: by kind, then by reason, the most frequent reason first."""
        by_kind: dict[SkipKind, dict[str, list[str]]] = {}
        for test in self.tests.values():
            if test.status is Status.SKIPPED:
                by_kind.setdefault(kind_of(test.message), {}).setdefault(test.message, []).append(test.name)
        return {
            kind: dict(sorted(by_kind[kind].items(), key=lambda reason: -len(reason[1])))
            for kind in SkipKind
            if kind in by_kind
        }


def kind_of(reason: str) -> SkipKind:
    """Return the kind of a skip by its reason."""
    lowered = reason.lower()
    return next((kind for kind in SkipKind if any(mark.lower() in lowered for mark in kind.value)), SkipKind.OTHER)


class _Form(NamedTuple):
    """How a form of document writes its parts; each template gets texts that are escaped for it."""

    title: str
    paragraph: str
    item: str
    items: str
    code: str
    details: str


MARKDOWN = _Form(
    title="## {}\n\n",
    paragraph="{}\n\n",
    item="- {}\n",
    items="{}\n",
    code="{}",
    details="<details><summary>{}</summary>\n\n{}</details>\n\n",
)
HTML = _Form(
    title="<h2>{}</h2>\n",
    paragraph="<p>{}</p>\n",
    item="<li>{}</li>\n",
    items="<ul>\n{}</ul>\n",
    code="<code>{}</code>",
    details="<details><summary>{}</summary>\n{}</details>\n",
)


def markdown_summary(job: JobTests) -> str:
    """Return the summary in GitHub's and GitLab's Markdown."""
    return _summary(job, MARKDOWN, _markdown_code)


def html_summary(job: JobTests) -> str:
    """Return the summary as an HTML document without scripts, for Jenkins' HTML Publisher."""
    body = _summary(job, HTML, lambda text: HTML.code.format(escape(_cut(text))))
    title = escape(texts.SUMMARY_TITLE)
    return f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n{body}</html>\n'


def _summary(job: JobTests, form: _Form, code: Callable[[str], str]) -> str:
    counts = Counter(test.status for test in job.tests.values())
    ran = len(job.tests) - counts[Status.SKIPPED]
    statuses = ", ".join(f"{counts[status]:,} {status.value}" for status in Status if counts[status])
    parts = [form.title.format(texts.SUMMARY_TITLE)]
    parts += [form.paragraph.format(texts.REPORT_NOT_READ.format(problem=code(problem))) for problem in job.unreadable]
    ran_text, not_run = counted(ran), counted(counts[Status.SKIPPED])
    sentence = texts.RAN.format(ran=ran_text, skipped=not_run, statuses=statuses) if job.tests else texts.NOTHING_RAN
    parts.append(form.paragraph.format(sentence))
    failed = [test for test in job.tests.values() if test.status in BAD]
    if failed:
        rows = [
            form.item.format(code(test.name) + (f": {code(test.message)}" if test.message else ""))
            for test in failed[:MOST_FAILURES]
        ]
        parts.append(form.paragraph.format(texts.FAILED_TESTS.format(tests=counted(len(failed)))))
        parts.append(form.items.format("".join([*rows, *_more(len(failed) - MOST_FAILURES, form)])))
    for kind, reasons in job.skipped.items():
        tests = counted(sum(map(len, reasons.values())))
        rows = []
        for reason, names in list(reasons.items())[:MOST_REASONS]:
            rows.append(form.item.format(f"{counted(len(names))}: {code(reason or texts.NO_REASON)}"))
            listed = ", ".join(map(code, names[:MOST_TESTS]))
            rows.append(form.item.format(f"{listed}{' …' if len(names) > MOST_TESTS else ''}"))
        rows += _more(len(reasons) - MOST_REASONS, form)
        items = form.items.format("".join(rows))
        parts.append(form.details.format(texts.SKIPPED_BY[kind.name].format(tests=tests), items))
        parts.append(form.paragraph.format(SWITCHES[kind]))
    return "".join(parts)


def _more(count: int, form: _Form) -> list[str]:
    return [form.item.format(texts.MORE.format(more=count))] if count > 0 else []


def _cut(text: str) -> str:
    shown = printable(text, LONGEST + 1)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def _markdown_code(text: str) -> str:
    """Return text as code: between more backticks than it has in a row, so that it has no effect."""
    content, marks = _cut(text), "`"
    while marks in content:
        marks += "`"
    space = " " if content.startswith("`") or content.endswith("`") else ""
    return f"{marks}{space}{content}{space}{marks}"
