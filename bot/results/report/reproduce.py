"""Fill in the lab's template of app.yaml: the shell command that reproduces a failure."""

from __future__ import annotations

import shlex
from itertools import islice

from nightjar_formats.runs.identity import is_shortened

from bot.core.patterns import Pattern
from bot.github.text.markdown import fenced, lines_of
from bot.results.report import texts
from bot.results.report.findings import Findings, NewFailure
from bot.results.settings.results import PLACEHOLDERS

MOST_COMMANDS = 10

_PLACEHOLDER = Pattern(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")


def reproduce(findings: Findings) -> str:
    """Return the commands for the first ten new failures; empty if app.yaml has no template or there are none."""
    # No test runner finds a test by a shortened ID.
    reproducible = (
        failure
        for failure in findings.new_failures
        if not is_shortened(failure.test) and template_of(findings, failure)
    )
    failures = list(islice(reproducible, MOST_COMMANDS))
    if not failures:
        return ""
    state = findings.state
    commands = dict.fromkeys(
        command(template_of(findings, failure), failure, state.target.target, state.sha) for failure in failures
    )
    total = len(findings.new_failures)
    first = texts.REPRODUCE_FIRST.format(shown=len(failures), total=total) if total > len(failures) else ""
    return "\n\n".join(filter(None, (texts.REPRODUCE, first, fenced("\n".join(commands)))))


def template_of(findings: Findings, failure: NewFailure) -> str:
    """Return the template of the suite of a failure; empty if app.yaml has none."""
    return findings.reproduce_suites.get(failure.suite, findings.reproduce)


def command(template: str, failure: NewFailure, target: str, sha: str) -> str:
    """Fill in a template; values are quoted for a shell, and cannot act as options.

    >>> # pytest {test}  ->  pytest 'tests/test_matmul.py::test_tile[a b]'
    """
    values = {
        "test": failure.test,
        "path": failure.path,
        "name": failure.test.rpartition("::")[2],
        "suite": failure.suite,
        "target": target,
        "sha": sha,
    }
    return _PLACEHOLDER.sub(lambda match: quoted(values[match[1]]), template.strip())


def quoted(text: str) -> str:
    """Quote text from outside for a shell, in one line; it cannot begin like an option."""
    line = " ".join(lines_of(text).split())
    return shlex.quote(f"./{line}" if line.startswith("-") else line)
