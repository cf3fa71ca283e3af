"""One bad byte, log line or nameless test loses no run: it is repaired, and the lab reads about the repair."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.model import Case
from nightjar_formats.readers import guess, read
from nightjar_formats.readers.repairs import Repairs
from nightjar_formats.readers.xml.parser import CHUNK_BYTES
from nightjar_formats.readers.xml.text import HEAD_BYTES
from nightjar_formats.refused import Refused

CASE = b'<testcase classname="c" name="a"/>'
REPORT = b'<testsuites name="tools"><testsuite name="s">' + CASE + b"</testsuite></testsuites>"
DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'


def repaired(content: bytes, form: str | None = "junit") -> tuple[list[Case], str]:
    """Read a file; return its cases and its repairs."""
    repairs = Repairs()
    cases = list(read(io.BytesIO(content), "report", form, repairs))
    return cases, "; ".join(repairs.sentences())


def failing(text: bytes) -> bytes:
    return (
        b'<testsuite name="s">\n<testcase classname="c" name="a"><failure message="no">'
        + text
        + b"</failure></testcase></testsuite>"
    )


@pytest.mark.parametrize(
    ("text", "read_as", "count"),
    [
        (b"a\0b", "a�b", 1),
        (b"a\x08\x0b\x1fb", "a���b", 3),
        (b"\x1b[31;1mred\x1b[0m", "red", 2),
        (b"\x1b(B", "�(B", 1),
        (b"a&#27;[1mb&#x1B;[mc&#0;d", "abc�d", 3),
        (b"&#x00008;&#65535;&#xFFFE;&#xD800;&#55296;&#9999999;", "������", 6),
        ("\uffff\ufffe".encode(), "��", 2),
    ],
)
def test_characters_that_xml_forbids_are_replaced(text: bytes, read_as: str, count: int) -> None:
    [case], repairs = repaired(failing(text))
    assert case.text == read_as
    assert repairs == (
        f"characters that a report must not hold, such as control characters, were replaced ({count}, the first in "
        "line 2)"
    )


@pytest.mark.parametrize("text", [b"a&#9;&#10;&#13;&#x0A;b", "é\u2028&#128512;&#x1F600;&#xe9;".encode(), b"&#32;"])
def test_characters_that_xml_allows_stay(text: bytes) -> None:
    _, repairs = repaired(failing(text))
    assert repairs == ""


@pytest.mark.parametrize("prefix", [b"\n", b"  \r\n\n", b"\xef\xbb\xbf\n", b"\n\xef\xbb\xbf"])
def test_white_space_and_a_mark_before_the_declaration_are_skipped(prefix: bytes) -> None:
    [case], repairs = repaired(prefix + DECLARATION + REPORT, None)
    assert case.name == "a"
    assert repairs == "white space before <?xml was ignored"


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"])
def test_a_byte_order_mark_alone_needs_no_repair(prefix: bytes) -> None:
    assert repaired(prefix + DECLARATION + REPORT, None)[1] == ""


@pytest.mark.parametrize(
    "prefix", [b"INFO: flashing board\n", b'[INFO] {"a": 1}\nsecond line\n  ', b'{"level": "info"}\n', b"a < b\n"]
)
def test_log_lines_before_the_report_are_skipped(prefix: bytes) -> None:
    for declaration in (DECLARATION, b""):
        line = prefix.count(b"\n") + 1
        [case], repairs = repaired(prefix + declaration + REPORT, None)
        assert case.name == "a"
        assert repairs == f"text before the report was ignored; the report begins in line {line}"


@pytest.mark.parametrize(
    "suffix", [b"Done.", b"\nDone & over <3\n", b"\0\0\0", b"\n<!-- no end", b"]]>\n", b"\n$ \x1b[0m"]
)
def test_text_after_the_report_is_skipped(suffix: bytes) -> None:
    [case], repairs = repaired(REPORT + suffix)
    assert case.name == "a"
    assert "text after the end of the report was ignored, from line " in repairs


@pytest.mark.parametrize("behind", range(CHUNK_BYTES - 40, CHUNK_BYTES + 3))
def test_a_second_document_is_found_wherever_the_chunks_end(behind: int) -> None:
    """Nobody knows which of two reports counts."""
    filling = b"x" * (behind - len(REPORT) - 1)
    with pytest.raises(Refused, match="a second document begins in line 2"):
        repaired(REPORT + b"\n" + filling + REPORT + b"x" * CHUNK_BYTES)


def test_a_line_after_the_report_may_come_in_its_own_chunk() -> None:
    comment = b"<!--" + b"x" * (HEAD_BYTES - len(REPORT) - 7) + b"-->"
    [case], repairs = repaired(REPORT + comment + b"Done." + b"\n" * CHUNK_BYTES + b"Really.")
    assert case.name == "a"
    assert repairs == "text after the end of the report was ignored, from line 1 on"


def test_undeclared_latin_1_is_read_and_named() -> None:
    text = "größer als 3 µs, naïve".encode("latin-1")
    [case], repairs = repaired(failing(text))
    assert case.text == "größer als 3 µs, naïve"
    assert repaired(failing(text + b"\n\n"))[1] == repairs
    assert repairs == (
        "bytes that are not UTF-8 were read as windows-1252 (4, the first in line 2); use UTF-8, or name the encoding "
        'in the first line, as in <?xml version="1.0" encoding="iso-8859-1"?>'
    )
    assert repaired(b'<?xml version="1.0" encoding="iso-8859-1"?>' + failing(text)) == ([case], "")


def test_bytes_of_another_encoding_are_read_one_by_one_and_the_others_as_utf_8() -> None:
    [case], repairs = repaired(DECLARATION + failing("é€ ".encode() + b"\xe9\x80 " + "ü".encode() + b"\xed\xa0\x80"))
    assert case.text == "é€ é€ üí\xa0€"
    assert "were read as windows-1252 (5, the first in line 3); use UTF-8" in repairs


def test_a_wrong_declaration_of_the_encoding_is_ignored() -> None:
    content = b'<?xml version="1.0" encoding="utf-16"?>' + failing("é".encode())
    [case], repairs = repaired(content)
    assert case.text == "é"
    assert repairs.startswith("the encoding that the XML declaration names was ignored")


@settings(max_examples=60, deadline=None)
@given(
    st.integers(HEAD_BYTES - 80, HEAD_BYTES + 20), st.sampled_from(["é\u20ac\U0001f600", "&#27;&#x0;", "\x1b[31m\x01"])
)
def test_repairs_do_not_depend_on_where_the_chunks_end(behind: int, text: str) -> None:
    def read_at(filling: int) -> str:
        content = b"<testsuite><!--" + b"x" * filling + b"-->" + failing(text.encode("utf-8")) + b"</testsuite>"
        [case], repairs = repaired(content)
        return case.text + repairs

    assert read_at(behind) == read_at(0)


def test_a_test_without_a_name_is_named_and_counted() -> None:
    content = (
        b'<testsuite name="jest">\n<testcase name="a"/>\n<testcase classname="c"/>\n<testcase name=""/></testsuite>'
    )
    cases, repairs = repaired(content)
    assert [(case.classname, case.name) for case in cases] == [
        ("jest", "a"), ("c", "(unnamed)"), ("jest", "(unnamed)"),
    ]  # fmt: skip
    assert repairs == "test cases without a name were named (unnamed) (2, the first in line 3)"


def lines(*written: object) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in written).encode()


START, FINISH = {"$report_type": "SessionStart"}, {"$report_type": "SessionFinish", "exitstatus": 0}


def phases(nodeid: str | None) -> Iterable[dict[str, object]]:
    for phase in ("setup", "call", "teardown"):
        yield {"$report_type": "TestReport", "nodeid": nodeid, "when": phase, "outcome": "passed", "duration": 0.1}


def test_a_log_line_within_a_reportlog_is_skipped() -> None:
    content = lines(START) + b"E: GPU reset\n" + b"{broken\n" + lines(*phases("tests/test_a.py::test_b"), FINISH)
    [case], repairs = repaired(content, None)
    assert case.nodeid == "tests/test_a.py::test_b"
    assert repairs == "lines that are not JSON were ignored (2, the first is line 2)"


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("pytest-reportlog", lines(START, *phases(None), FINISH)),
        ("pytest-json-report", lines({"created": 1, "root": "/", "tests": [{"outcome": "passed"}]})),
        ("ctrf", lines({"reportFormat": "CTRF", "results": {"tests": [{"name": "", "status": "passed"}]}})),
        ("executorch-csv", b"Test ID,Result\n,Pass\n"),
    ],
)
def test_a_test_without_a_name_loses_no_report_of_any_format(form: str, content: bytes) -> None:
    [case], repairs = repaired(content, form)
    assert case.name == "(unnamed)"
    assert repairs.startswith("test cases without a name were named (unnamed) (")


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("pytest-reportlog", lines(START, *phases("tests/a.py::test_X"), FINISH)),
        ("pytest-json-report", lines({"created": 1, "root": "/", "tests": [{"nodeid": "a::X", "outcome": "passed"}]})),
        ("ctrf", lines({"reportFormat": "CTRF", "results": {"tests": [{"name": "X", "status": "passed"}]}})),
        ("executorch-csv", b"Test ID,Result\r\nX,Pass\r\n"),
        ("junit", b'<testsuite><testcase classname="c" name="X"/></testsuite>'),
    ],
)
@pytest.mark.parametrize("bad", [b"\xff", b"\x01", b"\xc3", b"\x1b"])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_bad_byte_in_a_name_loses_no_report_of_any_format(
    form: str, content: bytes, bad: bytes, compress: type[bytes]
) -> None:
    content = content.replace(b"X", b"X" + bad)
    assert guess(content) == form
    [case], repairs = repaired(compress(content)) if form == "junit" else repaired(compress(content), form)
    assert case.name.endswith("X" + {b"\xff": "ÿ", b"\xc3": "Ã"}.get(bad, "�"))
    assert ("windows-1252" in repairs) is (bad in b"\xff\xc3")
    assert ("control characters" in repairs) is (bad in b"\x01\x1b")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=40))
def test_any_bytes_in_a_text_lose_no_test(junk: bytes) -> None:
    # A byte that begins a tag or a reference changes the meaning of the file, which may then be unreadable.
    junk = junk.replace(b"<", b"").replace(b"&", b"").replace(b"]]>", b"")
    [case], _ = repaired(failing(junk))
    assert case.name == "a"
