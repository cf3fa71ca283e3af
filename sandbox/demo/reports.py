"""The reports that the lab of the demo uploads, and their test files.

They are real reports of Apache TVM (tests/data/README.md). The demo's repository has each test file at its real path,
shortened to the names of most tests; failed tests have the code from their traceback, at its real line.
"""

from __future__ import annotations

import re
from pathlib import Path

from nightjar_formats.model import Case
from nightjar_formats.readers import read

RESULTS = Path(__file__).parent.parent.parent / "tests" / "data" / "results" / "tvm"
HEADER = ['"""Tests of Apache TVM, shortened for the demo."""', "", "import pytest", "import tvm", "from tvm import te"]


def reports(nightly_run: str) -> dict[str, Path]:
    """Return the reports of a nightly run by suite."""
    return {path.name.partition(".")[0]: path for path in sorted((RESULTS / nightly_run).iterdir())}


def test_files(nightly_run: str) -> dict[str, str]:
    """Return the test files in the reports of a nightly run: path to text."""
    files: dict[str, dict[tuple[str, str], Case]] = {}
    for path in reports(nightly_run).values():
        with path.open("rb") as stream:
            for case in read(stream, path.name):
                file, group = _place(case)
                tests = files.setdefault(file, {})
                if case.classname:
                    tests.setdefault((group, case.name.partition("[")[0]), case)
    files.pop("", None)
    return {file: "\n".join(_lines(file, tests)) + "\n" for file, tests in sorted(files.items())}


def _place(case: Case) -> tuple[str, str]:
    """Return a case's file and class; a case for pytest itself has no file, and a broken file has no class."""
    dotted = (case.classname or case.name).split(".")
    module = next((n for n, part in enumerate(dotted, 1) if part.startswith("test_")), 0)
    return ("/".join(dotted[:module]) + ".py" if module else "", "".join(dotted[module:]))


def _lines(file: str, tests: dict[tuple[str, str], Case]) -> list[str]:
    lines = list(HEADER)
    sources = {test: _shown(file, case.text) for test, case in tests.items() if case.text}
    for line, source in sorted(part for part in sources.values() if part):
        lines += [""] * (line - 1 - len(lines)) + source
    inside = ""
    for (group, name), _ in sorted(tests.items(), key=lambda item: item[0][0]):
        if group != inside:
            lines += ["", "", f"class {group}:"]
            inside = group
        elif not group and not sources.get((group, name)):
            lines += ["", ""]
        if not sources.get((group, name)):
            lines += [f"    def {name}(self): ..."] if group else [f"def {name}(): ..."]
    return lines


def _shown(file: str, text: str) -> tuple[int, list[str]] | None:
    """Return the lines of the function at the end of a pytest traceback, and the line at which it begins."""
    frames = re.findall(rf"^{re.escape(file)}:(\d+): ", text, re.MULTILINE)
    lines = text.splitlines()
    last = max((n for n, line in enumerate(lines) if line.startswith(">")), default=0)
    first = max((n for n, line in enumerate(lines[:last]) if line.lstrip().startswith("def ")), default=None)
    if not frames or first is None:
        return None
    source = [lines[first].lstrip(), *(line[4:].rstrip() for line in lines[first + 1 : last + 1])]
    indent = " " * (len(source[-1]) - len(source[-1].lstrip()) + 4)
    return int(frames[-1]) - (last - first), [*source, f"{indent}..."]
