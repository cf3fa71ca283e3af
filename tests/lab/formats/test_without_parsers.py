"""A lab has no RE2, and perhaps no yajl, but reads reports exactly as the server does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ijson  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from nightjar_formats.patterns import Pattern, Re2Pattern, RePattern, in_syntax_of_re, possessive
from nightjar_formats.readers.json.ijson_events import IjsonEvents

from tests.lab.formats.reading import engines, read_all

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "tests/lab/formats/reading.py"
DATA = ROOT / "tests/data/results"

ANY = st.text(st.sampled_from("abK\u017f1٣ #-[](){}:=.'/\\\n\r\t\v\u00a0\u3000é\u0301😀\ud800\ufffd"), max_size=30)
WHOLE = st.text(st.sampled_from('ab1 {}[],:"\\/\n\x7fé😀\ufffd'), max_size=8)
SOURCES: list[tuple[str, dict[str, bool]]] = [
    (r"\s+", {}),
    (r"\S+", {}),
    (r"[^\s:]+$", {}),
    (r"\b\w+\d*\b", {}),
    (r"(?P<a>a)|(b)1?", {}),
    (r"(?:^|\s)#\s*(a\w*)\b:?\s*(.*)", {}),
    (r"^#* *$", {"by_line": True}),
    (r"a.b", {"dot_is_any": True}),
    (r"a?", {}),
    (r"AB|[ab]{2}", {"ignore_case": True}),
    (r"[\p{Z}\t]+|\p{M}|\p{Nd}", {}),
    (r"\x{e9}|[\x{3000}]", {}),
    (r"(?s:.*?)1", {}),
]


def read_by(python: str, *without: str) -> dict[str, Any]:
    """Read all reports in a separate process."""
    command = [python, str(SCRIPT), str(DATA), *without]
    env = {"PYTHONPATH": str(ROOT / "lab"), "IJSON_BACKEND": "python"}
    done = subprocess.run(command, capture_output=True, check=False, env=env)
    assert done.returncode == 0, done.stderr.decode()
    read: dict[str, Any] = json.loads(done.stdout)
    return read


@pytest.fixture(scope="module")
def expected() -> dict[str, list[str]]:
    return read_all(DATA)


def test_the_server_matches_in_linear_time_and_parses_with_yajl() -> None:
    assert engines() == [Re2Pattern.__name__, "yajl2_c"]
    assert isinstance(Pattern("a"), Re2Pattern)


def test_a_lab_reads_what_the_server_reads(expected: dict[str, list[str]]) -> None:
    lab_reading = read_by(sys.executable, "re2")
    assert lab_reading["engines"] == [RePattern.__name__, "python"]
    assert len(lab_reading["reports"]) > 300
    assert lab_reading["reports"] == expected


def test_a_lab_with_python_3_9_reads_what_the_server_reads(expected: dict[str, list[str]]) -> None:
    python = os.environ.get("NIGHTJAR_OLDEST_PYTHON") or shutil.which("python3.9")
    has_all = [
        python or sys.executable,
        "-c",
        "import sys, ijson, backports.zstd; sys.exit(sys.version_info[:2] != (3, 9))",
    ]
    if python is None or subprocess.run(has_all, capture_output=True, check=False).returncode:
        pytest.skip("there is no python3.9 with ijson and backports.zstd; CI has one")
    assert read_by(python)["reports"] == expected


@pytest.mark.parametrize(("source", "options"), SOURCES)
@given(text=ANY)
@example(text="AB ab\n\u3000#a: \ud800")
def test_re2_and_re_match_the_same_texts(source: str, options: dict[str, bool], text: str) -> None:
    def found(kind: type[Re2Pattern] | type[RePattern]) -> list[Any]:
        pattern = kind(source, **options)
        matches = [pattern.match(text), pattern.fullmatch(text), pattern.search(text), *pattern.finditer(text)]
        return [match and (match.start(), match.end(), match[0], match.groups()) for match in matches]

    assert found(RePattern) == found(Re2Pattern)


def test_names_of_groups_are_known_to_both_engines() -> None:
    for kind in (RePattern, Re2Pattern):
        match = kind("(?P<name>b)").search("ab")
        assert match is not None
        assert match["name"] == "b"


def test_re_gets_the_meaning_of_re2() -> None:
    assert in_syntax_of_re(r"[^\s$]$") == r"[^\t\n\f\r $]\Z"
    assert in_syntax_of_re(r"a$", by_line=True) == "a$"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WHOLE,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WHOLE, inner, max_size=4),
    max_leaves=12,
)


YAJL, PYTHON = ijson.get_backend("yajl2_c"), ijson.get_backend("python")


def events(backend: Any, text: bytes, size: int) -> list[Any]:
    """Return the events of a text that comes in pieces, and whether it was recognized as invalid or truncated."""
    parser = IjsonEvents(backend=backend)
    for place in range(0, len(text), size):
        if parser.feed(text[place : place + size]) is not None:
            return [*parser.events, "wrong"]
    return [*parser.events, "cut off"] if parser.end() is not None else list(parser.events)


@given(JSON, st.booleans(), st.integers(1, 40))
def test_both_parsers_find_the_same_events(value: Any, is_ascii: bool, size: int) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii, indent=1).encode("utf-8", "replace")
    assert events(PYTHON, text, size) == events(YAJL, text, size)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "[",
        "[1",
        "[1,",
        "[1,]",
        '{"a"',
        '{"a":',
        '{"a":1',
        '{"a" 1}',
        "{1:2}",
        '{"a":1,}',
        "[1}",
        "]",
        "[true fals]",
        "[nul",
        "[nulx]",
        "[1.]",
        "[1e]",
        "[-]",
        '["a\nb"]',
        '["\\x"]',
        '["\\u12"]',
        '["\\ud83d\\ude00"]',
        '["a\\ud83d"]',
        "12",
        '"a" b',
        "{}{}",
    ],
)
@pytest.mark.parametrize("size", [1, 100])
def test_both_parsers_refuse_the_same_texts(text: str, size: int) -> None:
    found = [events(backend, text.encode(), size) for backend in (PYTHON, YAJL)]
    # They disagree about whether a word that is cut off is wrong.
    refused = [["refused" if event in ("wrong", "cut off") else event for event in each] for each in found]
    assert refused[0] == refused[1]


def test_a_pattern_matches_the_same_without_possessive_quantifiers() -> None:
    kind = type(possessive(b"a"))
    assert kind is re.Pattern
    assert possessive(rb"a*+b").search(b"caab") is not None


def test_another_module_called_re2_is_not_used(tmp_path: Path) -> None:
    """The modules of pyre2 and fb-re2 have this name; a lab may need one of them for its own tests."""
    (tmp_path / "re2.py").write_text("def compile(pattern): raise AssertionError\n")
    code = "from nightjar_formats.patterns import Pattern; print(Pattern.__name__, Pattern('a').search('ba').start())"
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT / "lab")])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env)
    assert (done.stdout, done.stderr) == ("RePattern 1\n", "")
