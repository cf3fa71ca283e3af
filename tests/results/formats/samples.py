"""Real reports, opened like those of labs, and ways to damage them."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from nightjar_formats.model import Case
from nightjar_formats.readers import read
from nightjar_formats.readers.decoding.inflate import inflated
from nightjar_formats.refused import Refused

DATA = Path(__file__).parents[2] / "data" / "results"

KINDS = DATA / "pytest" / "kinds.py.txt"
"""A test of each outcome, with `--reruns 1`; the reports of pytest and its plugins are next to it."""


def samples_in_folders(forms: Iterable[str]) -> dict[str, str]:
    """Return the reports in the folders that have the names of formats, each with its format.

    A `.txt` file beside a report says how it was made.
    """
    return {
        f"{form}/{file.name}": form
        for form in sorted(forms)
        for file in sorted((DATA / form).glob("*"))
        if file.suffix != ".txt"
    }


def plain(path: str) -> bytes:
    """Return a decompressed report of the data folder."""
    with (DATA / path).open("rb") as file:
        return inflated(file, path).read()


def cases(path: str) -> list[Case]:
    with (DATA / path).open("rb") as file:
        return list(read(file, path))


def cases_of(content: bytes | str, form: str | None = None) -> list[Case]:
    raw = content.encode() if isinstance(content, str) else content
    return list(read(io.BytesIO(raw), "report", form))


def one(content: bytes | str, form: str | None = None) -> Case:
    (case,) = cases_of(content, form)
    return case


def refusal(content: bytes | str, form: str | None = None, kind: type[Refused] = Refused) -> str:
    with pytest.raises(kind) as caught:
        cases_of(content, form)
    text = str(caught.value)
    assert text.startswith(("report: ", "report is "))
    assert "None" not in text, "each part of the text has its value"
    return text


@st.composite
def damaged(draw: st.DrawFn, report: bytes) -> bytes:
    """Return a report with some bytes overwritten, removed, repeated or cut off."""
    content = bytearray(report)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 60)))
        content[start:end] = draw(
            st.binary(max_size=20) | st.sampled_from(BAD_TOKENS) | st.just(content[start:end] * 2)
        )
    if draw(st.booleans()):
        del content[draw(st.integers(0, len(content))) :]
    return bytes(content)


BAD_TOKENS = [b"\0", b"\xff", b'"', b"\\", b"\\ud800", b"{", b"[", b"]", b"}", b",", b"\n", b"\r\r\n", b"\xef\xbb\xbf",
              b"NaN", b"-Infinity", b"null", b"1e999", b"1e99999999999999999999", b"9" * 5000]  # fmt: skip


MOST_SECONDS = 20.0
"""Of processor time, a hundred times what reading a hostile file takes: only a fault reaches it, on any machine."""


class Cost(NamedTuple):
    """The cost of reading a file in a separate process: seconds of processor time, and megabytes at the peak."""

    output: str
    seconds: float
    megabytes: int


def cost_of(path: Path, form: str = "") -> Cost:
    """Read a file in a separate process, and return its output and cost."""
    done = subprocess.run([sys.executable, "-c", ALONE, path, form], capture_output=True, text=True, check=True)
    output, seconds, kilobytes = done.stdout.rstrip("\n").rsplit("\n", 2)
    return Cost(output, float(seconds), int(kilobytes) >> 10)


# VmHWM, because a process inherits ru_maxrss from its parent.
ALONE = """
import pathlib, re, sys, time
from nightjar_formats.readers import read
from nightjar_formats.limits import Refused
path, form = sys.argv[1:]
before = time.process_time()
with open(path, "rb") as file:
    try:
        print("taken:", sum(1 for _ in read(file, "report", form or None)))
    except Refused as refused:
        print(type(refused).__name__, refused)
print(time.process_time() - before)
print(re.search(r"VmHWM:\\s+(\\d+) kB", pathlib.Path("/proc/self/status").read_text())[1])
"""
