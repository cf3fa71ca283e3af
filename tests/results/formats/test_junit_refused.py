"""Content that is not a JUnit report is refused, with what the lab should do."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from io import BufferedReader, BytesIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from nightjar_formats.limits import MAX_ATTRIBUTES, MAX_DEPTH, MAX_RAW_NAME, MAX_XML_NAMES, NotXml
from nightjar_formats.model import Case
from nightjar_formats.readers import junit
from nightjar_formats.readers.decoding.wide_text import as_utf_8
from nightjar_formats.readers.repairs import Repairs
from nightjar_formats.refused import Refused, TooMuch

from tests.results.formats.junit_corpus import FOLDER

CASE = '<testcase classname="c" name="a"/>'
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
SMALL = [path.read_bytes() for path in sorted(FOLDER.glob("*.xml")) if path.stat().st_size < 3000]

REFUSALS = {
    "empty": (b"", NotXml, "the file is empty"),
    "white space alone": (b" \n\n", NotXml, "ends in the middle, in line 3"),
    "json": (b' {"created": 1}', NotXml, "this is JSON"),
    "json lines": (b'[1]', NotXml, "this is JSON"),
    "plain text": (b"2 passed in 1s", NotXml, "line 1, column 1: syntax error"),
    "html with a doctype": (b"<!DOCTYPE html>\n<html/>", Refused, "line 1: this is an HTML page"),
    "html without one": (b"<html><body>404</body></html>", Refused, "line 1: this is an HTML page"),
    "another tool's xml": (b"<assemblies/>", Refused, "the root element is <assemblies>, not <testsuites>"),
    "a test case alone": (CASE.encode(), Refused, "line 1: a <testcase> inside another one, or outside"),
    "a test case in a test case": (
        f'<testsuite>\n<testcase classname="c" name="b">{CASE}</testcase></testsuite>'.encode(),
        Refused,
        "line 2: a <testcase> inside another one",
    ),
    "cut in a tag": (b'<testsuite>\n<testcase name="a', NotXml, "ends in the middle, in line 2 (unclosed token)"),
    "cut between tags": (b"<testsuite>\n", NotXml, "ends in the middle, in line 2"),
    "cut in a character": ("<testsuite>é".encode()[:-1], NotXml, "ends in the middle"),
    "cut in CDATA": (b"<testsuite><system-out><![CDATA[abc", NotXml, "ends in the middle, in line 1"),
    "a second document": (b"<testsuite/>\n<testsuite/>", NotXml, "a second document begins in line 2"),
    "two documents with declarations": (b"<testsuite/>\n<?xml version='1.0'?><a/>", NotXml, "a second document"),
    "a bare ampersand": (b"<testsuite>\n\na & b</testsuite>", NotXml, "line 3, column 4: not well-formed"),
    "an entity": (b"<testsuite>&nbsp;</testsuite>", NotXml, "line 1, column 12: undefined entity"),
    "an attribute twice": (b'<testsuite name="a" name="b"/>', NotXml, "duplicate attribute"),
    "an encoding of no codec": (
        b'<?xml version="1.0" encoding="x-no"?><testsuite/>', NotXml, "write the report in UTF-8",
    ),
    "an encoding of several bytes": (
        b'<?xml version="1.0" encoding="gb18030"?><testsuite/>', NotXml, "write the report in UTF-8",
    ),
    "a lower-case doctype": (b"<!doctype testsuites>\n<testsuite/>", Refused, "line 1: a DOCTYPE"),
    "html of a server": (b"<!doctype html>\n<html>", Refused, "line 1: this is an HTML page"),
    "a lower-case doctype behind a declaration": (
        b'<?xml version="1.0"?>\n\n<!doctype html><html>', Refused, "line 3: this is an HTML page",
    ),
    "another document behind a log line": (
        b"<testsuite/>\nDone.\n<testsuite/>", NotXml, "a second document begins in line 3",
    ),
    "a doctype in utf-16": ("<!DOCTYPE a [<!ENTITY b 'c'>]><testsuite/>".encode("utf-16"), Refused, "a DOCTYPE"),
    "billion laughs": (
        f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><testsuite name="&l9;"/>'.encode(), Refused, "a DOCTYPE",
    ),
    "an external entity": (
        b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite>&x;</testsuite>', Refused, "a DOCTYPE",
    ),
    "an external DTD": (b'<!DOCTYPE a SYSTEM "http://127.0.0.1:9/a.dtd"><testsuite/>', Refused, "a DOCTYPE"),
    "too deep": (b"<testsuite>" * (MAX_DEPTH + 1), TooMuch, f"line 1: more than {MAX_DEPTH} nested elements"),
    "too many attributes": (
        f"<testsuite {' '.join(f'a{n}=''' for n in range(MAX_ATTRIBUTES + 1))}/>".replace("=", '=""').encode(),
        TooMuch, f"line 1: more than {MAX_ATTRIBUTES} attributes",
    ),
    "too many names": (
        b"<testsuite>" + b"".join(b"<n%d/>" % n for n in range(MAX_XML_NAMES)) + b"</testsuite>", TooMuch,
        "line 1: more than 1,000 different names",
    ),
    "suites with endless names": (
        f'<testsuite name="{"n" * MAX_RAW_NAME}"><testsuite name="m"/></testsuite>'.encode(), TooMuch,
        "names of the suites",
    ),
}  # fmt: skip


def read(content: bytes) -> Iterator[Case]:
    """Yield the cases of an uploaded file: its encoding is known before a reader gets it."""
    return junit.read(as_utf_8(BufferedReader(BytesIO(content)), Repairs()))


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_says_what_the_lab_should_do(name: str) -> None:
    content, kind, words = REFUSALS[name]
    with pytest.raises(Refused) as refused:
        list(read(content))
    assert type(refused.value) is kind
    assert words in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf<testsuite>" + CASE.encode() + b"</testsuite>",
        f"<testsuite>{CASE}</testsuite>".encode("utf-16"),
        f"<testsuite>{CASE}</testsuite>".encode("utf-16-le"),
        f"<testsuite>{CASE}</testsuite>".encode("utf-16-be"),
        f'<?xml version="1.0" encoding="windows-1252"?><testsuite name="\xe9">{CASE}</testsuite>'.encode("cp1252"),
        f"\n<!-- written by hand --><testsuite>{CASE}</testsuite>\n\n".encode(),
        f'<testsuite xmlns="urn:of-some-tool">{CASE}</testsuite>'.encode(),
        f"<testsuite><{'/><'.join('a' * n for n in range(1, 9))}/>{CASE}</testsuite>".encode(),
    ],
    ids=["utf-8 mark", "utf-16 mark", "utf-16-le", "utf-16-be", "windows-1252", "comment", "namespace", "elements"],
)
def test_an_unusual_report_is_read(content: bytes) -> None:
    assert [case.name for case in read(content)] == ["a"]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SMALL), st.floats(0, 1, exclude_max=True))
@example(SMALL[0], 0.0)
def test_a_report_truncated_at_any_byte_is_refused_after_some_of_its_cases(content: bytes, share: float) -> None:
    all_cases = list(read(content))
    content = content.rstrip()
    read_cases: list[Case] = []
    with pytest.raises(NotXml):
        read_cases.extend(read(content[: int(share * len(content))]))
    assert read_cases == all_cases[: len(read_cases)]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(SMALL), st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=6)), max_size=5)
)
def test_a_broken_report_is_read_or_refused_with_our_error(content: bytes, spoilt: list[tuple[float, bytes]]) -> None:
    for share, piece in spoilt:
        position = int(share * len(content))
        content = content[:position] + piece + content[position + len(piece) :]
    with contextlib.suppress(Refused):
        assert all(isinstance(case, Case) for case in read(content))


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_refused_with_our_error(content: bytes) -> None:
    with pytest.raises(Refused):
        list(read(content))
